package frontier_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// TestModel compares a frontier with a simple model of it, over random calls.
func TestModel(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			m := newModel(t, seed)
			for range 500 {
				m.step()
				if t.Failed() {
					return
				}
			}
			m.finish()
		})
	}
}

// A modelPage is a page that was added.
type modelPage struct {
	urlstore.Page
	state    string // "waiting", "out", "postponed", "done", "denied", "failed" or "left out"
	order    int
	failures int
	pause    time.Time // it waits at least until then
	attempts int       // calls of End that are due
	ended    time.Time
}

// A modelHost is a host in this run.
type modelHost struct {
	known, alone  bool
	out, answered int
	next          time.Time
}

// budgets are the limits of a run; 0 means none.
type budgets struct{ host, total, depth int }

type model struct {
	*testing.T
	*rand.Rand
	seed    uint64
	dir     string
	f       *frontier.Frontier
	window  int
	sites   int    // the number of hosts
	order   string // "discovery", "depth" or "priority"
	recrawl time.Duration
	budgets budgets

	pages      map[string]*modelPage // by collector and key
	hosts      map[string]*modelHost
	duplicates int
	log        []string
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{T: t, Rand: rand.New(rand.NewPCG(seed, 0)), seed: seed, dir: t.TempDir(), pages: make(map[string]*modelPage)}
	m.order = []string{"discovery", "depth", "priority"}[m.IntN(3)]
	if m.IntN(2) == 0 {
		m.recrawl = time.Minute
	}
	m.window = 1 + m.IntN(40)
	m.sites = 1 + m.IntN(6)
	m.open()
	if m.IntN(2) == 0 {
		m.sites = 1 + m.IntN(2)
		for range 300 {
			m.add()
		}
	}
	return m
}

func (m *model) fail(format string, args ...any) {
	m.Helper()
	for _, line := range m.log[max(len(m.log)-60, 0):] {
		m.Log(line)
	}
	m.Fatalf("seed %d: "+format, append([]any{m.seed}, args...)...)
}

func (m *model) note(format string, args ...any) { m.log = append(m.log, fmt.Sprintf(format, args...)) }

// open opens the frontier, sometimes with other budgets.
func (m *model) open() {
	old := m.budgets
	if m.IntN(3) == 0 {
		m.budgets = budgets{}
		if m.IntN(2) == 0 {
			m.budgets.host = 1 + m.IntN(20)
		}
		if m.IntN(2) == 0 {
			m.budgets.total = 1 + m.IntN(100)
		}
		if m.IntN(2) == 0 {
			m.budgets.depth = 1 + m.IntN(5)
		}
	}
	opts := []frontier.Option{frontier.Window(m.window), frontier.Logger(quiet)}
	switch m.order {
	case "depth":
		opts = append(opts, frontier.ByDepth())
	case "priority":
		opts = append(opts, frontier.ByPriority(func(p *urlstore.Page) int { return p.Depth - 3 }))
	}
	if m.recrawl > 0 {
		opts = append(opts, frontier.Recrawl(m.recrawl))
	}
	if m.budgets.host > 0 {
		opts = append(opts, frontier.MaxRecordedPerHost(m.budgets.host))
	}
	if m.budgets.total > 0 {
		opts = append(opts, frontier.MaxTotal(m.budgets.total))
	}
	if m.budgets.depth > 0 {
		opts = append(opts, frontier.MaxDepth(m.budgets.depth))
	}
	m.f = open(m.T, m.dir, opts...)
	m.note("open with %+v", m.budgets)
	m.hosts = make(map[string]*modelHost)
	m.duplicates = 0
	for _, p := range m.pages {
		if p.state == "out" || p.state == "postponed" {
			p.state = "waiting"
		}
		p.pause = time.Time{}
	}
	if old != m.budgets {
		m.readmit()
	}
}

// readmit lets pages wait that the budgets include.
func (m *model) readmit() {
	for _, p := range slices.SortedFunc(maps.Values(m.pages), func(a, b *modelPage) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.order, b.order), cmp.Compare(a.ID, b.ID))
	}) {
		if p.state == "left out" && !m.excludes(p) {
			p.state = "waiting"
		}
	}
}

func (m *model) excludes(p *modelPage) bool {
	host, total := 0, 0
	for _, q := range m.pages {
		if q.state == "denied" || q.state == "left out" {
			continue
		}
		total++
		if q.Host == p.Host {
			host++
		}
	}
	b := m.budgets
	return b.depth > 0 && p.Depth > b.depth || b.host > 0 && host >= b.host || b.total > 0 && total >= b.total
}

func (m *model) host(name string) *modelHost {
	if m.hosts[name] == nil {
		m.hosts[name] = &modelHost{}
	}
	return m.hosts[name]
}

