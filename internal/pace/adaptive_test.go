package pace

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestAdaptiveDelay(t *testing.T) {
	for _, test := range []struct {
		name   string
		rules  Rules
		script string
	}{
		{"slower, then faster", Rules{Adaptive: 2}, `
0s    delay          -> 0s
0s    start a        -> yes
0s    start b        -> in 1m0s
100ms done a 200
100ms delay          -> 200ms
100ms start b        -> in 100ms
200ms start b        -> yes
1s    status b 200
1s    delay          -> 900ms
1s    end b
2s    start c        -> yes
2.1s  status c 200
2.1s  delay          -> 725ms`},
		{"the delay counts between starts", Rules{Adaptive: 1}, `
0s    start a        -> yes
800ms status a 200
800ms start b        -> in 59.2s
3s    end a
3s    start b        -> yes`},
		{"two in flight", Rules{Adaptive: 0.5}, `
0s    start a        -> yes
0s    start b        -> yes
0s    start c        -> in 1m0s
1s    done a 200
1s    delay          -> 500ms
1s    start c        -> yes
1.2s  done b 200
1.2s  start d        -> in 350ms`},
		{"three in flight", Rules{Adaptive: 0.4}, `
0s    start a        -> yes
0s    start b        -> yes
0s    start c        -> yes
0s    start d        -> in 1m0s`},
		{"MaxInFlight applies instead", Rules{Adaptive: 2, MaxInFlight: 2}, `
0s    start a        -> yes
0s    start b        -> yes
0s    start c        -> later
1s    done a 200
1s    start c        -> in 1s
2s    start c        -> yes`},
		{"MinDelay is longer", Rules{Adaptive: 1, MinDelay: time.Second}, `
0s    start a        -> yes
100ms done a 200
100ms start b        -> in 900ms`},
		{"a crawl delay is longer, and one in flight", Rules{Adaptive: 0.1}, `
0s    ask http 1s
0s    start a        -> yes
100ms status a 200
100ms start b        -> in 59.9s
200ms end a
200ms start b        -> in 800ms`},
		{"MaxBackOff limits it", Rules{Adaptive: 100, MaxBackOff: 5 * time.Second}, `
0s    start a        -> yes
1s    done a 200
1s    delay          -> 5s`},
		{"five minutes without MaxBackOff", Rules{Adaptive: 1000}, `
0s    start a        -> yes
1s    status a 200
1s    delay          -> 5m0s`},
		{"five minutes with the back-off turned off", Rules{Adaptive: 1000, MaxBackOff: -1}, `
0s    start a        -> yes
1s    status a 200
1s    delay          -> 5m0s`},
		{"fast errors and redirects do not lower it, slow ones raise it", Rules{Adaptive: 1}, `
0s    start a        -> yes
1s    done a 200
2s    start b        -> yes
2.1s  done b 404
2.1s  delay          -> 1s
3s    start c        -> yes
3.1s  done c 500
3.1s  delay          -> 1s
4s    start d        -> yes
4.1s  done d 302
4.1s  delay          -> 1s
5s    start e        -> yes
7s    done e 500
7s    delay          -> 1.5s
7s    start f        -> yes
7.5s  done f 304
7.5s  delay          -> 1.25s`},
		{"a 429 does not lower it", Rules{Adaptive: 4}, `
0s    start a        -> yes
1s    done a 200
4s    start b        -> yes
4.1s  429 b          -> slower
9s    end b
9s    delay          -> 4s`},
		{"a 503 does not lower it", Rules{Adaptive: 4}, `
0s    start a        -> yes
1s    done a 200
4s    start b        -> yes
4.1s  odd b          -> no
9s    end b
9s    delay          -> 4s`},
		{"a slow 429 raises it", Rules{Adaptive: 4}, `
0s    start a        -> yes
1s    done a 200
4s    start b        -> yes
6s    429 b          -> slower
9s    end b
9s    delay          -> 6s`},
		{"robots.txt does not lower it", Rules{Adaptive: 1}, `
0s    start a        -> yes
1s    done a 200
1s    renew r
1s    start r        -> yes
1.01s done r 200
1.01s delay          -> 1s`},
		{"a slow robots.txt raises it", Rules{Adaptive: 1}, `
0s    renew r
0s    start r        -> yes
800ms done r 200
800ms delay          -> 800ms`},
		{"no response", Rules{Adaptive: 1}, `
0s    start a        -> yes
200ms done a 200
200ms start b        -> yes
250ms end b
250ms delay          -> 200ms
400ms start c        -> yes
30.4s end c
30.4s delay          -> 600ms`},
		{"no response and no end", Rules{Adaptive: 1}, `
0s    start a        -> yes
200ms done a 200
200ms start b        -> yes
60.2s start c        -> yes
60.2s delay          -> 600ms
70s   status b 200
70s   delay          -> 600ms`},
		{"the body does not count", Rules{Adaptive: 1}, `
0s    start a        -> yes
100ms status a 200
9s    end a
9s    delay          -> 100ms`},
		{"it counts from the wire", Rules{Adaptive: 1}, `
0s    start a        -> yes
500ms sent a
600ms done a 200
600ms delay          -> 100ms`},
		{"a request that was not sent", Rules{Adaptive: 1}, `
0s    launch a       -> yes
500ms end a
600ms delay          -> 0s`},
		{"an outlier", Rules{Adaptive: 1}, `
0s    start a        -> yes
100ms done a 200
100ms start b        -> yes
50s   done b 200
50s   delay          -> 550ms
50s   start c        -> yes
50.1s done c 200
50.1s delay          -> 437.5ms`},
		{"a slow first response", Rules{Adaptive: 1}, `
0s    start a        -> yes
50s   done a 200
50s   delay          -> 1s`},
		{"DelayFromEnd", Rules{Adaptive: 0.5, FromEnd: true}, `
0s    start a        -> yes
1s    status a 200
2s    end a
2s    start b        -> in 500ms
2.5s  start b        -> yes
2.6s  start c        -> in 59.9s`},
		{"a dry run", Rules{Adaptive: 1, Free: true}, `
0s    start a        -> yes
0s    start b        -> yes
1s    status a 200
1s    delay          -> 1s
1s    start c        -> yes`},
		{"without the rule", Rules{}, `
0s    start a        -> yes
9s    done a 200
9s    delay          -> 0s`},
	} {
		t.Run(test.name, func(t *testing.T) { rehearse(t, test.rules, test.script) })
	}
}

