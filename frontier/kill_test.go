package frontier_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// crawlerVariable has the crawl of a process that TestKill starts, as JSON.
const crawlerVariable = "COLLYROBOTS_FRONTIER_CRAWLER"

// A crawler is a process that crawls a web that exists only as a rule: a page is a number, and the
// pages that it links to follow from the number.
type crawler struct {
	Dir    string // of the frontier
	Log    string // the file that it logs its steps in
	Window int
	Pages  int
	Last   bool // it is not killed
}

// links returns the pages that a page links to. All pages can be reached from page 0.
func (c crawler) links(page int) []int {
	r := rand.New(rand.NewPCG(uint64(page), 3))
	links := []int{2*page + 1, 2*page + 2}
	for range r.IntN(5) {
		links = append(links, r.IntN(c.Pages))
	}
	for i, l := range links {
		links[i] = min(l, c.Pages-1)
	}
	return links
}

// urlOf returns the URL of a page. The web has many hosts of different sizes.
func urlOf(page int) string { return fmt.Sprintf("http://h%d.test/%d", page%(1+page%60), page) }

func pageOf(url string) (page int) {
	_, _ = fmt.Sscanf(url[strings.LastIndexByte(url, '/')+1:], "%d", &page)
	return page
}

// crawl is the main function of the process.
func crawl(job string) error {
	var c crawler
	if err := json.Unmarshal([]byte(job), &c); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log, err := os.OpenFile(c.Log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	f, err := frontier.Open(c.Dir, frontier.Window(c.Window))
	if err != nil {
		return err
	}
	if _, err := f.Add(&urlstore.Page{URL: urlOf(0)}); err != nil {
		return err
	}
	errs := make(chan error)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			if err := c.work(ctx, f, log); err != nil {
				errs <- err
			}
		})
	}
	go func() {
		workers.Wait()
		close(errs)
	}()
	for e := range errs {
		err = errors.Join(err, e)
	}
	return errors.Join(err, f.Close())
}

// work fetches pages until there are none.
func (c crawler) work(ctx context.Context, f *frontier.Frontier, log io.Writer) error {
	for {
		p, err := f.Next(ctx)
		if err == io.EOF || ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		page := pageOf(p.URL)
		fmt.Fprintf(log, "fetch %d\n", page)
		f.Pace(p.Host, time.Now().Add(time.Duration(page%3)*time.Millisecond), page%2 == 0)
		for _, l := range c.links(page) {
			if _, err := f.Add(&urlstore.Page{URL: urlOf(l), Depth: p.Depth + 1}); err != nil {
				return err
			}
		}
		result := urlstore.Done
		switch {
		case page%11 == 3:
			result = urlstore.Denied
		case page%13 == 4 && !c.Last && p.Attempts < 2:
			result = urlstore.Failed
		}
		if result != urlstore.Failed {
			fmt.Fprintf(log, "end %d\n", page)
		}
		if err := f.End(p, result); err != nil {
			return err
		}
	}
}

// TestKill interrupts crawls and checks that no page is lost and few are fetched again. The
// environment variable COLLYROBOTS_KILLS sets the number of crawls, and COLLYROBOTS_SEED the seed
// of the first one.
func TestKill(t *testing.T) {
	rounds := numberIn(t, "COLLYROBOTS_KILLS", 2)
	seed := numberIn(t, "COLLYROBOTS_SEED", 1)
	kills, again := 0, 0
	for i := range rounds {
		k, a := killRound(t, seed+i)
		kills += k
		again += a
	}
	t.Logf("%d kills, %d pages fetched again", kills, again)
}

// killRound runs one crawl. It returns the number of interruptions and of the pages that were
// fetched again.
func killRound(t *testing.T, seed uint64) (kills, again int) {
	random := rand.New(rand.NewPCG(seed, 4))
	dir := t.TempDir()
	c := crawler{
		Dir:    filepath.Join(dir, "state"),
		Log:    filepath.Join(dir, "log"),
		Window: 8 + random.IntN(100),
		Pages:  500 + random.IntN(3000),
	}
	const lives = 8
	for life := range lives {
		c.Last = life == lives-1
		if live(t, c, random) {
			kills++
		}
	}
	fetches, ends := readLog(t, c.Log)
	reachable := map[int]bool{0: true}
	for open := []int{0}; len(open) > 0; {
		page := open[0]
		open = open[1:]
		for _, l := range c.links(page) {
			if !reachable[l] {
				reachable[l] = true
				open = append(open, l)
			}
		}
	}
	for page := range reachable {
		if ends[page] == 0 {
			t.Errorf("seed %d: page %d is lost, it was fetched %d times", seed, page, fetches[page])
		}
		if page%13 != 4 {
			again += max(fetches[page]-1, 0)
		}
	}
	if again > kills*c.Window {
		t.Errorf("seed %d: %d pages were fetched again after %d kills with a window of %d", seed, again, kills, c.Window)
	}
	if s := open(t, c.Dir).Stats(); s.Waiting != 0 || s.Done+s.Denied+s.Failed != len(reachable) {
		t.Errorf("seed %d: %+v, want %d pages that have ended", seed, s, len(reachable))
	}
	return kills, again
}

// live runs the crawler, and ends it after a random time unless it is the last life. It reports
// whether it has ended it.
func live(t *testing.T, c crawler, random *rand.Rand) (interrupted bool) {
	t.Helper()
	job, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), crawlerVariable+"="+string(job))
	var output strings.Builder
	child.Stdout = &output
	child.Stderr = &output
	fetches := 1 + random.IntN(c.Pages/4)
	kind := []os.Signal{syscall.SIGKILL, syscall.SIGTERM}[random.IntN(2)]
	before := lines(t, c.Log)
	latest, changed := before, time.Now()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for {
		select {
		case err := <-ended:
			if err != nil && !interrupted {
				t.Fatalf("the crawler failed: %v\n%s", err, output.String())
			}
			if err != nil && kind != syscall.SIGKILL {
				t.Fatalf("the crawler failed after a signal: %v\n%s", err, output.String())
			}
			return interrupted
		case <-poll.C:
			if now := lines(t, c.Log); now != latest {
				latest = now
				changed = time.Now()
			}
			idle := latest > before && time.Since(changed) > 300*time.Millisecond // failed pages pause
			if !c.Last && !interrupted && (latest-before > 2*fetches || idle) {
				interrupted = true
				_ = child.Process.Signal(kind)
			}
		}
	}
}

// lines returns an estimate of the number of lines of a file.
func lines(t *testing.T, name string) int {
	t.Helper()
	info, err := os.Stat(name)
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Size() / 10)
}

// readLog returns how often each page was fetched, and how often its end was about to be recorded.
func readLog(t *testing.T, name string) (fetches, ends map[int]int) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	fetches, ends = make(map[int]int), make(map[int]int)
	for line := range strings.Lines(string(text)) {
		var what string
		var page int
		if n, _ := fmt.Sscanf(line, "%s %d", &what, &page); n < 2 {
			continue
		}
		if what == "fetch" {
			fetches[page]++
		} else {
			ends[page]++
		}
	}
	return fetches, ends
}
