package hostqueue

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestHostilePage crawls a page with 100,000 links to its host, and one with links to 10,000 hosts.
func TestHostilePage(t *testing.T) {
	if raceEnabled {
		t.Skip("adds very many pages in one goroutine")
	}
	client := newServer(t).client(t)
	var own, others []string
	for n := range 100_000 {
		own = append(own, fmt.Sprint("/", n))
	}
	for n := range 10_000 {
		others = append(others, fmt.Sprintf("http://host%d.test/", n))
	}
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/": robotstest.Page(own...)}, "b.test": {"/": robotstest.Page(others...)}})
	q := mustOpen(t, client, "test", MaxPages(60_000))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := newSpider(t, web, q, collyrobots.IgnoreRobotsWithPermission(), collyrobots.MinDelay(time.Hour))
	s.Context = ctx
	if err := q.Add(t.Context(), "http://a.test/", "http://b.test/"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- q.Run(ctx, s.Collector, s.robots) }()
	waitFor(t, "the links are recorded", func() bool {
		got, err := q.Stats(t.Context())
		return err == nil && got.Hosts == 10_002 && got.Known == 60_000+10_001 && got.Dropped == 40_001 && got.Done == 2
	})
	t.Log("took", time.Since(began))
	cancel()
	<-ended
}
