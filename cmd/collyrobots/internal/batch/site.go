package batch

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/robotstags"
	"github.com/collyrobots/collyrobots/usage"
)

// A site has what one site says about the use of some pages.
type site struct {
	number int64 // of its first record
	name   string
	pages  []*page
	fault  error // of the first response that cannot be read
}

// A page has what a site says about the use of one page by one crawler. It keeps only statements,
// so that the files of the site need not be kept.
type page struct {
	agent  string
	url    string
	target string // of the URL; see usage.Target

	judged          bool // robots.txt is known
	denied          bool
	rule            int // the number of the line that decides
	said            []statement
	tdm             [3]usage.TDM // of the file, the header and the HTML; a later one overrides the earlier ones
	tags            robotstags.Tags
	licenses        []string
	licenseRequired bool
}

// A statement is what one source says about a use.
type statement struct {
	Source string           `json:"source"` // such as "Content-Usage in robots.txt"
	Line   int              `json:"line,omitempty"`
	Says   usage.Preference `json:"says"`
}

func (s statement) String() string {
	if s.Line == 0 {
		return s.Source
	}
	return fmt.Sprintf("%s, line %d", s.Source, s.Line)
}

// newSite returns a site with a page for each crawler and URL.
func newSite(number int64, agents, urls []string) (*site, error) {
	if len(agents) == 0 {
		return nil, errors.New("the record has no agent, and no agent is set for all records")
	}
	s := &site{number: number}
	for _, agent := range agents {
		for _, raw := range urls {
			u, err := parseURL(raw)
			if err != nil {
				return nil, err
			}
			s.pages = append(s.pages, &page{agent: agent, url: raw, target: usage.Target(u)})
		}
	}
	return s, nil
}

// addRobots adds the robots.txt of the site. If fixed is not nil, the status of the response
// decides about all URLs, and the file says nothing.
func (s *site) addRobots(d dialect.Dialect, body []byte, fixed *dialect.Verdict, purpose usage.Purpose) {
	rules := d.Parse(body)
	for _, p := range s.pages {
		p.judged = true
		if fixed != nil {
			p.denied = !fixed.Allowed
			continue
		}
		decision := rules.Group(p.agent).Decide(p.target)
		p.denied = !decision.Allowed
		p.rule = decision.Rule.Line
		p.addLines(rules.UsageLines(p.agent), purpose)
	}
}

// addLines adds the statements of the lines of robots.txt about the use of content. Of each key,
// only the lines with the longest path that matches count.
func (p *page) addLines(lines []dialect.UsageLine, purpose usage.Purpose) {
	for _, key := range []string{"Content-Usage", "Content-Signal"} {
		var ofKey []dialect.UsageLine
		for _, l := range lines {
			if l.Key == key {
				ofKey = append(ofKey, l)
			}
		}
		from := usage.ParseRobotsTxt(ofKey).Of(p.target).Of(purpose)
		for _, l := range ofKey {
			if from.Preference == usage.Unknown || patternOf(l) != patternOf(lineWith(ofKey, from.Line)) {
				continue
			}
			said := usage.ParseRobotsTxt([]dialect.UsageLine{l}).Of(p.target).Of(purpose)
			p.say(statement{Source: key + " in robots.txt", Line: l.Line, Says: said.Preference})
		}
	}
	for _, l := range lines {
		if l.Key == "License" {
			p.licenses = append(p.licenses, l.Value)
		}
	}
}

// lineWith returns the line with a number.
func lineWith(lines []dialect.UsageLine, number int) dialect.UsageLine {
	for _, l := range lines {
		if l.Line == number {
			return l
		}
	}
	return dialect.UsageLine{}
}

// say adds a statement, unless it says nothing.
func (p *page) say(s statement) {
	if s.Says != usage.Unknown {
		p.said = append(p.said, s)
	}
}

// addTDMFile adds the TDMRep file of the site. A malformed file declares nothing.
func (s *site) addTDMFile(body []byte) {
	file, err := usage.ParseTDMFile(body, usage.Source{Name: "tdmrep.json"})
	if err != nil {
		return
	}
	for _, p := range s.pages {
		p.tdm[0] = file.Of(p.target)
	}
}

