package pace

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A rehearsal runs a limiter through a script. Each line has an instant, a call, and after an arrow
// the result.
//
//	0s    start a      -> yes
//	1s    start b      -> in 1s     (the wait from ready)
//	1s    start b      -> later     (when something has changed; "in 50s" if a place expires then)
//	1.2s  sent a
//	1.5s  end a
//	2s    429 a 10s    -> slower    (with Retry-After: 10; "no" if it is not a new incident)
//	2s    odd a        -> no        (503 without Retry-After)
//	2s    answered a
//	2s    status a 200           (the response has this status, see limiter.measure)
//	2s    done a 200             (status and end)
//	2s    ask https 5s           (the crawl delay of robots.txt)
//	2s    ask http/Bot 5s 1h     (read under a product token; must be read again after an hour)
//	2s    obey a http            (a obeys the crawl delay of http)
//	2s    renew a                (a reads a robots.txt)
//	2s    share 0.5              (the random numbers that are drawn from now on)
//	2s    delay        -> 5s
//	2s    gap          -> 0s        (the smallest so far)
type rehearsal struct {
	limiter
	tickets map[string]*Ticket
	host    *Host // has the counts of the tickets
}

// ticketOf returns a new ticket of a host, which counts it.
func ticketOf(h *Host) *Ticket {
	t := new(Ticket)
	t.host.Store(h)
	return t
}

// at returns the instant of a script after d.
func at(d time.Duration) instant { return instant(d + 1) }

func rehearse(t *testing.T, rules Rules, script string) {
	t.Helper()
	if rules.Jitter > 0 {
		rules.numbers = new(sameNumber)
	}
	r := rehearsal{limiter: limiter{rules: &rules}, tickets: map[string]*Ticket{}, host: new(Host)}
	for _, line := range strings.Split(strings.TrimSpace(script), "\n") {
		call, want, _ := strings.Cut(line, "->")
		words := strings.Fields(call)
		d, err := time.ParseDuration(words[0])
		if err != nil {
			t.Fatal(err)
		}
		if got := r.call(at(d), words[1], append(words[2:], "", "", "")); got != strings.TrimSpace(want) {
			t.Errorf("%s\ngot  %s", strings.TrimSpace(line), got)
		}
	}
}

func (r *rehearsal) ticket(name string) *Ticket {
	if r.tickets[name] == nil {
		r.tickets[name] = ticketOf(r.host)
	}
	return r.tickets[name]
}

func (r *rehearsal) call(now instant, verb string, args []string) string {
	switch t := r.ticket(args[0]); verb {
	case "start", "launch": // launch is a start that may still be aborted
		t.direct = verb == "start"
		if _, ok := r.start(now, t); ok {
			return "yes"
		}
		if wait, _ := r.ready(now, t); wait > 0 {
			return fmt.Sprint("in ", wait)
		}
		return "later"
	case "sent":
		r.sent(now, t)
		return ""
	case "end":
		if t.state >= started {
			r.finish(now, t)
		}
		return ""
	case "answered":
		r.accept(now, t)
		return ""
	case "status":
		status, _ := strconv.Atoi(args[1])
		r.measure(now, t, succeeded(status))
		return ""
	case "done":
		r.call(now, "status", args)
		return r.call(now, "end", args)
	case "429", "503":
		after, _ := time.ParseDuration(args[1])
		if r.slowDown(now, asStarted(t), after, 0) {
			return "slower"
		}
		return "no"
	case "odd":
		if r.unavailable(now, asStarted(t), 0) {
			return "slower"
		}
		return "no"
	case "ask":
		d, _ := time.ParseDuration(args[1])
		until := instant(math.MaxInt64)
		if lifetime, _ := time.ParseDuration(args[2]); lifetime > 0 {
			until = now.add(lifetime)
		}
		scheme, reader, _ := strings.Cut(args[0], "/")
		r.setCrawlDelay(now, Source{Scheme: scheme, Reader: reader}, d, until)
		return ""
	case "obey":
		scheme, reader, _ := strings.Cut(args[1], "/")
		t.obeyed = r.paced.crawlDelayOf(&Source{Scheme: scheme, Reader: reader})
		return ""
	case "renew":
		t.Renew()
		return ""
	case "share":
		value, _ := strconv.ParseFloat(args[0], 64)
		r.rules.numbers.(*sameNumber).value = value
		return ""
	case "gap":
		return r.gaps().smallest.String()
	case "delay":
		return r.delay(now).String()
	}
	return "what is " + verb + "?"
}

// asStarted returns t, or nil if it has never started.
func asStarted(t *Ticket) *Ticket {
	if t.at == 0 {
		return nil
	}
	return t
}

