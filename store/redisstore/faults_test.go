package redisstore_test

import (
	"testing"
	"time"
)

const delay = 200 * time.Millisecond

func TestTwoProcesses(t *testing.T) {
	s, web := newServer(t), newSite(t)
	for _, name := range []string{"a", "b"} {
		newWorker(t, job{Name: name, Redis: s.addr, Site: web.addr, Delay: delay})
	}
	web.await(t, 1)
	began := time.Now()
	web.await(t, 15)
	took := time.Since(began)
	t.Logf("smallest gap %v; %v a start; %v", web.gap(t, delay), took/15, web.since(began))
}
