package batch

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/usage"
)

// A Permission says whether a page may be used for a purpose.
type Permission string

// The permissions.
const (
	Denied     Permission = "denied"     // robots.txt denies the crawler the page
	Disallowed Permission = "disallowed" // the page may be requested, but the owner disallows the use
	Allowed    Permission = "allowed"    // the owner allows the use
	Unknown    Permission = "unknown"    // no source says anything about the use
)

// A PurposeSummary has the numbers of a run of [RunPurpose].
type PurposeSummary struct {
	Lines         int64 // including those with an error
	Permissions   map[Permission]int64
	Contradictory int64 // lines whose sources contradict each other
	Errors        int64
}

// RunPurpose reads records from r until it ends, and writes whether the owners allow a use of their
// pages: one line of JSON for each site, crawler and URL of the options. It returns an error if r or
// w fails.
//
// In JSON lines, each record is a site. In a WARC file, the sites are those of the responses. Their
// lines are written at the end of the input, in the order of the first response of each site, and
// RunPurpose keeps about a kilobyte for each of them.
func RunPurpose(r io.Reader, w io.Writer, o Options, purpose usage.Purpose) (PurposeSummary, error) {
	source, err := open(r)
	if err != nil {
		return PurposeSummary{}, err
	}
	if len(o.URLs) == 0 {
		o.URLs = []string{"/"}
	}
	p := &purposeRun{
		options:  o,
		purpose:  purpose,
		statuses: newStatuses(o.Dialect),
		sites:    make(map[string]*site),
		out:      json.NewEncoder(w),
		summary:  PurposeSummary{Permissions: make(map[Permission]int64)},
	}
	p.out.SetEscapeHTML(false)
	if _, ok := source.(*warcSource); ok {
		err = errors.Join(p.read(source, p.addResponse), p.writeSites())
	} else {
		err = p.read(source, p.writeRecord)
	}
	return p.summary, err
}

// A purposeRun is one call of RunPurpose.
type purposeRun struct {
	options  Options
	purpose  usage.Purpose
	statuses *statuses
	out      *json.Encoder
	summary  PurposeSummary

	sites map[string]*site // those of a WARC file, by scheme and host
	order []*site
}

