package pace

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestEstimator(t *testing.T) {
	t.Run("each complaint is one incident, and one probe goes first", func(t *testing.T) {
		rehearse(t, Rules{}, `
0s    start a       -> yes
0s    start b       -> yes
1s    429 a         -> slower
1s    429 b         -> no
1s    delay         -> 1s
1s    end a
1s    end b
1s    start c       -> yes
5s    start d       -> in 56s
5s    503 c         -> slower
5s    delay         -> 4s
5s    end c
5s    start d       -> yes
5.1s  start e       -> in 59.9s
5.1s  answered d
5.1s  start e       -> in 3.9s
5.1s  429 c         -> no
5.1s  delay         -> 4s
6.1s  delay         -> 3.363585661s`)
	})
	t.Run("one probe goes first after Retry-After", func(t *testing.T) {
		rehearse(t, Rules{}, `
0s    start a       -> yes
0s    start b       -> yes
20ms  429 a 10s     -> slower
25ms  429 b 10s     -> no
30ms  end a
30ms  end b
10s   start c       -> in 25ms
10.1s start c       -> yes
20s   start d       -> in 50.1s
20s   end c
20s   start d       -> yes
20s   start e       -> in 40ms`)
	})
	t.Run("one probe goes first after a Retry-After of an hour", func(t *testing.T) {
		rehearse(t, Rules{}, `
0s    start a       -> yes
0s    429 a 1h      -> slower
0s    end a
1h    start b       -> yes
60.5m start c       -> in 30s
60.5m end b
60.5m start c       -> yes`)
	})
	t.Run("a probe that is never sent expires", func(t *testing.T) {
		rehearse(t, Rules{}, `
0s    429 a         -> slower
0s    launch b      -> yes
500ms start c       -> in 500ms
1s    start c       -> yes
9s    start d       -> in 52s
9s    end c
9s    start d       -> yes`)
	})
	t.Run("the delay grows while complaints continue, and ends after a long time without requests", func(t *testing.T) {
		rehearse(t, Rules{}, `
0s    start a       -> yes
0s    429 a         -> slower
0s    delay         -> 1s
1s    start a       -> yes
1s    429 a         -> slower
5s    start a       -> yes
5s    429 a         -> slower
21s   start a       -> yes
21s   429 a         -> slower
85s   start a       -> yes
85s   429 a         -> slower
341s  start a       -> yes
341s  429 a         -> slower
341s  delay         -> 5m0s
1h    delay         -> 5m0s
66m   delay         -> 0s`)
	})
	t.Run("the longer of MinDelay and back-off holds", func(t *testing.T) {
		rehearse(t, Rules{MinDelay: 2 * time.Second}, `
0s    start a       -> yes
0s    429 a         -> slower
0s    delay         -> 2s
2s    end a
2s    start a       -> yes
2s    429 a         -> slower
2s    delay         -> 4s`)
	})
	t.Run("MaxBackOff", func(t *testing.T) {
		rehearse(t, Rules{MaxBackOff: 3 * time.Second}, `
0s    429 x         -> slower
0s    delay         -> 1s
1s    start a       -> yes
1s    429 a         -> slower
1s    delay         -> 3s`)
	})
	t.Run("no back-off", func(t *testing.T) {
		rehearse(t, Rules{MaxBackOff: -1}, `
0s    429 x         -> no
0s    start a       -> yes
0s    odd a         -> no
0s    429 a 5s      -> slower
0s    end a
0s    delay         -> 0s
1s    start b       -> in 4s
5s    start b       -> yes
5s    start c       -> in 1m0s
5s    end b
5s    start c       -> yes
5s    start d       -> yes`)
	})
	t.Run("one plain 503 is not a complaint, five in a row are", func(t *testing.T) {
		rehearse(t, Rules{}, `
0s    start a       -> yes
0s    odd a         -> no
0s    delay         -> 0s
0s    odd a         -> no
0s    odd a         -> no
0s    odd a         -> no
1s    odd a         -> slower
1s    odd a         -> no
1s    delay         -> 1s
1s    end a
1s    start a       -> yes
1s    odd a         -> slower
1s    delay         -> 4s`)
	})
}