// A slowServer answers after a time that the test sets. If it has a capacity, it works on that many
// requests at once, and the others wait. Its log has the requests in the order of their starts.
type slowServer struct {
	host    *Host
	start   time.Time
	latency func(request int, since time.Duration) time.Duration
	units   chan struct{} // nil without a capacity

	mu       sync.Mutex
	inFlight int
	log      []served
}

// served is one request.
type served struct {
	at       time.Duration // since the start
	took     time.Duration
	inFlight int           // including this one
	delay    time.Duration // of the host after the response
}

// serve makes workers request pages for some time.
func (s *slowServer) serve(t *testing.T, factor float64, workers int, length time.Duration) []served {
	hosts := New(func(string) *Rules { return &Rules{Adaptive: factor} })
	s.host = hosts.At(time.Now(), "a.test")
	s.start = time.Now()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for time.Since(s.start) < length {
				s.get(t)
			}
		})
	}
	wg.Wait()
	return s.log
}

// get sends one request.
func (s *slowServer) get(t *testing.T) {
	var ticket Ticket
	if err := s.host.Enter(t.Context(), &ticket); err != nil {
		t.Error(err)
	}
	if err := s.host.Start(t.Context(), &ticket, true); err != nil {
		t.Error(err)
	}
	began := time.Now()
	s.mu.Lock()
	s.inFlight++
	number := len(s.log)
	s.log = append(s.log, served{at: began.Sub(s.start), inFlight: s.inFlight})
	s.mu.Unlock()
	if s.units != nil {
		s.units <- struct{}{}
	}
	time.Sleep(s.latency(number, began.Sub(s.start)))
	if s.units != nil {
		<-s.units
	}
	s.mu.Lock()
	s.inFlight--
	s.mu.Unlock()
	s.host.Answered(&ticket, 200, 1)
	s.mu.Lock()
	s.log[number].took = time.Since(began)
	s.log[number].delay = s.host.Delay(time.Now())
	s.mu.Unlock()
	ticket.End()
}

