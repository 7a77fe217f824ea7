package collyrobots

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// A rehearsal drives a limiter through a script: an instant, a call, and after an arrow the answer.
//
//	0s    start a      -> yes
//	1s    start b      -> in 1s     (ready tells when)
//	1s    start b      -> later     (when something has changed)
//	1.5s  end a
//	2s    429 a 10     -> slower    (Retry-After: 10; "no": nothing came of it)
//	2s    ask https 5s
//	2s    delay        -> 5s
type rehearsal struct {
	limiter
	urls map[string]*url.URL
}

func rehearse(t *testing.T, rules pacing, script string) {
	t.Helper()
	r := rehearsal{limiter: limiter{rules: &rules}, urls: map[string]*url.URL{}}
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r.settle(epoch)
	for _, line := range strings.Split(strings.TrimSpace(script), "\n") {
		call, want, _ := strings.Cut(line, "->")
		words := strings.Fields(call)
		at, err := time.ParseDuration(words[0])
		if err != nil {
			t.Fatal(err)
		}
		if got := r.call(epoch.Add(at), words[1], append(words[2:], "", "")); got != strings.TrimSpace(want) {
			t.Errorf("%s\ngot  %s", strings.TrimSpace(line), got)
		}
	}
}

func (r *rehearsal) url(name string) *url.URL {
	if r.urls[name] == nil {
		r.urls[name] = &url.URL{Path: name}
	}
	return r.urls[name]
}

func (r *rehearsal) call(now time.Time, verb string, args []string) string {
	u := r.url(args[0])
	switch verb {
	case "start", "launch": // launch: through Colly, which may abort it
		if r.start(now, u, verb == "start") {
			return "yes"
		}
		if wait, _ := r.ready(now); wait > 0 {
			return fmt.Sprint("in ", wait.Round(time.Microsecond)) // the bucket counts in floating point
		}
		return "later"
	case "end":
		r.end(now, u)
		return ""
	case "429", "503":
		header := http.Header{}
		if args[1] != "" {
			header.Set("Retry-After", args[1])
		}
		if r.throttle(now, u, header, 0) {
			return "slower"
		}
		return "no"
	case "ask":
		d, _ := time.ParseDuration(args[1])
		r.ask(now, args[0], wish{d, d})
		return ""
	default: // delay
		r.settle(now)
		return r.delay.String()
	}
}

func TestLimiter(t *testing.T) {
	t.Run("one in flight while a delay is in force", func(t *testing.T) {
		rehearse(t, pacing{}, `
0s    start a       -> yes
0s    start b       -> yes
0s    ask http 1s
500ms start c       -> later
600ms end a
600ms start c       -> later
700ms end b
700ms start c       -> in 300ms
1s    start c       -> yes
5s    start d       -> later
6s    end c
6s    start d       -> yes`)
	})
	t.Run("MaxInFlight", func(t *testing.T) {
		rehearse(t, pacing{inFlight: 2}, `
0s    start a       -> yes
0s    start b       -> yes
0s    start c       -> later
1s    end a
1s    start c       -> yes
1s    start d       -> later
1s    ask http 1s
2s    end b
2s    start d       -> yes
3s    start e       -> later`)
	})
	t.Run("DelayFromEnd", func(t *testing.T) {
		rehearse(t, pacing{fromEnd: true, inFlight: 5}, `
0s    ask http 1s
0s    start a       -> yes
3s    start b       -> later
4s    end a
4s    start b       -> in 1s
4.5s  end a
5s    start b       -> yes
5.2s  end b
6s    start c       -> in 200ms
6.2s  start c       -> yes`)
	})
	t.Run("what never reaches the wire is forgotten", func(t *testing.T) {
		rehearse(t, pacing{minDelay: 100 * time.Millisecond}, `
0s    launch a      -> yes
200ms start b       -> in 800ms
1s    start b       -> yes
9h    start c       -> later
9h    end b
9h    start c       -> yes`)
	})
	t.Run("Retry-After", func(t *testing.T) {
		rehearse(t, pacing{}, `
0s    start a       -> yes
1s    429 a 10      -> slower
1s    end a
2s    start b       -> in 9s
2s    503 b 5       -> no
11s   start b       -> yes
12s   503 b 999999  -> slower
12s   end b
12s   start c       -> in 1h0m0s
13s   429 c Thu,01Jan -> slower
13s   delay         -> 1s`)
	})
	t.Run("Retry-After as a date", func(t *testing.T) {
		l := limiter{rules: &pacing{}}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		l.throttle(now, nil, http.Header{"Retry-After": {"Thu, 01 Jan 2026 00:00:30 GMT"}}, 0)
		if wait, ok := l.ready(now.Add(time.Second)); ok || wait != 29*time.Second {
			t.Errorf("wait %v, want 29s", wait)
		}
	})
	t.Run("back-off doubles with each incident and is forgiven with time", func(t *testing.T) {
		rehearse(t, pacing{}, `
0s    start a       -> yes
0s    start b       -> yes
1s    429 a         -> slower
1s    429 b         -> no
1s    delay         -> 1s
1s    end a
1s    end b
1s    start c       -> yes
2s    503 c         -> slower
2s    delay         -> 2s
2s    end c
3s    start d       -> yes
3s    503 d         -> slower
3s    delay         -> 4s
42s   delay         -> 4s
43s   delay         -> 2s
63s   delay         -> 1s
73s   delay         -> 0s`)
	})
	t.Run("the largest wish holds", func(t *testing.T) {
		rehearse(t, pacing{minDelay: 2 * time.Second}, `
0s    delay         -> 2s
0s    ask http 1s
0s    delay         -> 2s
0s    ask https 5s
0s    delay         -> 5s
0s    ask http 7s
0s    delay         -> 7s
0s    ask http 0s
0s    ask https 0s
0s    429 x         -> slower
0s    delay         -> 2s`)
	})
}

func TestBackOffIsBoundedAndJittered(t *testing.T) {
	var b backOff
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 20 {
		now = now.Add(time.Millisecond)
		b.grow(now, now, 0.5)
	}
	if got, want := b.at(now), maxBackOff+maxBackOff/4; got != want {
		t.Errorf("after 20 incidents %v, want %v", got, want)
	}
	if got := b.at(now.Add(10 * maxBackOff)); got != (maxBackOff+maxBackOff/4)/2 {
		t.Errorf("after a quiet time %v, want half", got)
	}
}