// TestLeastRate checks that the rate never falls below its minimum, and that the goal stays, so
// that the rate can rise again soon.
func TestLeastRate(t *testing.T) {
	g := estimator{goal: 5, base: 4, accepted: 4, incident: 1}
	for range 20 {
		g.complain(complaint{}, 1./300)
	}
	if g.base != 1./300 || g.goal != 5 {
		t.Errorf("base %v, goal %v; want 1/300, 5", g.base, g.goal)
	}
}

// TestRateGrowsByEvidence checks that the growth of a rate is counted in seconds with a start of a
// request.
func TestRateGrowsByEvidence(t *testing.T) {
	g := estimator{base: 0.95, goal: 1, proven: at(0), incident: 1}
	for _, test := range []struct {
		after  time.Duration
		starts int32
		want   string
	}{
		{0, 1, "0.950"}, {10 * time.Second, 100, "0.950"}, {11 * time.Second, 100, "0.969"}, {time.Hour, 11, "0.969"},
		{12560 * time.Millisecond, 100, "1.000"}, {22565 * time.Millisecond, 100, "1.010"},
		{112565 * time.Millisecond, 1000, "2.718"}, {time.Hour, 2, "0.950"}, {time.Hour, 3600, "1000.000"},
	} {
		g.starts = test.starts
		if got := fmt.Sprintf("%.3f", g.rate(at(test.after))); got != test.want {
			t.Errorf("rate after %v and %d requests = %s, want %s", test.after, test.starts, got, test.want)
		}
	}
	if got := g.interval(at(time.Hour), time.Minute); got != 0 {
		t.Errorf("interval without a limit = %v, want 0", got)
	}
}

// A limited server accepts rate requests per second, with a burst of two, and refuses the others.
type limited struct {
	rate       float64
	latency    time.Duration
	retryAfter time.Duration
	body       time.Duration // the time to read a page
	plain503   bool          // it refuses with 503 and no Retry-After

	mu       sync.Mutex
	tokens   float64
	asked    time.Time
	start    time.Time
	accepted []time.Duration
	refused  []time.Duration
	news     int
}

// get makes one request.
func (s *limited) get(t *testing.T, h *Host) {
	var ticket Ticket
	if h.Enter(t.Context(), &ticket) != nil || h.Start(t.Context(), &ticket, false) != nil || !ticket.OnWire() {
		t.Error("request was not sent")
	}
	defer ticket.End()
	ticket.Sent(time.Now())
	time.Sleep(s.latency / 2)
	ok := s.takes()
	time.Sleep(s.latency - s.latency/2)
	switch {
	case ok:
		h.Answered(&ticket, 200, 1)
		time.Sleep(s.body)
	case s.plain503 && h.Unavailable(time.Now(), &ticket), !s.plain503 && h.SlowDown(time.Now(), &ticket, s.retryAfter):
		s.mu.Lock()
		s.news++
		s.mu.Unlock()
	}
}

func (s *limited) takes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.tokens = min(s.tokens+s.rate*now.Sub(s.asked).Seconds(), 2)
	s.asked = now
	if s.tokens < 1-1e-9 {
		s.refused = append(s.refused, now.Sub(s.start))
		return false
	}
	s.tokens--
	s.accepted = append(s.accepted, now.Sub(s.start))
	return true
}

func within(times []time.Duration, from, to time.Duration) (n float64) {
	for _, t := range times {
		if from <= t && t < to {
			n++
		}
	}
	return n
}

// TestRateOfServerIsFound checks that the estimator uses at least 85 % of the rate of the server
// and that hardly any request is refused. It counts after the first ten seconds, or after thirty at
// half a request per second.
func TestRateOfServerIsFound(t *testing.T) {
	latencies := []time.Duration{time.Microsecond, 30 * time.Millisecond, 300 * time.Millisecond}
	for _, rate := range []float64{0.5, 5, 50} {
		for _, retryAfter := range []time.Duration{0, time.Second, 2 * time.Second} {
			for _, workers := range []int{1, 20} {
				for _, latency := range latencies {
					if float64(workers) < 3*rate*latency.Seconds() {
						continue // the workers cannot use the rate
					}
					name := fmt.Sprintf("%v a second/Retry-After %v/%d workers/%v", rate, retryAfter, workers, latency)
					t.Run(name, func(t *testing.T) {
						for _, random := range []float64{0, 0.99} {
							synctest.Test(t, func(t *testing.T) {
								s := &limited{rate: rate, latency: latency, retryAfter: retryAfter}
								s.run(t, workers, random)
							})
						}
					})
				}
			}
		}
	}
}

