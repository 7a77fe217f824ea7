package frontier

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/store/urlstore"
)

var _ urlstore.Store = (*Frontier)(nil)

// A Frontier keeps the pages of a crawl in a folder and decides which page is next. Get one from
// Open. All methods may be called from any goroutine.
type Frontier struct {
	settings
	logs  *logQueue // the handler of settings.log
	dir   string    // as given to Open
	path  string    // the folder without links
	epoch time.Time
	disk  *disk

	closing  sync.Once  // makes only the first Close close the folder
	updating sync.Mutex // held by Update of Records

	// mu protects the fields below it, except those that say otherwise. Locks are taken in this order:
	// closing, writing, updating, mu, those of the disk, that of logs.
	mu     sync.Mutex
	closed bool
	hosts  map[string]*host // those with pages, and some others
	sweep  int              // the number of hosts at which idle hosts are forgotten
	line   line
	turns  uint64              // the last turn of a host
	total  counts              // of all hosts
	out    map[uint64]*outPage // also those that are postponed
	pauses pauses
	ids    ids

	postponed int // the number of pages in out that are postponed

	waiters   []chan handed // of Next, the first one is served first
	timer     *time.Timer   // calls serve when the next page is due
	writing   sync.RWMutex  // held for reading by flush and background, for writing by Close
	unflushed bool          // a call of flush is due
	dirty     bool          // a call of background is due

	waitingWritten time.Time // when writeWaiting was last called; only background, Open and Close use it

	ended   uint64 // the number of pages whose end was recorded in this run
	flushed uint64 // how many of these survive a kill

	duplicates atomic.Int64
	unrecorded int
	problem    error // why pages were last not recorded, or nil
}

// An outPage is a page that was handed out.
type outPage struct {
	host     *host
	at       position
	hash     pageHash
	found    instant
	attempts int // that have not ended; more than one if the program requests the page once more

	postponed bool // it waits for the next run
}

// Open opens the frontier in a folder. If the folder does not exist, Open creates it, with access
// for its owner only. Pages that were out when an earlier process ended wait again.
//
// If options are not valid, the error joins an [*OptionError] for each fault. Otherwise an error is
// a [*FolderError]. Open never removes a folder or a page. If files have lost records because they
// are damaged, Open changes nothing and returns an error that wraps ErrDamaged and says what to do.
func Open(dir string, opts ...Option) (*Frontier, error) {
	s, err := configure(opts)
	if err != nil {
		return nil, err
	}
	path, err := prepareFolder(dir, s.log)
	if err != nil {
		return nil, &FolderError{Dir: dir, Err: err}
	}
	f, err := open(path, s, system)
	if err != nil {
		return nil, &FolderError{Dir: dir, Err: err}
	}
	f.dir = dir
	f.writeWaiting()
	return f, nil
}

// Close ends the frontier: all calls of Next return, and all pages are written to the disk. Pages
// that are out wait again in the next run. The methods return an error that wraps ErrClosed from
// now on. Another call of Close has no effect, but waits for the end of the first one.
func (f *Frontier) Close() (err error) {
	f.closing.Do(func() {
		err = f.close()
		f.logs.wait()
	})
	return err
}

func (f *Frontier) close() error {
	f.mu.Lock()
	f.closed = true
	f.timer.Stop()
	waiters := f.waiters
	f.waiters = nil
	f.mu.Unlock()
	for _, w := range waiters {
		w <- handed{err: f.fault(ErrClosed)}
	}
	f.writing.Lock() // waits for flush and background
	defer f.writing.Unlock()
	f.writeWaiting()
	if err := f.disk.close(); err != nil {
		return f.fault(cause(err))
	}
	return nil
}

// fault adds the folder to an error.
func (f *Frontier) fault(err error) error { return &FolderError{Dir: f.dir, Err: err} }

// usable returns an error after Close. f.mu must be held.
func (f *Frontier) usable() error {
	if f.closed {
		return f.fault(ErrClosed)
	}
	return nil
}

// now returns the time since Open.
func (f *Frontier) now() instant { return instant(time.Since(f.epoch)) }

