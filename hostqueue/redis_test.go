package hostqueue

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// redises runs a test with a Redis in memory and with a real one.
func redises(t *testing.T, test func(t *testing.T, client *redis.Client)) {
	t.Run("miniredis", func(t *testing.T) {
		_, client := newMini(t)
		test(t, client)
	})
	t.Run("redis-server", func(t *testing.T) { test(t, newServer(t).client(t)) })
}

// A transcript calls the functions that exchange something with Redis, and returns their answers.
type transcript struct {
	t *testing.T
	q *Queue
}

// do performs a call of a transcript:
//
//	add PATH...               records pages of a.test
//	begin TURN HOLDER         answers true or false
//	next HOLDER PATH OUTCOME  ends a page ("-" for none) and takes the next one
//	leave HOLDER PATH OUTCOME the same without taking a page
//	half PATH                 performs only the first step of add, as a process that is killed then
//	unlist                    removes all hosts from the list
//	listed                    answers the members of the list
func (x *transcript) do(call string) string {
	x.t.Helper()
	ctx := x.t.Context()
	words := strings.Fields(call)
	switch words[0] {
	case "add":
		for _, path := range words[1:] {
			err := x.q.Add(ctx, "http://a.test"+path)
			if err != nil {
				x.t.Fatal(err)
			}
		}
		return ""
	case "half":
		p, err := newPage("http://a.test"+words[1], 1)
		if err != nil {
			x.t.Fatal(err)
		}
		k := x.q.keys.host("a.test")
		turn, err := addScript.Run(ctx, x.q.client, []string{k.state, k.pages, k.seen}, 0, p.key, p.text()).Int()
		if err != nil {
			x.t.Fatal(err)
		}
		return fmt.Sprint(turn)
	case "unlist":
		x.q.client.Del(ctx, x.q.keys.listed())
		return ""
	case "begin":
		ok, err := x.q.begin(ctx, "a.test", words[1], words[2])
		if err != nil {
			x.t.Fatal(err)
		}
		return fmt.Sprint(ok)
	case "next", "leave":
		e := ending{outcome: words[3], pause: time.Hour}
		if words[2] != "-" {
			e.page = x.text(words[2])
			e.text = "again " + e.page
		}
		s, err := x.q.next(ctx, "a.test", words[1], e, words[0] == "next")
		if err != nil {
			x.t.Fatal(err)
		}
		return strings.TrimSpace(s.word + " " + strings.Replace(s.page, "http://a.test", "", 1))
	case "listed":
		return strings.Join(x.q.client.ZRange(ctx, x.q.keys.listed(), 0, -1).Val(), ", ")
	}
	x.t.Fatalf("unknown call %q", call)
	return ""
}

func (x *transcript) text(path string) string { return "0 1 http://a.test" + path }

// TestTranscripts checks the exchanges with Redis, including those that are repeated or late.
func TestTranscripts(t *testing.T) {
	for name, lines := range map[string]string{
		"one page after the other": `
			add /1 /2 /1
			listed = 0 a.test
			begin 0 x = true
			next x - done = page 0 1 /1
			add /3 /2
			next x /1 done = page 0 1 /2
			next x /2 denied = page 0 1 /3
			next x /3 failed = empty
		`,
		"an answer that is lost": `
			add /1 /2
			begin 0 x = true
			next x - done = page 0 1 /1
			next x - done = page 0 1 /1
			next x /1 done = page 0 1 /2
			next x /1 done = page 0 1 /2
			next x /2 done = empty
			next x /2 done = lost
		`,
		"a killed process": `
			add /1 /2
			begin 0 x = true
			next x - done = page 0 1 /1
			begin 0 y = true
			next x /1 done = lost
			next y - done = page 0 1 /1
			next y /1 done = page 0 1 /2
			next y /2 done = empty
		`,
		"a process that is late": `
			add /1 /2
			begin 0 x = true
			next x - done = page 0 1 /1
			begin 0 y = true
			next y - done = page 0 1 /1
			next y /1 done = page 0 1 /2
			next x /1 failed = lost
			next y /2 done = empty
			next x /1 failed = lost
		`,
		"a page that goes back": `
			add /1 /2
			begin 0 x = true
			next x - done = page 0 1 /1
			leave x /1 back = kept
			leave x /1 back = kept
			begin 0 y = true
			next y - done = page 0 1 /1
			leave y /1 done = kept
			next y - done = page 0 1 /2
			leave y /2 done = empty
		`,
		"a page that is added after the end of a turn": `
			add /1
			begin 0 x = true
			next x - done = page 0 1 /1
			next x /1 done = empty
			add /2
			listed = 0 a.test, 1 a.test
			begin 0 y = false
			begin 1 y = true
			next y - done = page 0 1 /2
			next y /2 done = empty
		`,
		"a process that is killed between the steps of add": `
			half /1 = 0
			listed =
			add /1
			listed = 0 a.test
			begin 0 x = true
			next x - done = page 0 1 /1
			half /2 = -1
			next x /1 done = page 0 1 /2
			next x /2 done = empty
			half /3 = 1
			add /1 /2
			listed = 0 a.test, 1 a.test
		`,
		"a host is listed once": `
			add /1
			unlist
			add /2
			listed =
		`,
		"a page that is retried": `
			add /1 /2
			begin 0 x = true
			next x - done = page 0 1 /1
			next x /1 retry = page 0 1 /2
			next x /1 retry = page 0 1 /2
			next x /2 done = pause
			add /3
			next x - done = page 0 1 /3
			leave x /3 done = pause
		`,
	} {
		t.Run(name, func(t *testing.T) {
			redises(t, func(t *testing.T, client *redis.Client) {
				x := &transcript{t: t, q: mustOpen(t, client, "test")}
				for line := range strings.Lines(lines) {
					call, want, _ := strings.Cut(strings.TrimSpace(line), " =")
					want = strings.TrimSpace(want)
					if call == "" {
						continue
					}
					if got := x.do(call); got != want {
						t.Fatalf("%s: %s, want %s", call, got, want)
					}
				}
			})
		})
	}
}

