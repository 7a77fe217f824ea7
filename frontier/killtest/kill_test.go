// Package killtest checks that a crawl with a frontier loses no page when its process ends at any
// moment. It runs a spider as a separate process, ends it at a random moment and starts it again,
// and compares the requests that the server received with the pages that its sites have.
package killtest

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/robotstest"
)

func TestMain(m *testing.M) {
	if job := os.Getenv(spiderVariable); job != "" {
		os.Exit(spiderMain(job))
	}
	if server, dir, ok := strings.Cut(os.Getenv(paceVariable), " "); ok {
		err := paceMain(server, dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	robotstest.Main(m)
}

// These flags configure the test, for example to repeat a round: -rounds 1 -seed 7.
var (
	rounds = flag.Int("rounds", 6, "the number of crawls")
	pages  = flag.Int("pages", 300, "the pages of each crawl")
	seed   = flag.Uint64("seed", rand.Uint64()>>1, "the seed of the first crawl")
)

// hangs is how long a spider may send no request before it counts as hanging. A page that has
// failed waits for ten seconds.
const hangs = 2 * time.Minute

// A trial is one crawl that several processes continue.
type trial struct {
	*testing.T
	seed   uint64
	random *rand.Rand
	web    *web
	spider spider
	kills  int
	ends   []string
}

// TestNoPageIsLost interrupts spiders in the middle of their crawl, up to three times, and lets the
// last one run to its end. Together they must fetch each page that is not disallowed. For each
// interruption, they may fetch at most as many pages again as Window has.
func TestNoPageIsLost(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SIGTERM is not available on this system")
	}
	kills := 0
	for i := range *rounds {
		x := newTrial(t, *seed+uint64(i), *pages)
		x.run()
		x.judge()
		kills += x.kills
	}
	if kills < *rounds/2 {
		t.Errorf("only %d interruptions in %d rounds", kills, *rounds)
	}
}

func newTrial(t *testing.T, seed uint64, pages int) *trial {
	r := rand.New(rand.NewPCG(seed, 12))
	web, err := newWeb(r, pages)
	if err != nil {
		t.Fatal(err)
	}
	x := &trial{T: t, seed: seed, random: r, web: web}
	x.spider = spider{
		Server: web.listener.Addr().String(),
		Dir:    filepath.Join(t.TempDir(), "frontier"),
		Window: []int{1, 8, 64, 1024}[r.IntN(4)],
		End:    []string{"cancel", "close", "close the frontier"}[r.IntN(3)],
	}
	return x
}

func (x *trial) String() string {
	return fmt.Sprintf("seed %d (window %d, %s, %s)", x.seed, x.spider.Window, x.spider.End, strings.Join(x.ends, ", "))
}

// run runs the spider several times.
func (x *trial) run() {
	defer x.web.close()
	for range 1 + x.random.IntN(3) {
		x.live(1+x.random.IntN(len(x.web.pages)/2), x.random.IntN(2) == 0)
	}
	x.live(0, false)
}

// live runs the spider until it has requested a number of pages, and then kills or terminates it.
// If the number is 0, it runs to its end.
func (x *trial) live(pages int, kill bool) {
	job, err := json.Marshal(&x.spider)
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
	x.web.begin(pages, func() { time.AfterFunc(delay, func() { close(interrupt) }) })
	if err := child.Start(); err != nil {
		x.Error(err)
		return
	}
	ended := make(chan error)
	go func() { ended <- child.Wait() }()
	err = x.await(child, interrupt, ended, kill)
	var exit *exec.ExitError
	killed := errors.As(err, &exit) && !exit.Exited()
	if err != nil && !(kill && killed) {
		x.Errorf("%s: %v\n%s", x, err, output.String())
	}
}

// await interrupts a process when it is time, and returns how it has ended.
func (x *trial) await(child *exec.Cmd, interrupt <-chan struct{}, ended <-chan error, kill bool) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-interrupt:
			interrupt = nil
			x.kills++
			sig := syscall.SIGTERM
			if kill {
				sig = syscall.SIGKILL
			}
			x.ends = append(x.ends, sig.String())
			_ = child.Process.Signal(sig)
		case <-tick.C:
			if x.web.quietFor() > hangs {
				x.Errorf("%s: the spider hangs", x)
				_ = child.Process.Signal(syscall.SIGQUIT)
				return <-ended
			}
		}
	}
}

// judge reports what the server has seen.
func (x *trial) judge() {
	lost, again := x.web.judge()
	x.Logf("%s: %d kills, %d pages lost, %d fetched again", x, x.kills, len(lost), again)
	if len(lost) > 0 {
		x.Errorf("%s: %d pages were lost, such as %s", x, len(lost), lost[0])
	}
	if most := x.kills * x.spider.Window; again > most && !x.hasGoneOn() {
		x.Errorf("%s: %d pages were fetched again, want at most %d", x, again, most)
	}
	if len(x.web.denied) > 0 {
		x.Errorf("%s: %d disallowed pages were fetched, such as %s", x, len(x.web.denied), x.web.denied[0])
	}
}

// hasGoneOn reports whether pages were fetched that could not be recorded, because the frontier was
// closed before the plugin. They are fetched again by the next run.
func (x *trial) hasGoneOn() bool {
	return x.spider.End == "close the frontier" && slices.Contains(x.ends, syscall.SIGTERM.String())
}