// addResponse adds the response for the page.
func (p *page) addResponse(status int, header http.Header, body []byte, purpose usage.Purpose) {
	h := make(http.Header)
	for key, values := range header {
		for _, value := range values {
			h.Add(key, value)
		}
	}
	said := usage.ParseContentUsage(h.Values("Content-Usage"), usage.Source{}).Of(purpose)
	p.say(statement{Source: "header Content-Usage", Says: said.Preference})
	signals, _ := usage.ParseContentSignal(h.Values("Content-Signal"), usage.Source{})
	p.say(statement{Source: "header Content-Signal", Says: signals.Of(purpose).Preference})
	p.tdm[1] = usage.ParseTDMHeader(h, usage.Source{Name: "header tdm-reservation"})
	p.licenseRequired = usage.LicenseRequired(status, h)
	p.tags = robotstags.FromHeader(h, p.agent)
	if isHTML(h, body) {
		p.tdm[2] = usage.ParseTDMMeta(metaOf(body), usage.Source{Name: "meta tdm-reservation"})
		p.tags = append(p.tags, robotstags.FromHTML(body, p.agent)...)
	}
	if purpose&usage.Search != 0 && p.tags.NoIndex() {
		p.say(statement{Source: "noindex", Says: usage.Disallowed})
	}
}

// isHTML reports whether a body is HTML, by its header. A body without a Content-Type is HTML.
func isHTML(h http.Header, body []byte) bool {
	kind := strings.ToLower(h.Get("Content-Type"))
	return len(body) > 0 && (kind == "" || strings.Contains(kind, "html"))
}

// metaOf returns a function that returns the content of a meta element of a page, in lower case.
// robotstags reads the elements with any name that it is given.
func metaOf(page []byte) func(name string) string {
	return func(name string) string {
		for _, rule := range robotstags.FromHTML(page, name) {
			if rule.Bot == name {
				return string(rule.Name)
			}
		}
		return ""
	}
}

// line returns the line of the output for the page.
func (p *page) line(purpose usage.Purpose) useLine {
	tdm := p.tdm[0].Override(p.tdm[1]).Override(p.tdm[2])
	said := p.said
	if s := tdm.Preferences().Of(purpose); s.Preference != usage.Unknown {
		said = append(said, statement{Source: s.Name, Says: s.Preference})
	}
	line := useLine{
		Agent:           p.agent,
		URL:             p.url,
		Use:             Unknown,
		Sources:         said,
		Contradictions:  p.contradictions(said),
		Licenses:        p.licenses,
		LicenseRequired: p.licenseRequired,
	}
	for _, tag := range p.tags {
		line.Tags = append(line.Tags, tag.String())
	}
	strongest := usage.Unknown
	for _, s := range said {
		if s.Says > strongest {
			strongest = s.Says
			line.Use = permissionOf(s.Says)
			line.Because = s.String()
		}
	}
	if p.denied {
		line.Use = Denied
		line.Because = p.denial().String()
	}
	return line
}

func permissionOf(p usage.Preference) Permission {
	switch p {
	case usage.Allowed:
		return Allowed
	case usage.Disallowed:
		return Disallowed
	}
	return Unknown
}

// denial is the statement of the rule that denies the page.
func (p *page) denial() statement {
	return statement{Source: "rules of robots.txt", Line: p.rule, Says: usage.Disallowed}
}

// contradictions returns the pairs of sources of which one allows the use and the other does not.
func (p *page) contradictions(said []statement) []string {
	var against []statement
	if p.denied {
		against = append(against, p.denial())
	}
	for _, s := range said {
		if s.Says == usage.Disallowed {
			against = append(against, s)
		}
	}
	var pairs []string
	for _, s := range said {
		for _, other := range against {
			if s.Says == usage.Allowed {
				pairs = append(pairs, fmt.Sprintf("%s allows it, %s does not", s, other))
			}
		}
	}
	return pairs
}
