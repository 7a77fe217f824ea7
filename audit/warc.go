package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/collyrobots/collyrobots/audit/internal/tiles"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/report"
)

// ExportWARC writes the logs in these folders as WARC 1.1 records (ISO 28500:2017), the format of
// web archives. For each log it writes:
//
//   - a warcinfo record. Its field robots has the dialects and product tokens of all decisions and
//     the version of this module that made them, as a list of RFC 9651, such as
//     rfc9309;token="ExampleBot";version="v0.1.0". Requests that ignored robots.txt with permission
//     appear as "ignored". Its field checkpoint has the last checkpoint in base64.
//   - a resource record for each robots.txt that was in force, with the file as the crawl read it:
//     after redirects, without compression, and with at most one byte more than the limit of the
//     dialect. There are no response records, because those have HTTP headers, and the log has none.
//   - a revisit record each time that the same file was read again.
//   - a metadata record for each entry, with its index and its bytes. So the tree can be computed
//     from the records and compared with the checkpoint.
//
// WARC-Date is the time of the entry, or the time when robots.txt was read or confirmed. A
// robots.txt that the option RobotsTxt replaces has a URI with its hash (RFC 6920), because the site
// did not send it. All digests are SHA-256, and the identifiers are derived from the entries:
// ExportWARC writes the same bytes each time, as long as the log and this module do not change.
//
// Concealed URLs stay concealed. The error is an [ErrDamaged] if a
// robots.txt or an entry is missing or was changed; everything else was then written. ExportWARC
// verifies no signature and no decision; see [Verify]. Its memory does not depend on the number of
// entries.
func ExportWARC(w io.Writer, dirs ...string) error {
	if len(dirs) == 0 {
		return errors.New("audit: no folder to export")
	}
	x := warcExport{out: bufio.NewWriter(w)}
	err := x.logs(dirs)
	flushed := x.out.Flush() // the records before an error are whole
	if err == nil && flushed != nil {
		err = fmt.Errorf("audit: cannot write the WARC: %w", flushed)
	}
	if err != nil {
		return err
	}
	return x.damage()
}

// A warcExport is the state of one call of ExportWARC.
type warcExport struct {
	out    *bufio.Writer
	faults []error
	more   int // faults that are not in faults

	dir      string
	captures map[string]capture  // the files of this log that have a record, by their first hashDigits digits
	visits   map[tlog.Hash]visit // the last record of each robots.txt, by the hash of its URI
}

// A capture is a resource record that was written.
type capture struct {
	id      string
	date    time.Time
	uri     string // "" if it is longer than maxCaptureURI
	payload string // the SHA-256 of the file
}

// A visit is a resource or revisit record that was written.
type visit struct {
	id      string
	date    time.Time
	payload string // the SHA-256 of the file
}

const (
	// maxCaptures bounds warcExport.captures and visits, which begin anew after it. A log with more
	// files may have files twice in the WARC, and has no revisit record of a file that was only
	// confirmed and whose record is forgotten.
	maxCaptures = 50_000
	// maxCaptureURI is the largest number of bytes in capture.uri. The URI of a robots.txt needs less,
	// because a host has at most 253 bytes.
	maxCaptureURI = 300
)

// fault adds a fault of the log. The export continues.
func (x *warcExport) fault(err error) {
	if len(x.faults) >= maxFindings {
		x.more++
		return
	}
	x.faults = append(x.faults, errors.New(shorten(err.Error())))
}

// damage returns an error with all faults, or nil.
func (x *warcExport) damage() error {
	if len(x.faults) == 0 {
		return nil
	}
	err := fmt.Errorf("audit: %w, so the export is not complete:\n%w", ErrDamaged, errors.Join(x.faults...))
	if x.more > 0 {
		err = fmt.Errorf("%w\n%d more faults", err, x.more)
	}
	return err
}

// logs writes the records of all logs.
func (x *warcExport) logs(dirs []string) error {
	for _, dir := range dirs {
		err := x.log(dir)
		if err != nil {
			return fmt.Errorf("audit: cannot export %s: %w", dir, err)
		}
	}
	return nil
}

// log writes the records of a log. The error says that it cannot be read at all, or that x.out
// cannot be written.
func (x *warcExport) log(dir string) error {
	x.dir = dir
	x.captures = make(map[string]capture)
	x.visits = make(map[tlog.Hash]visit)
	info, err := warcInfo(dir)
	if err == nil {
		err = info.write(x.out)
	}
	if err != nil {
		return err
	}
	for e, fault := range Entries(dir) {
		if fault != nil {
			x.fault(fault)
		}
		if e.V == 0 {
			continue
		}
		err := x.entry(e)
		if err != nil {
			return err
		}
	}
	return nil
}

// entry writes the records of an entry.
func (x *warcExport) entry(e IndexedEntry) error {
	text, err := e.appendTo(nil)
	if err != nil {
		return err
	}
	hash := tlog.RecordHash(text)
	record := warcRecord{
		kind:        "metadata",
		id:          warcID("metadata", e.Index, hash),
		date:        e.time(),
		contentType: "application/warc-fields",
		block:       fmt.Appendf(nil, "index: %d\r\nentry: %s\r\n", e.Index, text),
	}
	if e.Event != nil {
		record.uri = warcURI(e.Event.URL)
	}
	if e.Event != nil && e.Event.Kind == report.EventRobots {
		file, err := x.robots(e, hash)
		if err != nil {
			return err
		}
		record.fields = append(record.fields, warcField{"WARC-Refers-To", file})
	}
	return record.write(x.out)
}

