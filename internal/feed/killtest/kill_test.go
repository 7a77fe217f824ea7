// Package killtest checks that a crawl that is interrupted loses no page. It runs a spider as a
// separate process, ends it at a random moment and starts it again. Then it compares the requests
// that the server received and the pages that the spider recorded with the pages that the sitemaps
// list.
package killtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/internal/leaktest"
)

func TestMain(m *testing.M) {
	if job := os.Getenv(spiderVariable); job != "" {
		os.Exit(spiderMain(job))
	}
	leaktest.Main(m)
}

// These environment variables configure the test: the number of rounds, the seed of the first
// round, and whether the newest pages come first (1 or 0). If COLLYROBOTS_NEWEST is not set, the
// newest pages come first in one of five rounds.
const (
	roundsVariable = "COLLYROBOTS_KILLS"
	seedVariable   = "COLLYROBOTS_SEED"
	newestVariable = "COLLYROBOTS_NEWEST"
)

// numberIn returns the number in an environment variable, or otherwise if the variable is not set.
func numberIn(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// A trial is one crawl that several processes (lives) continue.
type trial struct {
	*testing.T
	seed   uint64
	random *rand.Rand
	sites  *sites
	spider spider
	lives  int // the number of processes
	kills  int // the number of interruptions
	ends   []string
}

// TestNoPageIsLost interrupts spiders in the middle of their crawl, once or twice, and lets the
// last one run to its end. Together they must process each page that the sitemaps list. For each
// interruption, they may fetch at most as many pages again as the window has; with a Sink, as
// mostSunk.
func TestNoPageIsLost(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SIGTERM is not available on this system")
	}
	rounds := int(numberIn(t, roundsVariable, 8))
	seed := numberIn(t, seedVariable, rand.Uint64())
	newest := numberIn(t, newestVariable, random)
	t.Logf("%s=%d", seedVariable, seed)
	var mu sync.Mutex
	var done, kills, lost, again int
	seeds := make(chan uint64)
	var workers sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := range seeds {
				x := newTrial(t, seed, newest)
				x.run()
				l, a := x.judge()
				mu.Lock()
				done++
				kills += x.kills
				lost += l
				again += a
				mu.Unlock()
			}
		})
	}
	isEnough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return kills >= rounds/2
	}
	for i := 0; i < rounds || i < 4*rounds && !isEnough(); i++ { // not each seed interrupts its round
		seeds <- seed + uint64(i)
	}
	close(seeds)
	workers.Wait()
	t.Logf("%d rounds with %d interruptions: %d pages were lost, %d fetched again", done, kills, lost, again)
	if kills < rounds/2 {
		t.Errorf("only %d interruptions in %d rounds", kills, done)
	}
}

// mostSunk is the largest number of pages that a Sink gets again after a kill, according to the doc
// comment of Feed.Resume. One more page may be in flight for each site.
const mostSunk = 10_000 + 8

// random is the value of COLLYROBOTS_NEWEST that lets the seed decide.
const random = 2

func newTrial(t *testing.T, seed, newest uint64) *trial {
	r := rand.New(rand.NewPCG(seed, 11))
	x := &trial{T: t, seed: seed, random: r, lives: 2 + r.IntN(2)}
	x.sites = newSites(r, x.lives)
	folder := t.TempDir()
	x.spider = spider{
		HTTP:        x.sites.http.Listener.Addr().String(),
		HTTPS:       x.sites.https.Listener.Addr().String(),
		Seeds:       x.sites.seeds,
		Store:       filepath.Join(folder, "store"),
		Results:     filepath.Join(folder, "results"),
		Way:         []string{"async", "async", "async", "sync", "pages", "queue", "queue", "sink", "sink"}[r.IntN(9)],
		End:         []string{"cancel", "close", "cancel and close"}[r.IntN(3)],
		Window:      []int{1, 2, 3, 8, 16, 64}[r.IntN(6)],
		Threads:     1 + r.IntN(4),
		NewestFirst: r.IntN(5) == 0,
	}
	if newest != random {
		x.spider.NewestFirst = newest == 1
	}
	if x.spider.Way == "queue" {
		x.spider.Window = max(x.spider.Window, 2*x.spider.Threads)
	}
	return x
}

// run runs the spider for each of its lives.
func (x *trial) run() {
	defer x.sites.close()
	for ; x.spider.Life < x.lives; x.spider.Life++ {
		x.spider.MaxURLs = mostPages
		if x.spider.Life == x.lives-1 {
			x.live(-1, false)
		} else {
			if x.random.IntN(4) == 0 {
				x.spider.MaxURLs = 1 + x.random.IntN(len(x.sites.pages))
			}
			x.live(1+x.random.IntN(len(x.sites.pages)*2/3), x.random.IntN(2) == 0)
		}
	}
}