// TestCounts checks that each page is counted in exactly one field of Stats.
func TestCounts(t *testing.T) {
	redises(t, func(t *testing.T, client *redis.Client) {
		x := &transcript{t: t, q: mustOpen(t, client, "test")}
		for _, step := range []struct {
			call string
			want Stats
		}{
			{"add /1 /2 /3 /4 /5 /1", Stats{Known: 5, Waiting: 5}},
			{"begin 0 x", Stats{Known: 5, Waiting: 5}},
			{"next x - done", Stats{Known: 5, Waiting: 4, InProgress: 1}},
			{"next x /1 done", Stats{Known: 5, Waiting: 3, InProgress: 1, Done: 1}},
			{"next x /2 denied", Stats{Known: 5, Waiting: 2, InProgress: 1, Done: 1, Denied: 1}},
			{"next x /3 failed", Stats{Known: 5, Waiting: 1, InProgress: 1, Done: 1, Denied: 1, Failed: 1}},
			{"next x /4 retry", Stats{Known: 5, Waiting: 1, InProgress: 1, Done: 1, Denied: 1, Failed: 1}},
			{"leave x /5 back", Stats{Known: 5, Waiting: 2, Done: 1, Denied: 1, Failed: 1}},
		} {
			x.do(step.call)
			want := step.want
			want.Hosts = 1
			want.Active = 1
			if got, err := x.q.Stats(t.Context()); err != nil || got != want {
				t.Fatalf("%s: %+v, %v, want %+v", step.call, got, err, want)
			}
		}
	})
}

// TestRetryTimes checks when a page is retried, by the clock of Redis.
func TestRetryTimes(t *testing.T) {
	mini, client := newMini(t)
	start := time.Unix(1_999_999_999, 123e6) // miniredis cannot read scores such as 2e12
	mini.SetTime(start)
	q := mustOpen(t, client, "test")
	x := &transcript{t: t, q: q}
	x.do("add /1")
	x.do("begin 0 x")
	x.do("next x - done")
	e := ending{page: x.text("/1"), outcome: outcomeRetry, text: "1 1 http://a.test/1", pause: 90 * time.Second}
	for _, step := range []struct {
		at   time.Duration
		want step
	}{
		{0, step{word: stepPause, wait: 90 * time.Second}},
		{time.Minute, step{word: stepPause, wait: 30 * time.Second}},
		{90*time.Second - time.Millisecond, step{word: stepPause, wait: time.Millisecond}},
		{90 * time.Second, step{word: stepPage, page: "1 1 http://a.test/1"}},
	} {
		mini.SetTime(start.Add(step.at))
		if got, err := q.next(t.Context(), "a.test", "x", e, true); err != nil || got != step.want {
			t.Errorf("after %v: %+v, %v, want %+v", step.at, got, err, step.want)
		}
		e = ending{}
	}
}