// constant answers after d.
func constant(d time.Duration) func(int, time.Duration) time.Duration {
	return func(int, time.Duration) time.Duration { return d }
}

// delays returns the shortest and the longest delay after the requests that started in [from, to).
func delays(log []served, from, to time.Duration) (least, most time.Duration) {
	log = slices.DeleteFunc(slices.Clone(log), func(r served) bool { return r.at < from || r.at >= to })
	byDelay := func(a, b served) int { return int(a.delay - b.delay) }
	return slices.MinFunc(log, byDelay).delay, slices.MaxFunc(log, byDelay).delay
}

// TestAdaptiveRate checks the number of requests and how many are in flight if the response time is
// constant.
func TestAdaptiveRate(t *testing.T) {
	for _, test := range []struct {
		factor   float64
		want     int // in ten seconds, at 100 ms
		inFlight int
	}{{0.25, 401, 4}, {0.5, 201, 2}, {1, 100, 1}, {2, 50, 1}, {10, 10, 1}} {
		t.Run(fmt.Sprint(test.factor), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := slowServer{latency: constant(100 * time.Millisecond)}
				log := s.serve(t, test.factor, 20, 10*time.Second)
				count := 0
				most := 0
				for _, r := range log {
					most = max(most, r.inFlight)
					if r.at < 10*time.Second {
						count++
					}
				}
				if most != test.inFlight || count < test.want-test.inFlight || count > test.want+test.inFlight {
					t.Errorf("%d requests, %d in flight, want %d, %d", count, most, test.want, test.inFlight)
				}
			})
		})
	}
}

// TestAdaptiveOscillation checks that the delay stays between those of the fast and the slow
// responses if they alternate, and that its range does not grow.
func TestAdaptiveOscillation(t *testing.T) {
	for _, factor := range []float64{0.25, 1, 3} {
		for _, period := range []int{1, 2, 5, 20} {
			t.Run(fmt.Sprint(factor, " every ", period), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := slowServer{latency: func(request int, _ time.Duration) time.Duration {
						if request/period%2 == 0 {
							return 100 * time.Millisecond
						}
						return 800 * time.Millisecond
					}}
					log := s.serve(t, factor, 10, 5*time.Minute)
					least, most := delays(log, time.Minute, 3*time.Minute)
					leastLater, mostLater := delays(log, 3*time.Minute, 5*time.Minute)
					scale := func(d time.Duration) time.Duration { return time.Duration(factor * float64(d)) }
					if least < scale(100*time.Millisecond) || most > scale(800*time.Millisecond) {
						t.Errorf("delays from %v to %v", least, most)
					}
					if grows := (mostLater - leastLater) - (most - least); grows > scale(5*time.Millisecond) {
						t.Errorf("delays from %v to %v, later from %v to %v", least, most, leastLater, mostLater)
					}
					if ripple := float64(most) / float64(least); period == 1 && factor >= 1 && ripple > 1.35 {
						t.Errorf("delays from %v to %v", least, most)
					}
				})
			})
		}
	}
}

// TestAdaptiveFeedback checks that the delay settles on a server that becomes slower with each
// request in flight. The delay depends on the response time, and the response time on the delay.
func TestAdaptiveFeedback(t *testing.T) {
	for _, factor := range []float64{0.05, 0.1, 0.25, 0.5, 1, 2} {
		for _, units := range []int{1, 3} {
			t.Run(fmt.Sprint(factor, " with ", units), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := slowServer{latency: constant(100 * time.Millisecond), units: make(chan struct{}, units)}
					log := s.serve(t, factor, 40, 2*time.Minute)
					least, most := delays(log, 10*time.Second, time.Minute)
					leastLater, mostLater := delays(log, time.Minute, 2*time.Minute)
					t.Logf("%d requests, delays from %v to %v, later from %v to %v", len(log), least, most, leastLater, mostLater)
					if (mostLater-leastLater)-(most-least) > time.Millisecond || mostLater > 2*leastLater {
						t.Errorf("delays from %v to %v, later from %v to %v", least, most, leastLater, mostLater)
					}
				})
			})
		}
	}
}