func (s *limited) run(t *testing.T, workers int, random float64) {
	settled := 10 * time.Second
	end := 70 * time.Second
	most := 0.02
	if s.rate < 1 { // at 30 requests per minute, a share takes longer to measure
		settled = 30 * time.Second
		end = 330 * time.Second
		most = 0.05
	}
	s.crawl(t, workers, random, end)
	accepted := within(s.accepted, settled, end)
	refused := within(s.refused, settled, end)
	used := accepted / s.rate / (end - settled).Seconds()
	share := refused / (accepted + refused)
	t.Logf("%.0f %% used, %.1f %% refused; before %v refused; %d incidents",
		100*used, 100*share, within(s.refused, 0, settled), s.news)
	if used < 0.85 || share > most || s.news >= 60 {
		t.Errorf("want 85 %%, %.0f %% and fewer than 60 incidents", 100*most)
	}
}

// crawl makes workers request pages from the server until the end.
func (s *limited) crawl(t *testing.T, workers int, random float64, end time.Duration) {
	s.tokens = 2
	s.start = time.Now()
	s.asked = s.start
	hosts := noRules()
	hosts.random = random
	h := hosts.At(time.Now(), "a.test")
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for time.Since(s.start) < end {
				s.get(t, h)
			}
		})
	}
	wg.Wait()
}

// TestOnePlain503InTenIsNotAComplaint checks that a host with 503 for one page in ten is not slowed
// down.
func TestOnePlain503InTenIsNotAComplaint(t *testing.T) {
	for _, workers := range []int{1, 4, 20} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			underRules(t, Rules{}, func(t *testing.T, w *world) {
				var wg sync.WaitGroup
				pages := make(chan int)
				for range workers {
					wg.Go(func() {
						for i := range pages {
							var ticket Ticket
							w.Enter(t.Context(), &ticket)
							w.Start(t.Context(), &ticket, true)
							time.Sleep(100 * time.Microsecond)
							if i%10 == 0 && w.Unavailable(time.Now(), &ticket) {
								t.Errorf("page %d counted as a complaint", i)
							}
							ticket.End()
						}
					})
				}
				for i := range 400 {
					pages <- i
				}
				close(pages)
				wg.Wait()
				if got, want := time.Since(w.start), 400*100*time.Microsecond/time.Duration(workers); got != want {
					t.Errorf("400 pages took %v, want %v", got, want)
				}
			})
		})
	}
}

// TestProbeEndsWithItsResponse checks that the other requests go on when the headers of the probe
// have arrived, not only at the end of its body.
func TestProbeEndsWithItsResponse(t *testing.T) {
	for _, test := range []struct {
		name   string
		rules  Rules
		answer func(w *world, probe *Ticket)
		want   string
	}{
		{"accepted", Rules{}, func(w *world, probe *Ticket) { w.Answered(probe, 200, 1) }, "11.05s next"},
		{"accepted, no back-off", Rules{MaxBackOff: -1}, func(w *world, probe *Ticket) { w.Answered(probe, 200, 1) }, "11.05s next"},
		{"refused", Rules{}, func(w *world, probe *Ticket) { w.SlowDown(time.Now(), probe, 0) }, "14.05s next"},
		{"unavailable", Rules{}, func(w *world, probe *Ticket) { w.Unavailable(time.Now(), probe) }, "14.05s next"},
		{"no answer", Rules{MaxInFlightPerHost: 9}, func(*world, *Ticket) {}, "1h0m0s next"},
		{"no answer in time", Rules{}, func(*world, *Ticket) {}, "1m10.05s next"},
	} {
		t.Run(test.name, func(t *testing.T) {
			underRules(t, test.rules, func(t *testing.T, w *world) {
				var probe, next Ticket
				time.Sleep(50 * time.Millisecond)
				w.SlowDown(time.Now(), nil, 10*time.Second)
				w.Start(t.Context(), &probe, true)
				go func() {
					w.Enter(t.Context(), &next)
					w.note("next")
					next.End()
				}()
				time.Sleep(time.Second)
				test.answer(w, &probe)
				time.Sleep(time.Until(w.start.Add(time.Hour)))
				probe.End()
				w.check(test.want)
			})
		})
	}
}
