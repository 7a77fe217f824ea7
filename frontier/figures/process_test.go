//go:build linux

package figures

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var profiles = flag.String("profiles", "", "write CPU and heap profiles of each process to this folder")

// A task is what a process does. It is in the variable taskVariable of the environment, as JSON.
type task struct {
	Do       string // a key of work
	Dir      string // of the Frontier; empty if there is none
	Pages    int
	Hosts    int
	Links    int  // the number of links of a page to known pages
	Kill     bool // end the process without Close
	Profiles string
}

const taskVariable = "COLLYROBOTS_FIGURES"

// A result is what a process has measured.
type result struct {
	Pages   int
	Elapsed time.Duration
	CPU     time.Duration // of the process, in user and system mode, while it worked
	First   time.Duration // from the start of Open to the first page
	Anon    int64         // bytes of resident memory without files, at the end of the work
	Peak    int64         // bytes of resident memory with files, at most
	closer  func() error  // called unless the process kills itself
}

// perSecond returns the pages per second.
func (r result) perSecond() float64 { return float64(r.Pages) / r.Elapsed.Seconds() }

// work are the functions of the tasks.
var work = map[string]func(task) (result, error){
	"add":     addPages,
	"open":    openFirst,
	"steady":  handOutAndAdd,
	"drain":   drain,
	"know":    know,
	"visit":   visitAll,
	"waiting": crawlDelayed,
}

// run does the task and measures it.
func (t task) run() (result, error) {
	stop, err := t.profile()
	if err != nil {
		return result{}, err
	}
	before := cpuTime()
	r, err := work[t.Do](t)
	if err != nil {
		return result{}, fmt.Errorf("%s: %w", t.Do, err)
	}
	r.CPU = cpuTime() - before
	r.Anon, r.Peak, err = memory()
	if err == nil {
		err = stop()
	}
	if err == nil && !t.Kill && r.closer != nil {
		err = r.closer()
	}
	return r, err
}

// profile starts the profiles of the process. stop ends them.
func (t task) profile() (stop func() error, err error) {
	if t.Profiles == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(t.Profiles, 0o777); err != nil {
		return nil, err
	}
	cpu, err := os.Create(filepath.Join(t.Profiles, t.Do+".cpu"))
	if err != nil {
		return nil, err
	}
	heap, err := os.Create(filepath.Join(t.Profiles, t.Do+".heap"))
	if err != nil {
		return nil, errors.Join(err, cpu.Close())
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		return errors.Join(cpu.Close(), pprof.WriteHeapProfile(heap), heap.Close())
	}, nil
}

// start does a task in a process of its own and returns the result.
func start(t *testing.T, what task) result {
	t.Helper()
	what.Profiles = *profiles
	text, err := json.Marshal(what)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), taskVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil && !(what.Kill && wasKilled(err)) {
		t.Fatalf("%s: %v", what.Do, err)
	}
	var r result
	if err := json.NewDecoder(bytes.NewReader(out)).Decode(&r); err != nil {
		t.Fatalf("%s: %v", what.Do, err)
	}
	return r
}

// kill ends this process at once.
func kill() error {
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		return err
	}
	select {}
}

// wasKilled reports whether a process ended by kill.
func wasKilled(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// cpuTime returns the processor time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// memory returns the resident memory of this process without files, and the most with files, in
// bytes.
func memory() (anon, peak int64, err error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0, err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ":")
		kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "RssAnon":
			anon = kilobytes << 10
		case "VmHWM":
			peak = kilobytes << 10
		}
	}
	if anon == 0 || peak == 0 {
		return 0, 0, errors.New("/proc/self/status has no RssAnon or VmHWM")
	}
	return anon, peak, lines.Err()
}

// sizeOf returns the bytes of the files in a folder.
func sizeOf(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// megabytes returns bytes in units of 10^6.
func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }
