package batch

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
)

// A record is one line of the input. It has one of Robots, RobotsBase64 and File. It may have both
// URL and URLs.
type record struct {
	Robots       *string  `json:"robots"`
	RobotsBase64 []byte   `json:"robots_base64"`
	File         string   `json:"file"`
	Agent        string   `json:"agent"`
	URL          string   `json:"url"`
	URLs         []string `json:"urls"`

	fixed *dialect.Verdict // if set, the decision about all URLs, which follows from a status code
}

// A worker processes one job after the other and decides about their records.
type worker struct {
	run       *run
	out       chan<- []byte // of the current job
	piece     []byte        // output that is not sent yet
	record    record
	decisions int64
	faults    int64
}

func newWorker(b *run) *worker { return &worker{run: b} }

// do decides about the records of a job.
func (w *worker) do(j *job) {
	w.out = j.out
	w.piece = takePiece()
	for i := range j.items {
		w.decide(&j.items[i])
	}
	w.send()
	close(j.out)
	w.run.decisions.Add(w.decisions)
	w.run.faults.Add(w.faults)
	w.decisions = 0
	w.faults = 0
}

func takePiece() []byte { return (*pieces.Get().(*[]byte))[:0] }

// send hands the output to the writer.
func (w *worker) send() {
	if len(w.piece) > 0 {
		w.out <- w.piece
	}
	w.piece = nil
}

// decide writes the decisions about one record, or an error line.
func (w *worker) decide(i *item) {
	err := w.parse(i)
	if err != nil {
		w.fault(i.number, "", err)
		return
	}
	agents := w.run.options.Agents
	if w.record.Agent != "" {
		agents = []string{w.record.Agent}
	}
	for _, agent := range agents {
		g, err := w.group(agent)
		if err != nil {
			w.fault(i.number, "", err)
			return
		}
		w.decideAll(i.number, agent, g)
	}
}

// decideAll writes the decisions about all URLs of the record for one crawler.
func (w *worker) decideAll(number int64, agent string, g *group) {
	if w.record.URL != "" {
		w.decideURL(number, agent, g, w.record.URL)
	}
	urls := w.record.URLs
	if w.record.URL == "" && len(urls) == 0 {
		urls = w.run.options.URLs
	}
	for _, u := range urls {
		w.decideURL(number, agent, g, u)
	}
}

// parse parses an item into w.record.
func (w *worker) parse(i *item) error {
	w.record = record{URLs: w.record.URLs[:0]}
	if i.fault != "" {
		return errors.New(i.fault)
	}
	parse := w.parseLine
	if i.target != "" {
		parse = w.parseWARC
	}
	if err := parse(i); err != nil {
		return err
	}
	switch r := &w.record; {
	case r.URL == "" && len(r.URLs) == 0 && len(w.run.options.URLs) == 0:
		return errors.New("the record has neither url nor urls, and no URL is set for all records")
	case r.Agent == "" && len(w.run.options.Agents) == 0:
		return errors.New("the record has no agent, and no agent is set for all records")
	}
	return nil
}

// parseLine is like parse for a line of JSON.
func (w *worker) parseLine(i *item) error {
	r := &w.record
	if err := json.Unmarshal(i.data, r); err != nil {
		return err
	}
	return r.checkForms()
}

// checkForms returns an error unless the record has exactly one form of a robots.txt.
func (r *record) checkForms() error {
	forms := 0
	for _, set := range []bool{r.Robots != nil, r.RobotsBase64 != nil, r.File != ""} {
		if set {
			forms++
		}
	}
	if forms != 1 {
		return fmt.Errorf("the record has %d of robots, robots_base64 and file, want 1", forms)
	}
	return nil
}

// parseWARC is like parse for an item of a WARC file.
func (w *worker) parseWARC(i *item) error {
	u, err := url.Parse(i.target)
	if err != nil || u.Path != "/robots.txt" {
		return fmt.Errorf("%s is not the URL of a robots.txt", i.target)
	}
	response, err := parseResponse(i.data)
	if err != nil {
		return err
	}
	if response.status >= 300 && response.status <= 399 {
		return fmt.Errorf("%s redirects: status %d", i.target, response.status)
	}
	w.record = record{RobotsBase64: response.body}
	w.record.fixed, err = w.run.statuses.decision(response.status)
	return err
}

// group returns the group of the record for a crawler.
func (w *worker) group(agent string) (*group, error) {
	r := &w.record
	switch {
	case r.File != "":
		return w.run.files.ofPath(r.File, agent)
	case r.Robots != nil:
		return w.run.files.ofBody([]byte(*r.Robots), agent), nil
	}
	return w.run.files.ofBody(r.RobotsBase64, agent), nil
}

// decideURL writes the decision about one URL.
func (w *worker) decideURL(number int64, agent string, g *group, rawURL string) {
	d, err := w.decisionOf(g, rawURL)
	if err != nil {
		w.fault(number, rawURL, err)
		return
	}
	b := w.piece
	b = append(b, `{"record":`...)
	b = strconv.AppendInt(b, number, 10)
	b = append(b, `,"agent":`...)
	b = appendString(b, agent)
	b = append(b, `,"url":`...)
	b = appendString(b, rawURL)
	b = append(b, `,"allowed":`...)
	b = strconv.AppendBool(b, d.Allowed)
	b = append(b, `,"line":`...)
	b = strconv.AppendInt(b, int64(d.Rule.Line), 10)
	b = append(b, `,"sha256":"`...)
	b = append(b, g.hash...)
	w.piece = append(b, "\"}\n"...)
	w.decisions++
	w.flush()
}

// flush sends the output if it has reached pieceSize.
func (w *worker) flush() {
	if len(w.piece) >= pieceSize {
		w.send()
		w.piece = takePiece()
	}
}

func (w *worker) decisionOf(g *group, rawURL string) (dialect.Verdict, error) {
	if w.record.fixed != nil {
		return *w.record.fixed, nil
	}
	u, err := parseURL(rawURL)
	if err != nil {
		return dialect.Verdict{}, err
	}
	return g.DecideURL(u), nil
}

// parseURL parses an absolute URL, or a path with an optional query.
func parseURL(raw string) (*url.URL, error) {
	if strings.HasPrefix(raw, "/") {
		raw = anySite + raw
	}
	u, err := parseAsCrawler(raw)
	if err == nil && (u.Host == "" || u.Scheme == "") {
		err = fmt.Errorf("%q is neither an absolute URL nor a path that begins with /", raw)
	}
	return u, err
}

// anySite is put before paths, because decisions do not depend on the site.
const anySite = "http://site.invalid"

// fault writes an error line.
func (w *worker) fault(number int64, rawURL string, err error) {
	b := w.piece
	b = append(b, `{"record":`...)
	b = strconv.AppendInt(b, number, 10)
	if rawURL != "" {
		b = append(b, `,"url":`...)
		b = appendString(b, rawURL)
	}
	b = append(b, `,"error":`...)
	b = appendString(b, err.Error())
	w.piece = append(b, "}\n"...)
	w.faults++
	w.flush()
}

// appendString appends a string as JSON. Bytes that are not UTF-8 are replaced, as in
// encoding/json.
func appendString(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			quoted, err := json.Marshal(s)
			if err != nil {
				return append(b, `""`...) // cannot happen for a string
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