// mayBeNext reports whether the rules allow that p is handed out now.
func (m *model) mayBeNext(p *modelPage) bool {
	if p.state != "waiting" || time.Now().Before(p.pause) || m.count("out") >= m.window {
		return false
	}
	h := m.host(p.Host)
	switch {
	case h.out >= max(m.window/8, 1), !h.known && h.out > 0, h.alone && h.out > h.answered:
		return false
	case time.Now().Before(h.next.Add(-100 * time.Millisecond)):
		return false
	}
	for _, q := range m.pages {
		earlier := q.order < p.order || q.order == p.order && q.ID < p.ID
		if q.Host == p.Host && q.state == "waiting" && earlier && !time.Now().Before(q.pause) {
			return false
		}
	}
	return true
}

func (m *model) count(state string) int {
	n := 0
	for _, p := range m.pages {
		if p.state == state {
			n++
		}
	}
	return n
}

func (m *model) step() {
	switch n := m.IntN(100); {
	case n < 40:
		m.add()
	case n < 60:
		m.next()
	case n < 80:
		m.end()
	case n < 88:
		m.pace()
	case n < 91:
		m.again()
	case n < 97:
		d := time.Duration(m.Int64N(int64(time.Second)))
		if m.IntN(8) == 0 {
			d *= 100
		}
		m.note("sleep %v", d)
		time.Sleep(d)
	case n < 99:
		if err := m.f.Close(); err != nil {
			m.fail("Close: %v", err)
		}
		m.open()
	default:
		m.crash()
	}
	m.compare()
}

// crash continues with a copy of the folder, which a kill would have left.
func (m *model) crash() {
	time.Sleep(2 * time.Second) // all changes are written
	synctest.Wait()
	to := m.TempDir()
	if err := os.CopyFS(filepath.Join(to, "copy"), os.DirFS(m.dir)); err != nil {
		m.Fatal(err)
	}
	if err := m.f.Close(); err != nil {
		m.fail("Close: %v", err)
	}
	m.dir = filepath.Join(to, "copy")
	m.note("crash")
	m.open()
}

func (m *model) page() *urlstore.Page {
	host := m.IntN(m.sites)
	return &urlstore.Page{
		URL:       fmt.Sprintf("http://h%d.test/%d", host, m.IntN(300/(1+host))),
		Collector: m.IntN(2),
		Depth:     1 + m.IntN(6),
		From:      "h0.test",
		Request:   []byte{byte(m.IntN(256))},
	}
}

func keyOf(p *urlstore.Page) string { return fmt.Sprint(p.Collector, " ", p.Key) }

func (m *model) add() {
	p := m.page()
	added, err := m.f.Add(p)
	m.note("Add(%s, %d) = %v, ID %d", p.URL, p.Collector, added, p.ID)
	if err != nil {
		m.fail("Add: %v", err)
	}
	old := m.pages[keyOf(p)]
	recrawled := old != nil && slices.Contains([]string{"done", "denied", "failed"}, old.state) &&
		m.recrawl > 0 && time.Since(old.ended.Truncate(time.Second)) >= m.recrawl
	if want := old == nil || recrawled; added != want {
		m.fail("Add(%+v) = %v, want %v", p, added, want)
	}
	if !added {
		m.duplicates++
		return
	}
	delete(m.pages, keyOf(p))
	m.record(p, "waiting")
	if m.IntN(3) > 0 {
		return
	}
	q := m.pages[keyOf(p)]
	may := m.mayBeNext(q)
	taken := m.f.Take(p)
	m.note("Take(%s) = %v", p.URL, taken)
	if taken && !may {
		m.fail("took %+v", p)
	}
	if taken {
		m.handOut(q)
	}
}

// record adds a page that was added, in a state that the budgets may change.
func (m *model) record(p *urlstore.Page, state string) {
	q := &modelPage{Page: *p, state: state}
	switch m.order {
	case "depth":
		q.order = p.Depth
	case "priority":
		q.order = -p.Depth
	}
	if state == "waiting" && m.excludes(q) {
		q.state = "left out"
	}
	m.pages[keyOf(p)] = q
}

func (m *model) handOut(p *modelPage) {
	p.state = "out"
	p.attempts = 1
	m.host(p.Host).out++
}

