package policy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/store"
)

func with(d dialect.Dialect, s store.Store) policy.Options {
	return policy.Options{Dialect: d, Store: s}
}

// TestOneFetchForAllDialects checks that each dialect uses the stored result of one fetch.
func TestOneFetchForAllDialects(t *testing.T) {
	const letters = "-DoR"
	for _, test := range []struct {
		answer func(*http.Request) (*http.Response, error)
		want   string // as in TestStatusTable
	}{
		{reply(200, closed), "RRRRRRR"},
		{reply(206, closed), "RRoRRoR"},
		{reply(404, closed), "ooooooo"},
		{reply(429, closed), "o-ooooo"},
		{redirects(6, 301, "", reply(200, closed)), "oooo"}, // temoto follows more redirects, so it has to fetch
	} {
		synctest.Test(t, func(t *testing.T) {
			s := store.NewMemory()
			site := &site{answer: test.answer}
			got := ""
			asked := 0
			for i, d := range dialect.All()[:len(test.want)] {
				c := newCrawler(t, with(d, s), nil)
				c.site = site
				p := c.get(t)
				got += letters[p.RobotsStatus : p.RobotsStatus+1]
				if p.RobotsStatus == policy.Rules && allows(p, "/x") {
					t.Errorf("%v: /x is allowed", d)
				}
				if i == 0 {
					asked = site.asked()
				}
			}
			if got != test.want || site.asked() != asked {
				t.Errorf("got %s, want %s; %d requests, want the %d of the first dialect", got, test.want, site.asked(), asked)
			}
		})
	}
}

// TestDialectFollowsMoreRedirects checks that a dialect that follows more redirects does not use
// the result of one that gave up earlier.
func TestDialectFollowsMoreRedirects(t *testing.T) {
	s := store.NewMemory()
	site := &site{answer: redirects(7, 301, "", reply(200, closed))}
	for _, step := range []struct {
		dialect dialect.Dialect
		want    policy.RobotsStatus
		asked   int
	}{
		{dialect.RFC9309(), policy.NoRobots, 6},
		{dialect.Temoto(), policy.Rules, 6 + 8},
		{dialect.Google(), policy.NoRobots, 6 + 8}, // knows the number of redirects
	} {
		c := newCrawler(t, with(step.dialect, s), nil)
		c.site = site
		if p := c.get(t); p.RobotsStatus != step.want || site.asked() != step.asked {
			t.Errorf("%v: got %v after %d requests, want %v after %d", step.dialect, p.RobotsStatus, site.asked(), step.want, step.asked)
		}
	}
}

// TestCodingsAndDialects checks that a dialect that decodes and one that ignores codings do not
// share a file with a content coding: each fetches it.
func TestCodingsAndDialects(t *testing.T) {
	for _, test := range []struct {
		name, coding, body string
		states             []string // under RFC 9309, temoto, Google, temoto, RFC 9309, in this order
		asked              []int    // requests in all, after each
	}{
		{"plain", "", closed, []string{"follow", "follow", "follow", "follow", "follow"}, []int{1, 1, 1, 1, 1}},
		{"no coding", "utf-8", closed, []string{"follow", "follow", "follow", "follow", "follow"}, []int{1, 1, 1, 1, 1}},
		{"br", "br", closed, []string{"disallow_all", "follow", "disallow_all", "follow", "disallow_all"}, []int{1, 2, 3, 4, 5}},
		{"gzip", "gzip", zipped(closed), []string{"follow", "follow", "follow", "follow", "follow"}, []int{1, 1, 1, 1, 1}},
		{"x-gzip", "x-gzip", zipped(closed), []string{"follow", "allow_all", "follow", "allow_all", "follow"}, []int{1, 2, 3, 4, 5}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := store.NewMemory()
				site := &site{answer: reply(200, test.body, "Content-Encoding", test.coding)}
				for i, d := range []dialect.Dialect{dialect.RFC9309(), dialect.Temoto(), dialect.Google(), dialect.Temoto(), dialect.RFC9309()} {
					c := newCrawler(t, with(d, s), nil)
					c.site = site
					time.Sleep(time.Second)
					p := c.get(t)
					if got := state(p, "/x"); got != test.states[i] || site.asked() != test.asked[i] {
						t.Errorf("%v: got %s (%v) after %d requests, want %s after %d", d, got, p.Err(), site.asked(), test.states[i], test.asked[i])
					}
				}
			})
		})
	}
}

