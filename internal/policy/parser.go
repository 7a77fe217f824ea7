package policy

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/usage"
)

// A parsedFile is a robots.txt as one cache's dialect and tokens read it. Authorities with the same
// text share one.
type parsedFile struct {
	group    *dialect.Group
	sitemaps []string
	others   *otherLines
	sum      sum
	weight   uint32       // see parsedFileWeight
	users    atomic.Int32 // the policies in the cache that use it; changed under parser.mu
}

// otherLines are the lines of a file that are neither rules nor sitemaps. The files that have none
// of them, which are the most, share one value.
type otherLines struct {
	delayAsWritten bool              // obey Crawl-delay although the dialect does not support it
	schedule       *dialect.Schedule // of the group; nil if it has none
	cleanParams    dialect.CleanParams
	usage          *usage.RobotsTxt // nil if the file says nothing about the use of content
}

// crawlDelay returns the group's crawl delay and its line; 0 and 0 if it has none.
func (f *parsedFile) crawlDelay() (delay time.Duration, line int) {
	read := f.group.CrawlDelay
	if f.others.delayAsWritten {
		read = f.group.WrittenDelay
	}
	delay, found := read()
	if !found {
		return 0, 0
	}
	return delay, f.group.DelayLine()
}

// A sum identifies a text. It is half of its SHA-256, and a second text with the same half cannot
// be found.
type sum [sha256.Size / 2]byte

func sumOf(text []byte) (s sum) {
	whole := sha256.Sum256(text)
	copy(s[:], whole[:])
	return s
}

var emptySum = sumOf(nil)

// A parser parses the texts for one cache, and keeps the parsed files that are in use there.
type parser struct {
	dialect     dialect.Dialect
	tokens      []string
	noOthers    *otherLines // of the files that have none
	honorDelays bool        // obey Request-rate and Visit-time although the dialect does not support them
	empty       *parsedFile

	// mu protects inUse.
	mu    sync.Mutex
	inUse map[sum]*parsedFile
}

func newParser(o Options) *parser {
	p := &parser{
		dialect:     o.Dialect,
		tokens:      o.Tokens,
		noOthers:    &otherLines{delayAsWritten: o.HonorDelays && tableOf(o.Dialect).ignoresDelay},
		honorDelays: o.HonorDelays,
		inUse:       make(map[sum]*parsedFile),
	}
	p.empty = p.parse(nil, emptySum)
	return p
}

// read returns the parsed file of text. It does not keep a new one: see use.
func (p *parser) read(text []byte) *parsedFile {
	if len(text) == 0 {
		return p.empty
	}
	s := sumOf(text)
	p.mu.Lock()
	known := p.inUse[s]
	p.mu.Unlock()
	if known != nil {
		return known
	}
	return p.parse(text, s)
}

func (p *parser) parse(text []byte, s sum) *parsedFile {
	rules := p.dialect.Parse(text)
	group := rules.Group(p.tokens...)
	others := p.othersOf(rules, group)
	return &parsedFile{
		group:    group,
		sitemaps: rules.Sitemaps(),
		others:   others,
		sum:      s,
		weight:   parsedFileWeight(p.dialect, len(text)) + uint32(others.usage.Size()),
	}
}

// othersOf returns the other lines of a file.
func (p *parser) othersOf(rules *dialect.Rules, group *dialect.Group) *otherLines {
	schedule := group.Schedule()
	if p.honorDelays {
		schedule = group.WrittenSchedule()
	}
	params := rules.CleanParams()
	said := usage.ParseRobotsTxt(rules.UsageLines(p.tokens...))
	if schedule == nil && params == nil && said == nil {
		return p.noOthers
	}
	return &otherLines{
		delayAsWritten: p.noOthers.delayAsWritten,
		schedule:       schedule,
		cleanParams:    params,
		usage:          said,
	}
}

// use adds a user to f, which may be nil. It returns the parsed file to use in its place: the one
// that is already in use, if there is one.
func (p *parser) use(f *parsedFile) *parsedFile {
	if f == nil || f == p.empty {
		return f
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.inUse[f.sum]; known != nil {
		f = known
	}
	p.inUse[f.sum] = f
	f.users.Add(1)
	return f
}

// drop removes a user from f, which may be nil. A parsed file without users is no longer kept.
func (p *parser) drop(f *parsedFile) {
	if f == nil || f == p.empty {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.users.Add(-1) == 0 {
		delete(p.inUse, f.sum)
	}
}