// TestLeases checks which hosts are taken at which time, by the clock of Redis.
func TestLeases(t *testing.T) {
	mini, client := newMini(t)
	start := time.Unix(1_999_999_999, 123e6) // miniredis cannot read scores such as 2e12
	mini.SetTime(start)
	q := mustOpen(t, client, "test", Lease(10*time.Second))
	for i, host := range []string{"c", "a", "b"} {
		mini.SetTime(start.Add(time.Duration(i) * time.Millisecond))
		if err := q.Add(t.Context(), "http://"+host+".test/"); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		at        time.Duration
		process   string
		n         int
		move      map[member]time.Duration
		want      string
		processes int
		wait      time.Duration
	}{
		{at: time.Second, process: "x", n: 0, processes: 1},
		{at: time.Second, process: "x", n: 2, want: "[0 c.test 0 a.test]", processes: 1},
		{at: time.Second, process: "y", n: 2, want: "[0 b.test]", processes: 2, wait: 10 * time.Second},
		{at: 2 * time.Second, process: "y", n: 2, want: "[]", processes: 2, wait: 9 * time.Second},
		{at: 3 * time.Second, process: "y", n: 2, move: map[member]time.Duration{"0 a.test": time.Second}, want: "[]", processes: 2, wait: time.Second},
		{at: 4 * time.Second, process: "y", n: 2, want: "[0 a.test]", processes: 2, wait: 7 * time.Second},
		{at: 5 * time.Second, process: "y", n: 2, move: map[member]time.Duration{"0 b.test": 10 * time.Second, "1 b.test": 0}, want: "[]", processes: 2, wait: 6 * time.Second},
		{at: 11 * time.Second, process: "y", n: 2, want: "[0 c.test]", processes: 1, wait: 3 * time.Second}, // x was killed
	} {
		mini.SetTime(start.Add(step.at))
		if err := q.move(t.Context(), step.move); err != nil {
			t.Fatal(err)
		}
		got, err := q.take(t.Context(), step.process, step.n)
		if err != nil {
			t.Fatal(err)
		}
		hosts := fmt.Sprint(got.hosts)
		if step.want == "" {
			step.want = "[]"
		}
		if hosts != step.want || got.processes != step.processes || got.wait != step.wait || got.listed != 3 {
			t.Errorf("%s at %v: %s, %d processes, %d listed, wait %v, want %+v", step.process, step.at, hosts, got.processes, got.listed, got.wait, step)
		}
	}
}

// TestManyPages adds many pages of one host at once, as a hostile page may, and checks that
// MaxRecordedPerHost limits them.
func TestManyPages(t *testing.T) {
	redises(t, func(t *testing.T, client *redis.Client) {
		const pages = 2500
		var urls []string
		for n := range pages {
			urls = append(urls, "http://a.test/"+strconv.Itoa(n))
		}
		for most, want := range map[int]Stats{
			0:    {Hosts: 1, Active: 1, Known: pages, Waiting: pages},
			1700: {Hosts: 1, Active: 1, Known: 1700, Waiting: 1700, Dropped: 2 * 800},
		} {
			q := mustOpen(t, client, fmt.Sprint("most", most), MaxRecordedPerHost(most))
			for range 2 {
				if err := q.Add(t.Context(), urls...); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := q.Stats(t.Context()); err != nil || got != want {
				t.Errorf("MaxRecordedPerHost(%d): %+v, %v, want %+v", most, got, err, want)
			}
		}
	})
}

// TestTwoCrawls checks that crawls with different names share nothing, and that Remove removes one.
func TestTwoCrawls(t *testing.T) {
	redises(t, func(t *testing.T, client *redis.Client) {
		a, b := mustOpen(t, client, "a"), mustOpen(t, client, "a:b")
		for _, q := range []*Queue{a, b} {
			if err := q.Add(t.Context(), "http://a.test/", "http://b.test/"); err != nil {
				t.Fatal(err)
			}
			x := &transcript{t: t, q: q}
			if got := x.do("begin 0 x") + " " + x.do("next x - done"); got != "true page 0 1 /" {
				t.Fatal(got)
			}
		}
		before := client.DBSize(t.Context()).Val()
		if err := a.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		if after := client.DBSize(t.Context()).Val(); 2*after != before {
			t.Errorf("%d of %d keys remain, want half of them: %v", after, before, client.Keys(t.Context(), "*").Val())
		}
		if s, err := b.Stats(t.Context()); err != nil || s.Known != 2 || s.InProgress != 1 {
			t.Errorf("%+v, %v", s, err)
		}
		if err := b.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
		if keys := client.Keys(t.Context(), "*").Val(); len(keys) > 0 {
			t.Errorf("the keys %q remain", keys)
		}
	})
}

// TestCluster checks that each script uses keys of one hash slot only.
func TestCluster(t *testing.T) {
	server := newServer(t, "--cluster-enabled", "yes", "--port", strconv.Itoa(freePort(t)))
	client := server.client(t)
	if err := client.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the cluster is up", func() bool {
		return strings.Contains(client.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	})
	x := &transcript{t: t, q: mustOpen(t, client, "test")}
	x.do("add /1 /2")
	got, err := x.q.take(t.Context(), "process", 1)
	if err != nil || len(got.hosts) != 1 {
		t.Fatal(got, err)
	}
	for _, step := range []string{"begin 0 x = true", "next x - done = page 0 1 /1", "next x /1 failed = page 0 1 /2", "next x /2 retry = pause"} {
		call, want, _ := strings.Cut(step, " = ")
		if got := x.do(call); got != want {
			t.Errorf("%s: %s, want %s", call, got, want)
		}
	}
	if err := x.q.move(t.Context(), map[member]time.Duration{got.hosts[0]: 0}); err != nil {
		t.Error(err)
	}
	if s, err := x.q.Stats(t.Context()); err != nil || s.Known != 2 || s.Failed != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}