// TestLongFilesAndDialects checks that a dialect that reads long files fetches a file again if only
// its beginning is stored, and that the other dialects use the longer file.
func TestLongFilesAndDialects(t *testing.T) {
	for _, test := range []struct {
		name  string
		size  int
		asked int // requests in all, after temoto
	}{
		{"as long as the limit", dialect.SizeLimit, 1},
		{"one byte longer", dialect.SizeLimit + 1, 2},
		{"twice as long", 2 * dialect.SizeLimit, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			last := "\nDisallow: /y\n"
			s := store.NewMemory()
			site := &site{answer: reply(200, closed+strings.Repeat("#", test.size-len(closed)-len(last))+last)}
			for i, d := range []dialect.Dialect{dialect.RFC9309(), dialect.Temoto(), dialect.Temoto(), dialect.Google(), dialect.Temoto()} {
				c := newCrawler(t, with(d, s), nil)
				c.site = site
				p := c.get(t)
				want := 1
				if i > 0 {
					want = test.asked
				}
				if allows(p, "/x") || site.asked() != want || d == dialect.Temoto() && allows(p, "/y") {
					t.Errorf("%v: /x %t, /y %t (%v) after %d requests, want %d", d, allows(p, "/x"), allows(p, "/y"), p.Err(), site.asked(), want)
				}
			}
		})
	}
}

// TestOutageAcrossProcesses checks that a new process continues an outage with the stored copy and
// failures, and that a failure is in the store when Get returns.
func TestOutageAcrossProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.OpenDir(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		site := &site{answer: reply(200, closed, "ETag", `"a"`)}
		process := func(f func(c *crawler)) {
			c := newCrawler(t, with(dialect.Google(), s), nil)
			c.site = site
			f(c)
			c.Close()
		}
		expect := func(want policy.RobotsStatus, asked int) {
			t.Helper()
			process(func(c *crawler) {
				if p := c.get(t); p.RobotsStatus != want || site.asked() != asked {
					t.Errorf("got %v after %d requests, want %v after %d", p.RobotsStatus, site.asked(), want, asked)
				}
			})
		}
		answerPage := func(c *crawler) {
			c.get(t)
			c.Answered(c.page)
			time.Sleep(hour)
			c.get(t)
		}
		expect(policy.Rules, 1)
		time.Sleep(day - time.Nanosecond)
		expect(policy.Rules, 1)
		time.Sleep(time.Nanosecond)
		site.says(reply(503, "", "Retry-After", "3600"))
		expect(policy.Unreachable, 2)
		time.Sleep(hour - time.Nanosecond)
		expect(policy.Unreachable, 2) // and does not fetch again too soon
		time.Sleep(11*hour + time.Nanosecond)
		expect(policy.Rules, 3)
		time.Sleep(20 * day)
		process(answerPage)
		time.Sleep(10 * day)
		expect(policy.Unreachable, 6) // the answer is ten days old
		time.Sleep(hour)
		process(answerPage)
		time.Sleep(6 * day)
		expect(policy.NoRobots, 9) // the answer is six days old, and stored
		site.says(reply(200, later))
		time.Sleep(hour)
		expect(policy.Rules, 10)
	})
}

// TestValidatorsAcrossProcesses checks that a new process has the stored validators, and that a 304
// renews the stored body for another day.
func TestValidatorsAcrossProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.NewMemory()
		site := &site{answer: reply(200, closed, "ETag", `"a"`)}
		for i := range 3 {
			c := newCrawler(t, with(dialect.RFC9309(), s), nil)
			c.site = site
			if p := c.get(t); allows(p, "/x") || site.asked() != 2*i+1 {
				t.Errorf("run %d: got %+v after %d requests, want %d", i, p, site.asked(), 2*i+1)
			}
			site.says(reply(304, ""))
			time.Sleep(day)
			if p := c.get(t); allows(p, "/x") || site.last().Header.Get("If-None-Match") != `"a"` {
				t.Errorf("run %d, second fetch: got %+v with If-None-Match %q", i, p, site.last().Header.Get("If-None-Match"))
			}
			time.Sleep(day)
		}
	})
}

// TestRecordRemoved checks that a copy whose record was removed can still be confirmed. It cannot
// be stored again without its text, so the next process fetches the file.
func TestRecordRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.NewMemory()
		c := newCrawler(t, with(dialect.RFC9309(), s), reply(200, closed, "ETag", `"a"`))
		c.get(t)
		err := s.Update(context.Background(), "robots:https://example.com", 0, func(old []byte) ([]byte, error) {
			if old == nil {
				t.Error("no record")
			}
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(day)
		c.site.says(reply(304, ""))
		if p := c.get(t); p.RobotsStatus != policy.Rules || allows(p, "/x") {
			t.Errorf("after 304: got %+v, want rules", p)
		}
		next := newCrawler(t, with(dialect.RFC9309(), s), reply(200, closed))
		if p := next.get(t); p.RobotsStatus != policy.Rules || next.site.asked() != 1 {
			t.Errorf("the next process got %+v after %d requests, want rules after 1", p, next.site.asked())
		}
	})
}

