//go:build linux

// Package figures measures what a Frontier costs. Each measurement runs in a process of its own,
// which is this test binary. Times depend on the machine and on what else it does; bytes and the
// ratios of two processes that take turns depend little on it.
//
// The memory and the time to restart with waiting pages, and the pages added and handed out per
// second:
//
//	go test -run Waiting -v -waiting 1000000
//
// The memory with many known URLs, which takes an hour and 6 GB on disk:
//
//	go test -run Seen -v -timeout 3h -seen 50000000
//
// The processor time of a page with the plugin and a Frontier, compared with the plugin alone:
//
//	go test -run PageRatio -v -rounds 20
//
// The duration of a crawl by the clock of a bubble, compared with what the delays allow:
//
//	go test -run Schedule -v -paced 2000
//
// The same by a real clock, which takes two minutes:
//
//	go test -run Crawl -v -crawl 1000000
//
// A profile of the process that does the work:
//
//	go test -run Waiting -v -waiting 1000000 -profiles /tmp/profiles
//
// Without flags, the tests take a few seconds. They then check that the measurements still work.
package figures

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(taskVariable); text != "" {
		if err := obey(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// obey is the main function of a process that does a task. It writes the result to its standard
// output.
func obey(text string) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	r, err := t.run()
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
		return err
	}
	if t.Kill {
		return kill()
	}
	return nil
}
