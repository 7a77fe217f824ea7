package crawl

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/store/urlstore"
)

// links records the pages of a crawl in a journal, so that the next run can continue. It implements
// urlstore.Store for a crawl whose waiting pages fit into memory: each page that the crawl
// finds goes on at once, and waits for its host in the plugin. The module frontier keeps millions
// of waiting pages on disk.
type links struct {
	mu      sync.Mutex
	journal *os.File
	pages   []*link
	byURL   map[string]*link
	rest    []*link // pages of the last run that Next has not handed out
	stats   urlstore.Stats
	idle    chan struct{} // closed and replaced when no page is left
}

// A link is a page of the crawl. Its ID is its number, from 1.
type link struct {
	urlstore.Page
	out   bool // it is being fetched
	ended bool // it is done, was denied, or has failed three times
}

// A linkRecord is a line of the journal: a new page, or how an attempt to fetch a page has ended.
type linkRecord struct {
	Page   *urlstore.Page `json:"page,omitempty"`
	ID     uint64         `json:"id,omitempty"`
	Failed bool           `json:"failed,omitempty"`
}

// openLinks opens the journal in a file. If resume is true and the last run has not fetched all of
// its pages, the journal is continued. Otherwise it begins anew.
func openLinks(file string, resume bool) (*links, error) {
	journal, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	l := newLinks(journal)
	if resume {
		err = l.read()
	}
	for _, p := range l.pages {
		if !p.ended {
			l.rest = append(l.rest, p)
		}
	}
	if err == nil && len(l.rest) == 0 {
		l = newLinks(journal)
		err = journal.Truncate(0)
	}
	if err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	return l, nil
}

func newLinks(journal *os.File) *links {
	return &links{journal: journal, byURL: make(map[string]*link), idle: make(chan struct{})}
}

// read reads the journal. It skips lines that it does not understand: a kill may have cut the last
// one.
func (l *links) read() error {
	lines := bufio.NewReader(l.journal)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) > 0 {
			_, err = l.journal.WriteString("\n") // the next record has a line of its own
			return err
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var r linkRecord
		if json.Unmarshal(line, &r) == nil {
			l.apply(r)
		}
	}
}

// apply applies a record of the journal.
func (l *links) apply(r linkRecord) {
	switch {
	case r.Page != nil && l.byURL[r.Page.URL] == nil:
		l.insert(r.Page)
	case r.Page != nil || r.ID == 0 || r.ID > uint64(len(l.pages)):
	case r.Failed:
		l.fail(l.pages[r.ID-1])
	default:
		l.pages[r.ID-1].ended = true
	}
}

// insert adds a page.
func (l *links) insert(p *urlstore.Page) *link {
	p.ID = uint64(len(l.pages) + 1)
	page := &link{Page: *p}
	l.pages = append(l.pages, page)
	l.byURL[p.URL] = page
	return page
}

// fail counts a failed attempt. After the third one the page has ended.
func (l *links) fail(p *link) {
	p.Attempts++
	p.ended = p.Attempts >= 3
}

// write appends a record to the journal.
func (l *links) write(r linkRecord) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = l.journal.Write(append(line, '\n'))
	return err
}

// left returns the number of pages that the last run has left.
func (l *links) left() int { return len(l.rest) }

// hosts returns the hosts of the pages.
func (l *links) hosts() map[string]bool {
	hosts := make(map[string]bool)
	for _, p := range l.pages {
		hosts[p.Host] = true
	}
	return hosts
}

func (l *links) close() error { return l.journal.Close() }

// Add implements urlstore.Store.
func (l *links) Add(p *urlstore.Page) (added bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.byURL[p.URL]; known != nil {
		p.ID = known.ID
		l.stats.Duplicates++
		return false, nil
	}
	p.Found = time.Now()
	err = l.write(linkRecord{Page: p})
	if err != nil {
		l.stats.Unrecorded++
		l.stats.Error = err.Error()
		return false, err
	}
	l.handOut(l.insert(p))
	return true, nil
}

// Take implements urlstore.Store. Each page goes on at once.
func (l *links) Take(*urlstore.Page) bool { return true }

// Again implements urlstore.Store.
func (l *links) Again(p *urlstore.Page) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handOut(l.byURL[p.URL])
	return nil
}

// handOut counts a page that is fetched from now on.
func (l *links) handOut(p *link) {
	if !p.out {
		p.out = true
		l.stats.Out++
	}
}

// Next implements urlstore.Store. It returns the pages of the last run.
func (l *links) Next(ctx context.Context) (*urlstore.Page, error) {
	l.mu.Lock()
	if len(l.rest) > 0 {
		first := l.rest[0]
		l.rest = l.rest[1:]
		l.handOut(first)
		page := first.Page
		l.mu.Unlock()
		return &page, nil
	}
	idle := l.idle
	if l.stats.Out == 0 {
		l.mu.Unlock()
		return nil, io.EOF
	}
	l.mu.Unlock()
	select {
	case <-idle:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// End implements urlstore.Store.
func (l *links) End(p *urlstore.Page, result urlstore.Result) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	page := l.byURL[p.URL]
	if page.out {
		page.out = false
		l.stats.Out--
	}
	if l.stats.Out == 0 {
		close(l.idle)
		l.idle = make(chan struct{})
	}
	switch result {
	case urlstore.Returned, urlstore.Postponed:
		return nil // it waits for the next run
	case urlstore.Failed:
		l.fail(page)
		return l.write(linkRecord{ID: p.ID, Failed: true})
	}
	page.ended = true
	return l.write(linkRecord{ID: p.ID})
}

// Pace implements urlstore.Store. The plugin itself keeps the pace of each host.
func (l *links) Pace(string, time.Time, bool) {}

// Stats implements urlstore.Store.
func (l *links) Stats() urlstore.Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Waiting = len(l.rest)
	return s
}

// Waiting implements urlstore.Store.
func (l *links) Waiting(host string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.rest {
		if p.Host == host {
			n++
		}
	}
	return n
}