// TestAdaptiveReaction checks how soon the delay follows a server that becomes slow, and then fast
// again, and that few requests are sent before it is known that the server is slow.
func TestAdaptiveReaction(t *testing.T) {
	for _, test := range []struct {
		factor         float64
		inFlight       int
		slower, faster time.Duration // when the delay is within 20 % of that for 800 ms, and below that for 200 ms
	}{{0.25, 4, 1600 * time.Millisecond, 2 * time.Second}, {1, 1, 3200 * time.Millisecond, 4 * time.Second}} {
		t.Run(fmt.Sprint(test.factor), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := slowServer{latency: func(_ int, since time.Duration) time.Duration {
					if since >= 10*time.Second && since < 30*time.Second {
						return 800 * time.Millisecond
					}
					return 100 * time.Millisecond
				}}
				log := s.serve(t, test.factor, 20, time.Minute)
				var slower, faster time.Duration
				for _, r := range log {
					done := r.at + r.took
					switch delay := time.Duration(float64(r.delay) / test.factor); {
					case r.inFlight > test.inFlight:
						t.Errorf("%d in flight at %v", r.inFlight, r.at)
					case slower == 0 && delay > 640*time.Millisecond:
						slower = done - 10*time.Second
					case slower > 0 && faster == 0 && r.at >= 30*time.Second && delay < 200*time.Millisecond:
						faster = done - 30*time.Second
					}
				}
				t.Logf("slower after %v, faster after %v", slower, faster)
				if slower == 0 || slower > test.slower || faster == 0 || faster > test.faster {
					t.Errorf("slower after %v, faster after %v, want at most %v and %v", slower, faster, test.slower, test.faster)
				}
			})
		})
	}
}

// TestAdaptiveSource checks the statistics and that a waiting request starts earlier when a
// response lowers the delay.
func TestAdaptiveSource(t *testing.T) {
	underRules(t, Rules{Adaptive: 10}, func(t *testing.T, w *world) {
		get := func(took time.Duration) Start {
			var ticket Ticket
			if err := w.Start(t.Context(), &ticket, true); err != nil {
				t.Fatal(err)
			}
			start := ticket.Start()
			time.Sleep(took)
			w.Answered(&ticket, 200, 1)
			ticket.End()
			w.note("%v %q", start.Delay, start.Cause)
			return start
		}
		get(time.Second)
		if s := w.Stats(time.Now()); s.Cause != Adaptive || s.Delay != 10*time.Second || s.ResponseTime != time.Second || s.NextStart.Sub(w.start) != 10*time.Second {
			t.Errorf("%+v", s)
		}
		if next, alone := w.NextStart(time.Now()); next.Sub(w.start) != 10*time.Second || !alone {
			t.Errorf("next at %v, alone: %t", next, alone)
		}
		get(200 * time.Millisecond)
		get(200 * time.Millisecond)
		w.check(`
1s 0s ""
10.2s 10s "adaptive"
18.2s 8s "adaptive"`)
	})
}

// TestFirstResponsesArePaced checks that a host without any delay gets no burst before its first
// response.
func TestFirstResponsesArePaced(t *testing.T) {
	underRules(t, Rules{Adaptive: 1}, func(t *testing.T, w *world) {
		if _, alone := w.NextStart(time.Now()); !alone {
			t.Error("several pages may be handed out")
		}
		for i := range 3 {
			go func() {
				var ticket Ticket
				w.Enter(t.Context(), &ticket)
				w.Start(t.Context(), &ticket, true)
				w.note("page %d", i)
				time.Sleep(300 * time.Millisecond)
				w.Answered(&ticket, 200, 1)
				ticket.End()
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		w.check(`
0s page 0
300ms page 1
600ms page 2`)
	})
}