// Add records a page, which then waits, and sets its Host, Key, Found, Attempts and ID. It does not
// change a Host or Key that is set. It reports false if a page with the same Collector and Key
// waits, is out or is done; see Recrawl. If a budget leaves the page out, it is recorded but does
// not wait, and Add reports true.
//
// An error says that the page was not recorded: its URL is not valid, or the disk is full.
func (f *Frontier) Add(p *urlstore.Page) (added bool, err error) {
	if err := identify(p); err != nil {
		return false, err
	}
	hash := hashOf(p)
	if f.isKnown(p, hash) {
		f.duplicates.Add(1)
		return false, nil
	}
	order := f.order(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.usable(); err != nil {
		return false, err
	}
	seen := f.seen(hash)
	if seen.state != unknown && !f.again(seen) {
		p.ID = seen.at.id
		f.duplicates.Add(1)
		return false, nil
	}
	h, err := f.host(p.Host)
	if err != nil {
		return false, err
	}
	p.Attempts = 0
	p.Found = time.Now().Round(0)
	to := waiting
	if f.budget.excludes(p.Depth, h.recorded.without(seen.state), f.total.without(seen.state)) {
		to = leftOut
	}
	at := position{order: order, id: f.ids.next}
	if err := f.record(h, p, pageChange{at: at, hash: hash, from: seen, to: to}); err != nil {
		return false, err
	}
	p.ID = at.id
	if to == waiting {
		f.enqueue(h, waitingPage{at: at, found: f.instant(p.Found)})
		f.serve()
	}
	return true, nil
}

// isKnown reports whether Add certainly rejects a page, and sets its ID. Most links lead to known
// pages, so Add looks for these without f.mu.
func (f *Frontier) isKnown(p *urlstore.Page, hash pageHash) bool {
	if f.recrawl > 0 {
		return false
	}
	seen, err := decodeSeen(f.disk.peek(hash.key()))
	if err != nil || seen.state == unknown {
		return false
	}
	p.ID = seen.at.id
	return true
}

// identify sets Host and Key of a page if they are empty.
func identify(p *urlstore.Page) error {
	if p == nil {
		return errors.New("frontier: the page is nil")
	}
	key, host, err := urlstore.Normalize(p.URL)
	if err != nil && (p.Key == "" || p.Host == "") {
		return fmt.Errorf("frontier: %w", err)
	}
	if p.Key == "" {
		p.Key = key
	}
	if p.Host == "" {
		p.Host = host
	}
	if len(p.Host) > longestHost {
		return fmt.Errorf("frontier: the host of a page has %d bytes, which exceeds the limit of %d", len(p.Host), longestHost)
	}
	if length := len(p.URL) + len(p.Key) + len(p.From) + len(p.Request); length > longestPage {
		return fmt.Errorf("frontier: a page has %d bytes, which exceeds the limit of %d", length, longestPage)
	}
	return nil
}

// again reports whether a page that is known may be added again, because of Recrawl.
func (f *Frontier) again(r seenRecord) bool {
	hasEnded := r.state == done || r.state == denied || r.state == failed
	return hasEnded && f.recrawl > 0 && time.Since(r.ended) >= f.recrawl
}

// Take hands out p, which was just added, if Next would return it now. It does not read the disk.
func (f *Frontier) Take(p *urlstore.Page) bool {
	if p == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	h := f.first(f.now())
	if h == nil || h.name != p.Host || len(h.ahead) == 0 || h.ahead[0].at.id != p.ID {
		return false
	}
	w := h.ahead[0]
	h.remove(w.at)
	f.handOut(h, w, hashOf(p))
	return true
}

// Again hands out a page that the program requests once more. The page may be in any state: known
// or not, waiting, out, done, denied, failed or left out. The rules for the pages of a host, Window
// and the budgets do not apply. If the page is out, it is out until End was called once for each
// attempt, and the last call decides. It sets the ID of the page, and Host and Key if they are
// empty.
func (f *Frontier) Again(p *urlstore.Page) error {
	if err := identify(p); err != nil {
		return err
	}
	order := f.order(p)
	hash := hashOf(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.usable(); err != nil {
		return err
	}
	seen := f.seen(hash)
	if seen.state == waiting {
		if o := f.out[seen.at.id]; o != nil {
			p.ID = seen.at.id
			f.againOut(o)
			return nil
		}
	}
	h, err := f.host(p.Host)
	if err != nil {
		return err
	}
	w := waitingPage{at: seen.at}
	if seen.state != waiting {
		w.at = position{order: order, id: f.ids.next}
		p.Attempts = 0
		p.Found = time.Now().Round(0)
		if err := f.record(h, p, pageChange{at: w.at, hash: hash, from: seen, to: waiting}); err != nil {
			return err
		}
	}
	w.found = f.instant(p.Found)
	p.ID = w.at.id
	h.remove(w.at)
	f.pauses.remove(w.at.id)
	f.handOut(h, w, hash)
	return nil
}

// againOut adds an attempt to a page that is out or postponed.
func (f *Frontier) againOut(o *outPage) {
	if !o.postponed {
		o.attempts++
		return
	}
	o.postponed = false
	f.postponed--
	o.host.postponed--
	o.host.out++
	f.turn(o.host)
}

// Next waits until the turn of a page has come, and hands it out. It returns io.EOF when no page
// waits and no page is out. If ctx ends, it returns the cause of ctx. Each call returns another
// page; calls that began earlier get their pages first.
func (f *Frontier) Next(ctx context.Context) (*urlstore.Page, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	w := make(chan handed, 1)
	f.mu.Lock()
	if err := f.usable(); err != nil {
		f.mu.Unlock()
		return nil, err
	}
	f.waiters = append(f.waiters, w)
	f.serve()
	f.mu.Unlock()
	select {
	case got := <-w:
		return got.page, got.err
	case <-ctx.Done():
	}
	f.leave(w)
	select {
	case got := <-w: // the page was handed out before the call could leave
		return got.page, got.err
	default:
		return nil, context.Cause(ctx)
	}
}

// End says how the attempt to fetch p has ended. urlstore.Failed lets the page wait for ten seconds
// after the first attempt and for a minute after the second one. After the third one it has failed
// for good. urlstore.Returned lets it wait at its old position. urlstore.Postponed lets it wait for the next
// run; Next does not count it, and another call of End may follow. End has no effect if p is
// neither out nor postponed. It finds the page by ID, or by Key or URL if ID is 0.
func (f *Frontier) End(p *urlstore.Page, result urlstore.Result) error {
	if p == nil {
		return nil
	}
	if result < urlstore.Returned || result > urlstore.Postponed {
		return fmt.Errorf("frontier: %d is not a urlstore.Result", result)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.usable(); err != nil {
		return err
	}
	o, err := f.find(p)
	if o == nil || err != nil {
		return err
	}
	if o.attempts > 1 {
		o.attempts--
		return nil
	}
	if err := f.settle(o, result); err != nil {
		return err
	}
	f.serve()
	return nil
}

// Pace says that a page of a host that was handed out has had its response. The next page of the
// host is handed out up to 100 milliseconds before next, so that it can wait for the exact time
// where its request is sent. If alone is true, it is not handed out while another page of the host
// has had no response. A time in the past, such as the zero time, means now. Call Pace once for each
// page, with its Host.
func (f *Frontier) Pace(host string, next time.Time, alone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	h, err := f.host(host)
	if err != nil {
		return // the host has no page that could be handed out
	}
	h.answered = min(h.answered+1, h.out)
	h.next = max(f.instant(next), 0) // a much earlier instant would overflow
	h.alone = alone
	h.cautious = false
	f.arrange(h)
	f.serve()
}

// Stats returns the counts so far. Oldest is exact to the second for the order of discovery. With
// ByDepth and ByPriority it is the time of the oldest of the pages that are next.
func (f *Frontier) Stats() urlstore.Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.total.stats()
	s.Out = f.pagesOut()
	s.Waiting -= s.Out
	s.Duplicates = int(f.duplicates.Load())
	s.Unrecorded = f.unrecorded + f.disk.later
	if f.problem != nil && s.Unrecorded > 0 {
		s.Error = f.problem.Error()
	}
	for _, h := range f.hosts {
		if h.recorded.waiting == h.out {
			continue
		}
		s.Hosts++
		if oldest := f.oldest(h); s.Oldest.IsZero() || oldest.Before(s.Oldest) {
			s.Oldest = oldest
		}
	}
	return s
}

// Waiting returns the number of pages of a host that wait.
func (f *Frontier) Waiting(host string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.hosts[host]
	if h == nil {
		return 0
	}
	return h.recorded.waiting - h.out
}