// robots writes the record of the robots.txt of an entry, unless the entry repeats an earlier one. It
// returns the identifier of the record, or "" if the entry has no robots.txt.
func (x *warcExport) robots(e IndexedEntry, hash tlog.Hash) (id string, err error) {
	record, err := x.robotsRecord(e)
	if err != nil {
		x.fault(fmt.Errorf("audit: entry %d of %s: %w", e.Index, x.dir, err))
	}
	if record.payload == "" {
		return "", nil
	}
	place := tlog.RecordHash([]byte(record.uri))
	last := x.visits[place]
	if last.payload == record.payload && (last.date.Equal(record.date) || isOption(e.Event)) {
		return last.id, nil
	}
	record.id = warcID(record.kind, e.Index, hash)
	remember(x.visits, place, visit{id: record.id, date: record.date, payload: record.payload})
	if record.kind == "resource" {
		remember(x.captures, record.payload[:hashDigits], record.capture())
	}
	return record.id, record.write(x.out)
}

// robotsRecord returns the record of the robots.txt of an entry, without its identifier. It has no
// payload if the file is not known.
func (x *warcExport) robotsRecord(e IndexedEntry) (record warcRecord, err error) {
	digits := e.Event.Hash
	if len(e.Body) >= hashDigits {
		digits = e.Body[:hashDigits]
	}
	known := x.captures[digits]
	switch {
	case known.payload != "" && (e.Body == "" || e.Body == known.payload):
		record.revisits(known)
	case e.Body != "":
		body, err := readBody(filepath.Join(x.dir, "robots"), e.Body)
		if err != nil {
			return record, err
		}
		record.holds(body, e.Body)
	default:
		return record, nil
	}
	record.date = e.Event.Fetched
	if record.date.IsZero() {
		record.date = e.Event.Time
	}
	record.uri = warcURI(e.Event.URL)
	if record.uri == "" || isOption(e.Event) {
		record.uri = hashURI(record.payload)
	}
	return record, nil
}

// isOption reports whether a robots event has the file of the option RobotsTxt.
func isOption(e *report.Event) bool { return e.Option == "RobotsTxt" }

// remember adds an element to a map that has at most maxCaptures elements.
func remember[K comparable, V any](m map[K]V, key K, value V) {
	if len(m) >= maxCaptures {
		clear(m)
	}
	m[key] = value
}

// capture returns what later records refer to.
func (r *warcRecord) capture() capture {
	c := capture{id: r.id, date: r.date, uri: r.uri, payload: r.payload}
	if len(c.uri) > maxCaptureURI {
		c.uri = ""
	}
	return c
}

// holds makes r the record of a robots.txt.
func (r *warcRecord) holds(body []byte, hash string) {
	r.kind = "resource"
	r.contentType = "text/plain" // RFC 9309, section 2.3
	r.block = body
	r.payload = hash
	if len(body) == dialect.SizeLimit+1 { // the last byte shows that there was more
		r.fields = append(r.fields, warcField{"WARC-Truncated", "length"})
	}
}

// revisits makes r the record of a robots.txt that was read again.
func (r *warcRecord) revisits(c capture) {
	r.kind = "revisit"
	r.payload = c.payload
	r.fields = append(r.fields,
		warcField{"WARC-Profile", "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"},
		warcField{"WARC-Refers-To", c.id},
		warcField{"WARC-Refers-To-Target-URI", c.uri},
		warcField{"WARC-Refers-To-Date", warcDate(c.date)})
}

// warcInfo returns the record that describes a log.
func warcInfo(dir string) (warcRecord, error) {
	_, checkpoint, unread := looseCheckpoint(tiles.NewReader(dir)) // Entries also reports this error
	record := warcRecord{kind: "warcinfo", contentType: "application/warc-fields"}
	var first []byte
	var policies warcPolicies
	for e := range Entries(dir) {
		if e.V == 0 {
			continue
		}
		if first == nil {
			record.date = e.time()
			text, err := e.appendTo(nil)
			if err != nil {
				return record, err
			}
			first = text
		}
		policies.add(e.Entry)
	}
	if first == nil && checkpoint == nil && !errors.Is(unread, ErrDamaged) {
		return record, cmp.Or(unread, errors.New("the folder has no log"))
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "software: collyrobots/%s\r\n", version())
	fmt.Fprint(&b, "format: WARC File Format 1.1\r\n")
	fmt.Fprint(&b, "conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n")
	if len(policies.names) > 0 {
		fmt.Fprintf(&b, "robots: %s\r\n", strings.Join(policies.names, ", "))
	}
	if checkpoint != nil {
		fmt.Fprintf(&b, "checkpoint: %s\r\n", base64.StdEncoding.EncodeToString(checkpoint))
	}
	record.block = b.Bytes()
	record.id = warcID(record.kind, 0, tlog.RecordHash(append(first, record.block...)))
	return record, nil
}

// warcPolicies collects what the field robots of a warcinfo record says.
type warcPolicies struct {
	version string   // of the module, in the current run
	names   []string // in the order of their first decisions
}

// maxPolicies bounds warcPolicies.names.
const maxPolicies = 100

func (p *warcPolicies) add(e Entry) {
	if e.Log != nil && e.Log.Kind == NoticeOpened {
		p.version = e.Log.Version
	}
	if e.Event == nil || e.Event.Decision == nil || len(p.names) > maxPolicies {
		return
	}
	d := e.Event.Decision
	name := fmt.Sprintf("%v;token=%+q;version=%+q", d.Dialect, d.Token, p.version)
	if d.Reason == report.ReasonIgnored {
		name = string(d.Reason)
	}
	if slices.Contains(p.names, name) {
		return
	}
	if len(p.names) == maxPolicies {
		name = "others"
	}
	p.names = append(p.names, name)
}