// live runs the spider until it has requested a number of pages, and then kills or terminates it.
func (x *trial) live(pages int, kill bool) {
	job, err := json.Marshal(x.spider)
	if err != nil {
		x.Error(err)
		return
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), spiderVariable+"="+string(job))
	var output strings.Builder
	child.Stdout = &output
	child.Stderr = &output
	delay := time.Duration(x.random.Int64N(int64(30 * time.Millisecond)))
	interrupt := make(chan struct{})
	x.sites.begin(pages, func() {
		time.Sleep(delay)
		close(interrupt)
	})
	if err := child.Start(); err != nil {
		x.Error(err)
		return
	}
	ended := make(chan error)
	go func() { ended <- child.Wait() }()
	select {
	case err = <-ended:
	case <-interrupt:
		x.kills++
		sig := syscall.SIGTERM
		if kill {
			sig = syscall.SIGKILL
		}
		x.ends = append(x.ends, fmt.Sprintf("%v after %d pages", sig, pages))
		_ = child.Process.Signal(sig)
		err = x.await(child, ended)
	case <-x.sites.quiet.C:
		x.Errorf("%s: the spider hangs", x)
		_ = child.Process.Signal(syscall.SIGQUIT)
		err = x.await(child, ended)
	}
	var exit *exec.ExitError
	killed := errors.As(err, &exit) && !exit.Exited()
	if err != nil && !(kill && killed) {
		x.Errorf("%s: life %d: %v\n%s", x, x.spider.Life, err, output.String())
	}
}

// await waits for the end of a process that has received a signal.
func (x *trial) await(child *exec.Cmd, ended <-chan error) error {
	select {
	case err := <-ended:
		return err
	case <-time.After(20 * time.Second):
		x.Errorf("%s: the spider does not end after a signal", x)
		_ = child.Process.Signal(syscall.SIGQUIT)
		return <-ended
	}
}

// judge compares the pages that were requested and the pages that were processed with the pages
// that the sitemaps list.
func (x *trial) judge() (lost, again int) {
	x.sites.mu.Lock()
	defer x.sites.mu.Unlock()
	results := x.results()
	lives := len(x.sites.asked)
	var repeated []string
	for loc, p := range x.sites.pages {
		asked := 0
		for _, in := range x.sites.asked {
			asked += min(in[loc], 1)
			if in[loc] > 1 && p.kind != "reset" {
				x.Errorf("%s: %s was requested %d times in one life", x, loc, in[loc])
			}
		}
		switch {
		case p.in == "vanishes":
		case p.kind == "firstrefused" && x.spider.Way == "pages": // the loop has called Done
		case p.closes():
			for life, in := range x.sites.asked {
				if life > 0 && in[loc] > 0 {
					x.Errorf("%s: %s was requested in life %d", x, loc, life)
				}
			}
		case p.opens() && x.sites.asked[0][loc] > 0:
			x.Errorf("%s: %s was requested too early", x, loc)
		case p.fails():
			if x.spider.Way != "pages" && x.sites.asked[lives-1][loc] == 0 && asked < 3 {
				x.Errorf("%s: %s, which fails, was not tried again", x, loc)
			}
		case !p.wanted():
			if asked > 0 && (p.kind != "old" || !p.cut) { // the date of the page may have been cut off
				x.Errorf("%s: %s was requested", x, loc)
			}
		case !results[loc]:
			lost++
			x.Errorf("%s: %s is lost, it was requested %d times", x, loc, asked)
		case asked > 1 && p.in == "" && !p.cut:
			again += asked - 1
			repeated = append(repeated, loc)
		}
	}
	most := x.spider.Window
	if x.spider.Way == "sink" {
		most = mostSunk
	}
	if again > x.kills*most {
		x.Errorf("%s: %d pages were fetched again: %s", x, again, strings.Join(repeated, " "))
	}
	return lost, again
}

// results returns the pages that the spider has processed.
func (x *trial) results() map[string]bool {
	text, err := os.ReadFile(x.spider.Results)
	if err != nil {
		x.Error(err)
	}
	results := make(map[string]bool)
	for loc := range strings.Lines(string(text)) {
		results[strings.Replace(strings.TrimSpace(loc), "/to/", "/", 1)] = true
	}
	return results
}

func (x *trial) String() string {
	return fmt.Sprintf("%s=%d: %s, window %d, %d threads, newest first %v, %s, %s", seedVariable, x.seed, x.spider.Way, x.spider.Window, x.spider.Threads, x.spider.NewestFirst,
		x.spider.End, strings.Join(x.ends, ", "))
}