func (m *model) next() {
	ctx, cancel := context.WithTimeout(m.Context(), time.Nanosecond)
	defer cancel()
	p, err := m.f.Next(ctx)
	if p == nil {
		m.note("Next: %v", err)
		over := m.count("waiting")+m.count("out") == 0
		if over != (err == io.EOF) || !over && !errors.Is(err, context.DeadlineExceeded) {
			m.fail("Next: %v, %d pages wait, %d are out", err, m.count("waiting"), m.count("out"))
		}
		for _, q := range m.pages {
			if m.mayBeNext(q) {
				m.fail("Next returned no page, although %+v may be next", q)
			}
		}
		return
	}
	m.note("Next: %s, %d", p.URL, p.Collector)
	q := m.pages[keyOf(p)]
	if q == nil || !m.mayBeNext(q) {
		m.fail("Next returned %+v, which is %+v", p, q)
	}
	want := q.Page
	want.Attempts = q.failures
	if fmt.Sprint(*p) != fmt.Sprint(want) {
		m.fail("Next returned %+v, want %+v", *p, want)
	}
	m.handOut(q)
}

// pick returns a random page in a state, or nil.
func (m *model) pick(state string) *modelPage {
	var all []*modelPage
	for _, key := range slices.Sorted(maps.Keys(m.pages)) {
		if p := m.pages[key]; p.state == state || state == "" {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[m.IntN(len(all))]
}

func (m *model) end() {
	state := "out"
	if m.IntN(10) == 0 {
		state = ""
	}
	p := m.pick(state)
	if p == nil {
		return
	}
	result := urlstore.Result(m.IntN(4))
	if m.IntN(10) == 0 {
		result = urlstore.Postponed
	}
	given := p.Page
	if m.IntN(3) == 0 {
		given.ID = 0
	}
	m.note("End(%s, %d, %d), which was %s", p.URL, p.Collector, result, p.state)
	if err := m.f.End(&given, result); err != nil {
		m.fail("End: %v", err)
	}
	if p.state != "out" && p.state != "postponed" {
		return
	}
	if p.attempts > 1 {
		p.attempts--
		return
	}
	h := m.host(p.Host)
	if p.state == "out" {
		h.out--
		h.answered = max(h.answered-1, 0)
	}
	switch result {
	case urlstore.Postponed:
		p.state = "postponed"
	case urlstore.Returned:
		p.state = "waiting"
	case urlstore.Done:
		p.state = "done"
		h.known = true
	case urlstore.Denied:
		p.state = "denied"
		h.known = true
	case urlstore.Failed:
		p.failures++
		p.state = "waiting"
		p.pause = time.Now().Add([]time.Duration{10 * time.Second, time.Minute, 0}[p.failures-1])
		if p.failures == 3 {
			p.state = "failed"
		}
		h.known = false
	}
	p.ended = time.Now()
}

func (m *model) pace() {
	name := fmt.Sprintf("h%d.test", m.IntN(m.sites))
	next := time.Now().Add(time.Duration(m.Int64N(int64(2*time.Second))) - time.Second)
	alone := m.IntN(2) == 0
	m.note("Pace(%s, %v, %v)", name, time.Until(next), alone)
	m.f.Pace(name, next, alone)
	h := m.host(name)
	h.known = true
	h.alone = alone
	h.next = next
	h.answered = min(h.answered+1, h.out)
}

func (m *model) again() {
	p := m.page()
	err := m.f.Again(p)
	m.note("Again(%s, %d), ID %d", p.URL, p.Collector, p.ID)
	if err != nil {
		m.fail("Again: %v", err)
	}
	q := m.pages[keyOf(p)]
	switch {
	case q != nil && q.state == "out":
		q.attempts++
		return
	case q != nil && (q.state == "waiting" || q.state == "postponed"):
	default:
		delete(m.pages, keyOf(p))
		m.record(p, "out")
		q = m.pages[keyOf(p)]
	}
	m.handOut(q)
}

// compare compares all counts.
func (m *model) compare() {
	got := m.f.Stats()
	got.Oldest = time.Time{}
	want := urlstore.Stats{
		Waiting:    m.count("waiting") + m.count("postponed"),
		Out:        m.count("out"),
		Done:       m.count("done"),
		Denied:     m.count("denied"),
		Failed:     m.count("failed"),
		OverBudget: m.count("left out"),
		Duplicates: m.duplicates,
	}
	byHost := make(map[string]int)
	for _, p := range m.pages {
		if p.state == "waiting" || p.state == "postponed" {
			byHost[p.Host]++
		}
	}
	want.Hosts = len(byHost)
	if got != want {
		m.fail("got %+v, want %+v", got, want)
	}
	for i := range m.sites {
		name := fmt.Sprintf("h%d.test", i)
		if n := m.f.Waiting(name); n != byHost[name] {
			m.fail("%d pages of %s wait, want %d", n, name, byHost[name])
		}
	}
}

// finish ends all pages.
func (m *model) finish() {
	for m.count("waiting")+m.count("out") > 0 {
		time.Sleep(time.Minute)
		m.next()
		m.end()
		if m.Failed() {
			return
		}
	}
	m.compare()
}