// TestStoredByAnotherProcess checks that a file that another process has stored is used instead of
// a fetch, also by a cache with an older copy.
func TestStoredByAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.NewMemory()
		mine := newCrawler(t, with(dialect.RFC9309(), s), reply(200, closed))
		mine.get(t)
		time.Sleep(day)
		theirs := newCrawler(t, with(dialect.RFC9309(), s), reply(200, later))
		theirs.get(t)
		if p := mine.get(t); allows(p, "/z") || !allows(p, "/x") || mine.site.asked() != 1 {
			t.Errorf("got %+v after %d requests, want the newer file after 1", p, mine.site.asked())
		}
	})
}

// TestRecordFromTheFuture checks that a file is fetched again if its record is from a clock that
// was more than a minute ahead.
func TestRecordFromTheFuture(t *testing.T) {
	const copyAt = `"copy":{"class":2,"status":200,"fetched":"%[1]s","max_age":-1,"sha256":"` +
		"cc4c823f58e976c58dccd50b754c3ce8447887f5fcb0abed170a2030cd2a4460" + `"}`
	for _, test := range []struct {
		name   string
		record string // without its text; %[1]s is its time, %[2]s is now
		ahead  time.Duration
		asked  int
	}{
		{"a copy", copyAt, time.Minute + time.Second, 1},
		{"a copy from ten years later", copyAt, 3650 * day, 1},
		{"a copy of a clock a minute ahead", copyAt, time.Minute, 0},
		{"a failure", `"failure":{"first":"%[1]s","last":"%[1]s","count":1,"class":7,"status":503}`, hour, 1},
		{"a failure whose end is in the future", `"failure":{"first":"%[2]s","last":"%[1]s","count":2,"class":7,"status":503}`, hour, 1},
		{"a failure of a clock a minute ahead", `"failure":{"first":"%[1]s","last":"%[1]s","count":1,"class":7,"status":503}`, time.Minute, 0},
		{"a failure with a Retry-After of years", `"failure":{"first":"%[2]s","last":"%[1]s","count":1,"class":7,"status":503,"wait":99999999999999999}`, 0, 1},
		{"the answer of a page", `"failure":{"first":"%[2]s","last":"%[2]s","count":1,"class":7,"status":503,"answered":"%[1]s"}`, hour, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				o := with(dialect.RFC9309(), store.NewMemory())
				o.Log = slog.New(slog.NewTextHandler(&log, nil))
				record := fmt.Sprintf(test.record, time.Now().Add(test.ahead).Format(time.RFC3339), time.Now().Format(time.RFC3339))
				err := o.Store.Update(context.Background(), "robots:https://example.com", 0, func([]byte) ([]byte, error) {
					return []byte(`{"version":1,` + record + "}\n" + later), nil
				})
				if err != nil {
					t.Fatal(err)
				}
				c := newCrawler(t, o, reply(200, closed))
				p := c.get(t)
				if c.site.asked() != test.asked || test.asked == 1 && (p.RobotsStatus != policy.Rules || allows(p, "/x")) {
					t.Errorf("got %+v after %d requests, want %d", p, c.site.asked(), test.asked)
				}
				if logged := strings.Contains(log.String(), "in the future"); logged != (test.asked == 1) {
					t.Errorf("logged: %t, log %q", logged, log.String())
				}
				again := newCrawler(t, with(dialect.RFC9309(), o.Store), nil)
				if p := again.get(t); again.site.asked() != 0 || p.Fetched().After(time.Now().Add(time.Minute)) {
					t.Errorf("the next process got %+v after %d requests, want no request", p, again.site.asked())
				}
			})
		})
	}
}

// broken is a store that fails, panics or has an unusable record.
type broken struct {
	value []byte
	err   error
	panic bool
}

func (b broken) Get(context.Context, string) ([]byte, error) {
	if b.panic {
		panic("store")
	}
	return b.value, b.err
}

func (b broken) Update(_ context.Context, _ string, _ time.Duration, f func([]byte) ([]byte, error)) error {
	if b.err != nil {
		return b.err
	}
	_, err := f(b.value)
	return err
}

func (broken) Close() error { return nil }