// read calls a function for each item until the source ends or the function fails.
func (p *purposeRun) read(source source, each func(*item) error) error {
	for {
		items, err := source.next()
		for i := range items {
			if err := each(&items[i]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// A purposeRecord is one line of the input with the sources of a site. All fields except those of
// record are optional.
type purposeRecord struct {
	record
	TDMRep *string             `json:"tdmrep"` // the TDMRep file
	Header map[string][]string `json:"header"` // of the response for the page
	HTML   string              `json:"html"`   // the page
}

// writeRecord writes the lines of one record.
func (p *purposeRun) writeRecord(i *item) error {
	s, err := p.siteOf(i)
	if err != nil {
		return p.writeFault(i.number, err)
	}
	return p.write(s)
}

// siteOf returns the site of one record.
func (p *purposeRun) siteOf(i *item) (*site, error) {
	if i.fault != "" {
		return nil, errors.New(i.fault)
	}
	var r purposeRecord
	if err := json.Unmarshal(i.data, &r); err != nil {
		return nil, err
	}
	body, err := r.body()
	if err != nil {
		return nil, err
	}
	agents := p.options.Agents
	if r.Agent != "" {
		agents = []string{r.Agent}
	}
	urls := p.options.URLs
	if r.URL != "" || len(r.URLs) > 0 {
		urls = r.URLs
		if r.URL != "" {
			urls = append([]string{r.URL}, urls...)
		}
	}
	s, err := newSite(i.number, agents, urls)
	if err != nil {
		return nil, err
	}
	s.addRobots(p.options.Dialect, body, nil, p.purpose)
	if r.TDMRep != nil {
		s.addTDMFile([]byte(*r.TDMRep))
	}
	for _, page := range s.pages {
		page.addResponse(0, r.Header, []byte(r.HTML), p.purpose)
	}
	return s, nil
}

// addResponse adds one response of a WARC file to its site. Responses for other URLs than those of
// the options, robots.txt and the TDMRep file are ignored.
func (p *purposeRun) addResponse(i *item) error {
	u, err := url.Parse(i.target)
	if err != nil || u.Host == "" {
		return nil
	}
	target := usage.Target(u)
	if target != "/robots.txt" && target != usage.TDMRepPath && !p.asksFor(target) {
		return nil
	}
	name := u.Scheme + "://" + u.Host
	s := p.sites[name]
	if s == nil {
		s, err = newSite(i.number, p.options.Agents, p.options.URLs)
		if err != nil {
			return err // the options are wrong
		}
		s.name = name
		p.sites[name] = s
		p.order = append(p.order, s)
	}
	s.fault = cmp.Or(s.fault, p.addTo(s, target, i))
	return nil
}

// addTo adds a response for a target to its site. It returns an error if the response cannot be read.
func (p *purposeRun) addTo(s *site, target string, i *item) error {
	if i.fault != "" {
		return errors.New(i.fault)
	}
	response, err := parseResponse(i.data)
	if err != nil {
		return err
	}
	switch target {
	case "/robots.txt":
		return p.addRobots(s, response)
	case usage.TDMRepPath:
		if response.status == 200 {
			s.addTDMFile(response.body)
		}
	default:
		for _, page := range s.pages {
			if page.target == target {
				page.addResponse(response.status, response.header, response.body, p.purpose)
			}
		}
	}
	return nil
}

// asksFor reports whether a target is that of one of the URLs of the options.
func (p *purposeRun) asksFor(target string) bool {
	for _, raw := range p.options.URLs {
		if u, err := parseURL(raw); err == nil && usage.Target(u) == target {
			return true
		}
	}
	return false
}

// addRobots adds the robots.txt of a site in a WARC file.
func (p *purposeRun) addRobots(s *site, r response) error {
	if r.status >= 300 && r.status <= 399 {
		return fmt.Errorf("robots.txt redirects: status %d", r.status)
	}
	fixed, err := p.statuses.decision(r.status)
	if err != nil {
		return err
	}
	s.addRobots(p.options.Dialect, r.body, fixed, p.purpose)
	return nil
}

// writeSites writes the lines of the sites of a WARC file.
func (p *purposeRun) writeSites() error {
	for _, s := range p.order {
		if err := p.write(s); err != nil {
			return err
		}
	}
	return nil
}

// A useLine is one line of the output.
type useLine struct {
	Record          int64       `json:"record"`
	Site            string      `json:"site,omitempty"`
	Agent           string      `json:"agent,omitempty"`
	URL             string      `json:"url,omitempty"`
	Use             Permission  `json:"use,omitempty"`
	Because         string      `json:"because,omitempty"`
	Sources         []statement `json:"sources,omitempty"`
	Contradictions  []string    `json:"contradictions,omitempty"`
	Tags            []string    `json:"tags,omitempty"`
	Licenses        []string    `json:"licenses,omitempty"`
	LicenseRequired bool        `json:"license_required,omitempty"`
	Error           string      `json:"error,omitempty"`
}

// write writes the lines of a site.
func (p *purposeRun) write(s *site) error {
	for _, page := range s.pages {
		line := page.line(p.purpose)
		line.Record = s.number
		line.Site = s.name
		switch {
		case s.fault != nil:
			line.Error = s.fault.Error()
		case !page.judged:
			line.Error = "the input has no robots.txt of this site"
		}
		if line.Error != "" {
			p.summary.Errors++
		}
		p.summary.Lines++
		p.summary.Permissions[line.Use]++
		if len(line.Contradictions) > 0 {
			p.summary.Contradictory++
		}
		if err := p.out.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

// writeFault writes a line for a record that cannot be read.
func (p *purposeRun) writeFault(number int64, err error) error {
	p.summary.Lines++
	p.summary.Errors++
	return p.out.Encode(useLine{Record: number, Error: err.Error()})
}

// body returns the robots.txt of a record.
func (r *record) body() ([]byte, error) {
	if err := r.checkForms(); err != nil {
		return nil, err
	}
	switch {
	case r.File != "":
		return readFile(r.File)
	case r.Robots != nil:
		return []byte(*r.Robots), nil
	}
	return r.RobotsBase64, nil
}

// patternOf returns the path with which the value of a line begins, or "" if there is none.
func patternOf(l dialect.UsageLine) string {
	if !strings.HasPrefix(l.Value, "/") {
		return ""
	}
	pattern, _, _ := strings.Cut(l.Value, " ")
	return pattern
}