func TestLimiter(t *testing.T) {
	t.Run("one in flight while a delay is in force", func(t *testing.T) {
		rehearse(t, Rules{}, `
0s    start a       -> yes
0s    start b       -> yes
0s    ask http 1s
500ms start c       -> in 59.5s
600ms end a
600ms start c       -> in 59.4s
700ms end b
700ms start c       -> in 300ms
1s    start c       -> yes
5s    start d       -> in 56s
6s    end c
6s    start d       -> yes`)
	})
	t.Run("a crawl delay expires with its robots.txt", func(t *testing.T) {
		rehearse(t, Rules{}, `
0s    ask http 60s 10m
0s    ask https 0s 10m
0s    start a       -> yes
1s    end a
1s    start b       -> in 59s
5m    start b       -> yes
5m1s  end b
11m   delay         -> 1m0s
11m1s delay         -> 0s
11m1s start a       -> yes
11m1s start b       -> yes
11m2s end a
11m2s ask http 60s 10m
11m2s delay         -> 1m0s
15m   ask http 60s 10m
25m   delay         -> 1m0s
26m1s delay         -> 0s`)
	})
	t.Run("a crawl delay holds for one delay after each request that obeys it", func(t *testing.T) {
		rehearse(t, Rules{}, `
0s    ask http 2h 1h
0s    ask https 0s 1h
0s    start robots  -> yes
1s    end robots
1s    obey a http
2h    start a       -> yes
2h5s  sent a
2h9s  end a
4h5s  delay         -> 2h0m0s
4h6s  delay         -> 0s`)
	})
	t.Run("a crawl delay holds while a request that obeys it is on the wire", func(t *testing.T) {
		rehearse(t, Rules{}, `
0s    ask http 2h 1h
0s    start robots  -> yes
1s    end robots
1s    obey a http
2h    start a       -> yes
5h    delay         -> 2h0m0s
5h    end a
7h    delay         -> 2h0m0s
7h1s  delay         -> 0s`)
	})
	t.Run("a crawl delay holds while a robots.txt is read", func(t *testing.T) {
		rehearse(t, Rules{}, `
0s    ask http 90s 10m
0s    start a       -> yes
1s    end a
11m   renew robots
11m   start robots  -> yes
13m   delay         -> 1m30s
13m   end robots
14m30s delay        -> 1m30s
14m31s delay        -> 0s`)
	})
	t.Run("an expired crawl delay stays expired", func(t *testing.T) {
		rehearse(t, Rules{}, `
0s    ask http 60s 10m
0s    obey a http
11m1s delay         -> 0s
11m2s renew robots
11m2s start robots  -> yes
11m2s start a       -> yes
11m2s delay         -> 0s`)
	})
	t.Run("the longest crawl delay of all product tokens holds", func(t *testing.T) {
		rehearse(t, Rules{}, `
0s    ask http/One 1s 10m
0s    ask http/Two 10s 5m
0s    ask https/One 4s 10m
0s    delay         -> 10s
1s    ask http/One 1s 10m
1s    delay         -> 10s
6m    delay         -> 10s
6m1s  delay         -> 4s
6m1s  ask https/One 0s 10m
6m1s  delay         -> 1s
6m1s  ask http/One 2s 10m
6m1s  delay         -> 2s`)
	})
	t.Run("MaxInFlightPerHost", func(t *testing.T) {
		rehearse(t, Rules{MaxInFlightPerHost: 2}, `
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
	t.Run("FromEnd", func(t *testing.T) {
		rehearse(t, Rules{FromEnd: true, MaxInFlightPerHost: 5}, `
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
	t.Run("a request that never reaches the wire is forgotten", func(t *testing.T) {
		rehearse(t, Rules{MinDelay: 100 * time.Millisecond, MaxInFlightPerHost: 1}, `
0s    launch a      -> yes
200ms start b       -> in 800ms
1s    start b       -> yes
9h    start c       -> later
9h    end b
9h    start c       -> yes`)
	})
	t.Run("a request that never ends expires after a minute or ten delays", func(t *testing.T) {
		rehearse(t, Rules{MinDelay: 5 * time.Second}, `
0s    start a       -> yes
10s   sent a
10s   start b       -> in 50s
60s   start b       -> yes
60s   end a
60s   start c       -> in 1m0s
61s   sent b
119s  start c       -> in 1s
120s  start c       -> yes
121s  end c
121s  start d       -> in 4s
121s  end b
121s  ask http 1m
180s  start d       -> yes
180s  start e       -> in 10m0s
779s  start e       -> in 1s
780s  start e       -> yes
780s  gap           -> 51s`)
	})
	t.Run("a request that never ends expires if no delay was in force", func(t *testing.T) {
		rehearse(t, Rules{}, `
0s    start a       -> yes
0s    start b       -> yes
30s   start c       -> yes
40s   ask http 1s
40s   start d       -> in 20s
60s   start d       -> in 30s
90s   start d       -> yes
90s   end a
90s   end b
91s   end c
91s   start e       -> in 59s`)
	})
	t.Run("with FromEnd a delay follows an expired request", func(t *testing.T) {
		rehearse(t, Rules{FromEnd: true, MinDelay: 5 * time.Second}, `
0s    start a       -> yes
59s   start b       -> in 1s
60s   start b       -> in 5s
62s   end a
65s   start b       -> yes`)
	})
	t.Run("the longest delays do not overflow", func(t *testing.T) {
		rehearse(t, Rules{MinDelay: math.MaxInt64}, `
0s    start a       -> yes
1s    start b       -> in 2562047h47m15.8547758s`)
	})
	t.Run("a place under MaxInFlightPerHost does not expire", func(t *testing.T) {
		rehearse(t, Rules{MaxInFlightPerHost: 1, MinDelay: time.Second}, `
0s    start a       -> yes
9h    start b       -> later
9h    end a
9h    start b       -> yes`)
	})
	t.Run("Retry-After", func(t *testing.T) {
		rehearse(t, Rules{}, `
0s    start a       -> yes
1s    429 a 10s     -> slower
1s    end a
2s    start b       -> in 9s
2s    503 b 5s      -> no
11s   start b       -> yes
12s   503 b 277h    -> slower
12s   end b
12s   start c       -> in 1h0m0s
13s   429 c         -> slower
13s   delay         -> 4s`)
	})
	t.Run("the largest crawl delay holds", func(t *testing.T) {
		rehearse(t, Rules{MinDelay: 2 * time.Second}, `
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
	t.Run("MaxCrawlDelay", func(t *testing.T) {
		rehearse(t, Rules{MinDelay: 9 * time.Second, MaxCrawlDelay: 5 * time.Second}, `
0s    ask http 10s
0s    delay         -> 9s`)
		rehearse(t, Rules{MaxCrawlDelay: 5 * time.Second}, `
0s    ask http 10s
0s    delay         -> 5s
0s    ask http -10s
0s    delay         -> 0s`)
	})
}

// TestDelayCountsFromTheWire makes a dial take 400 ms. The delay counts from the moment when the
// request is sent.
func TestDelayCountsFromTheWire(t *testing.T) {
	t.Run("one in flight", func(t *testing.T) {
		rehearse(t, Rules{}, `
0s    ask http 500ms
0s    launch a      -> yes
400ms sent a
450ms end a
500ms start b       -> in 400ms
900ms start b       -> yes
900ms gap           -> 500ms
910ms sent b
910ms gap           -> 510ms
910ms end b
920ms sent b
1.4s  start c       -> in 10ms`)
	})
	t.Run("the later moment holds", func(t *testing.T) {
		rehearse(t, Rules{MinDelay: time.Second}, `
0s    launch a      -> yes
100ms sent a
300ms sent a
200ms sent a
400ms end a
1s    start b       -> in 300ms`)
	})
	t.Run("with FromEnd, from the end", func(t *testing.T) {
		rehearse(t, Rules{MinDelay: time.Second, FromEnd: true}, `
0s    launch a      -> yes
100ms sent a
400ms end a
1s    start b       -> in 400ms`)
	})
	t.Run("several in flight: an overtaken request counts from the moment when it is sent", func(t *testing.T) {
		rehearse(t, Rules{MinDelay: 200 * time.Millisecond, MaxInFlightPerHost: 3}, `
0s    launch a      -> yes
200ms launch b      -> yes
210ms gap           -> 200ms
210ms sent a
210ms gap           -> 10ms
300ms start c       -> in 110ms
410ms start c       -> yes`)
	})
	t.Run("no delay, no gap", func(t *testing.T) {
		rehearse(t, Rules{}, `
0s    start a       -> yes
1s    start b       -> yes
2s    sent a
2s    gap           -> 0s
3s    ask http 5s
3s    end a
3s    end b
7s    start c       -> yes
7s    gap           -> 5s
9s    ask http 0s
9s    start d       -> yes
9s    gap           -> 5s`)
	})
}

// TestLongestDelayDoesNotOverflow checks that sums with a very long delay end at the largest
// instant.
func TestLongestDelayDoesNotOverflow(t *testing.T) {
	const forever = 1<<63 - 1
	rules := Rules{MinDelay: forever}
	l := limiter{rules: &rules}
	l.start(at(time.Hour), ticketOf(new(Host)))
	l.inFlight = list{}
	for _, later := range []time.Duration{time.Hour, 2 * time.Hour, 200 * 365 * 24 * time.Hour} {
		if wait, ok := l.ready(at(later), nil); ok || wait != forever-(later-time.Hour) {
			t.Errorf("after %v: ready %v, wait %v", later, ok, wait)
		}
	}
	if i := at(time.Hour).add(forever); i != forever {
		t.Errorf("the sum is %d", i)
	}
}