// TestBrokenStore checks that a store that fails is logged, and that the crawl continues without
// it.
func TestBrokenStore(t *testing.T) {
	for name, s := range map[string]broken{
		"failing":         {err: errors.New("disk on fire")},
		"not a record":    {value: []byte("\x00not a record")},
		"empty":           {value: []byte{}},
		"unknown version": {value: []byte(`{"version":99}` + "\n")},
		"altered":         {value: []byte(`{"version":1,"copy":{"class":2,"status":200,"sha256":"00"}}` + "\n" + "User-agent: *\n")},
		"unknown class":   {value: []byte(`{"version":1,"failure":{"class":200,"count":1}}` + "\n")},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			o := with(dialect.RFC9309(), s)
			o.Log = slog.New(slog.NewTextHandler(&log, nil))
			c := newCrawler(t, o, reply(200, closed))
			for range 2 {
				if p := c.get(t); p.RobotsStatus != policy.Rules || allows(p, "/x") {
					t.Errorf("got %+v, want rules", p)
				}
			}
			if c.site.asked() != 1 || !strings.Contains(log.String(), "robots=https://example.com/robots.txt") {
				t.Errorf("%d requests, want 1; log %q", c.site.asked(), log.String())
			}
		})
	}
	c := newCrawler(t, with(dialect.RFC9309(), broken{panic: true}), reply(200, closed))
	if p := c.get(t); p.RobotsStatus != policy.Unreachable || p.Err() == nil {
		t.Errorf("panic in the store: got %+v, want unreachable", p)
	}
}

// damagedOnce is a store whose first Update reports a damaged record.
type damagedOnce struct {
	store.Store
	reported bool
}

func (d *damagedOnce) Update(ctx context.Context, key string, ttl time.Duration, f func([]byte) ([]byte, error)) error {
	if !d.reported {
		d.reported = true
		return &store.CorruptError{Path: "here", Aside: "there", Err: errors.New("torn")}
	}
	return d.Store.Update(ctx, key, ttl, f)
}

// TestDamagedRecord checks that a damaged record is logged and written again.
func TestDamagedRecord(t *testing.T) {
	var log bytes.Buffer
	s := store.NewMemory()
	o := with(dialect.RFC9309(), &damagedOnce{Store: s})
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	newCrawler(t, o, reply(200, closed)).get(t)
	if !strings.Contains(log.String(), "here was moved to there") {
		t.Errorf("log %q", log.String())
	}
	again := newCrawler(t, with(dialect.RFC9309(), s), reply(404, ""))
	if p := again.get(t); p.RobotsStatus != policy.Rules || again.site.asked() != 0 {
		t.Errorf("the record was not written: %+v", p)
	}
}

// TestUnreadableFileIsLogged checks that a file that cannot be read is logged with its status, and
// that nothing else is logged.
func TestUnreadableFileIsLogged(t *testing.T) {
	var log bytes.Buffer
	o := under(dialect.RFC9309())
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	newCrawler(t, o, reply(200, closed)).get(t)
	newCrawler(t, o, reply(404, "")).get(t)
	if log.Len() != 0 {
		t.Errorf("got log %s, want none", log.String())
	}
	newCrawler(t, o, refuse).get(t)
	for _, want := range []string{"https://example.com/robots.txt", errReset.Error(), "robots_status=unreachable"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log: %s", want, log.String())
		}
	}
}

// TestLogHandlerUsesStore checks that a slog.Handler may use the store, because nothing is logged
// while the store is in use.
func TestLogHandlerUsesStore(t *testing.T) {
	s := store.NewMemory()
	const key = "robots:https://example.com"
	garbage := func([]byte) ([]byte, error) { return []byte("garbage"), nil }
	if err := s.Update(t.Context(), key, time.Hour, garbage); err != nil {
		t.Fatal(err)
	}
	o := with(dialect.RFC9309(), s)
	h := &storeHandler{Handler: slog.DiscardHandler, store: s, key: key}
	o.Log = slog.New(h)
	newCrawler(t, o, reply(200, closed)).get(t)
	if h.logged == 0 || h.stuck {
		t.Errorf("logged %d times, the handler could use the store: %v", h.logged, !h.stuck)
	}
}

// A storeHandler is a slog.Handler that updates a record of a store for each record of the log.
type storeHandler struct {
	slog.Handler
	store  store.Store
	key    string
	logged int
	stuck  bool
}

func (h *storeHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *storeHandler) Handle(context.Context, slog.Record) error {
	h.logged++
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.store.Update(context.Background(), h.key, time.Hour, func(val []byte) ([]byte, error) { return val, nil })
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		h.stuck = true
	}
	return nil
}
