package pace

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/report"
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
		{"MaxInFlightPerHost applies instead", Rules{Adaptive: 2, MaxInFlightPerHost: 2}, `
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
			w.note("%v %q", start.Delay, start.Source)
			return start
		}
		get(time.Second)
		if s := w.Stats(time.Now()); s.Source != report.SourceAdaptive || s.Delay != 10*time.Second || s.ResponseTime != time.Second || s.NextStart.Sub(w.start) != 10*time.Second {
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
