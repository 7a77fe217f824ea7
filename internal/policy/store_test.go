package policy_test

import (
	"bytes"
	"context"
	"errors"
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

// TestFiveDialectsOneFetch: facts are kept as fetched, so one fetch serves every reading.
func TestFiveDialectsOneFetch(t *testing.T) {
	const letters = "-DoR"
	for _, test := range []struct {
		answer func(*http.Request) (*http.Response, error)
		want   string // as in TestStatusTable
	}{
		{reply(200, closed), "RRRRR"},
		{reply(206, closed), "RRoRR"},
		{reply(404, closed), "ooooo"},
		{reply(429, closed), "o-ooo"},
		{redirects(6, 301, "", reply(200, closed)), "oooo"}, // temoto follows further, and so has to ask
	} {
		synctest.Test(t, func(t *testing.T) {
			s := store.Memory()
			site := &site{answer: test.answer}
			got, asked := "", 0
			for i, d := range dialect.All()[:len(test.want)] {
				c := newCrawler(t, with(d, s), nil)
				c.site = site
				p := c.get(t)
				got += letters[p.Meaning : p.Meaning+1]
				if p.Meaning == policy.Rules && allows(p, "/x") {
					t.Errorf("%v: /x is open", d)
				}
				if i == 0 {
					asked = site.asked()
				}
			}
			if got != test.want || site.asked() != asked {
				t.Errorf("%s, want %s; %d requests after %d", got, test.want, site.asked(), asked)
			}
		})
	}
}

// TestFartherReaders: who follows more redirects than the one before is not bound by where that one gave up.
func TestFartherReaders(t *testing.T) {
	s := store.Memory()
	site := &site{answer: redirects(7, 301, "", reply(200, closed))}
	for _, step := range []struct {
		dialect dialect.Dialect
		want    policy.Meaning
		asked   int
	}{
		{dialect.RFC9309(), policy.NoRestriction, 6},
		{dialect.Temoto(), policy.Rules, 6 + 8},
		{dialect.Google(), policy.NoRestriction, 6 + 8}, // knows how far it was
	} {
		c := newCrawler(t, with(step.dialect, s), nil)
		c.site = site
		if p := c.get(t); p.Meaning != step.want || site.asked() != step.asked {
			t.Errorf("%v: %v after %d requests, want %v after %d", step.dialect, p.Meaning, site.asked(), step.want, step.asked)
		}
	}
}

// TestRestart: an outage goes on where it was, copy and first failure included, in a new process; a failure is in the
// store when Get returns.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Dir(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		site := &site{answer: reply(200, closed, "ETag", `"a"`)}
		process := func(f func(c *crawler)) {
			c := newCrawler(t, with(dialect.Google(), s), nil)
			c.site = site
			f(c)
			_ = c.Close()
		}
		expect := func(want policy.Meaning, asked int) {
			t.Helper()
			process(func(c *crawler) {
				if p := c.get(t); p.Meaning != want || site.asked() != asked {
					t.Errorf("%v after %d requests, want %v after %d", p.Meaning, site.asked(), want, asked)
				}
			})
		}
		expect(policy.Rules, 1)
		time.Sleep(day - time.Nanosecond)
		expect(policy.Rules, 1)
		time.Sleep(time.Nanosecond)
		site.says(reply(503, "", "Retry-After", "3600"))
		expect(policy.Unreachable, 2)
		time.Sleep(hour - time.Nanosecond)
		expect(policy.Unreachable, 2) // and does not ask again too soon
		time.Sleep(11*hour + time.Nanosecond)
		expect(policy.Rules, 3)
		time.Sleep(20 * day)
		process(func(c *crawler) { c.get(t); c.Answered(c.page); time.Sleep(hour); c.get(t) })
		time.Sleep(10 * day)
		expect(policy.Unreachable, 6) // the answer is ten days old
		time.Sleep(hour)
		process(func(c *crawler) { c.get(t); c.Answered(c.page); time.Sleep(hour); c.get(t) })
		time.Sleep(6 * day)
		expect(policy.NoRestriction, 9) // six days old, and remembered
		site.says(reply(200, later))
		time.Sleep(hour)
		expect(policy.Rules, 10)
	})
}

// TestConditionalRestart: validators are kept with the body, which a 304 makes good for another day.
func TestConditionalRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.Memory()
		site := &site{answer: reply(200, closed, "ETag", `"a"`)}
		for i := range 3 {
			c := newCrawler(t, with(dialect.RFC9309(), s), nil)
			c.site = site
			if p := c.get(t); allows(p, "/x") || site.asked() != 2*i+1 {
				t.Errorf("run %d: %+v after %d requests", i, p, site.asked())
			}
			site.says(reply(304, ""))
			time.Sleep(day)
			if p := c.get(t); allows(p, "/x") || site.last().Header.Get("If-None-Match") != `"a"` {
				t.Errorf("run %d: %+v", i, p)
			}
			time.Sleep(day)
		}
	})
}

// TestRecordGone: a copy that is confirmed after its record has gone cannot be stored again, for want of its text; who
// comes next has to fetch, and does.
func TestRecordGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.Memory()
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
		if p := c.get(t); p.Meaning != policy.Rules || allows(p, "/x") {
			t.Errorf("%+v", p)
		}
		next := newCrawler(t, with(dialect.RFC9309(), s), reply(200, closed))
		if p := next.get(t); p.Meaning != policy.Rules || next.site.asked() != 1 {
			t.Errorf("%+v after %d requests", p, next.site.asked())
		}
	})
}

// TestOthersFetched: what another process has fetched since is used instead of a fetch, also by a cache that has an
// older copy.
func TestOthersFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.Memory()
		mine := newCrawler(t, with(dialect.RFC9309(), s), reply(200, closed))
		mine.get(t)
		time.Sleep(day)
		theirs := newCrawler(t, with(dialect.RFC9309(), s), reply(200, later))
		theirs.get(t)
		if p := mine.get(t); allows(p, "/z") || !allows(p, "/x") || mine.site.asked() != 1 {
			t.Errorf("%+v after %d requests", p, mine.site.asked())
		}
	})
}

// broken is a store that fails, panics or has nonsense in it.
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

// TestBrokenStore: a store that is no help is said to be, and the crawl goes on by what the process knows.
func TestBrokenStore(t *testing.T) {
	for name, s := range map[string]broken{
		"failing":          {err: errors.New("disk on fire")},
		"nonsense":         {value: []byte("\x00nonsense")},
		"empty":            {value: []byte{}},
		"of the future":    {value: []byte(`{"version":99}` + "\n")},
		"altered":          {value: []byte(`{"version":1,"copy":{"class":2,"status":200,"sha256":"00"}}` + "\n" + "User-agent: *\n")},
		"of no such class": {value: []byte(`{"version":1,"failure":{"class":200,"count":1}}` + "\n")},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			o := with(dialect.RFC9309(), s)
			o.Log = slog.New(slog.NewTextHandler(&log, nil))
			c := newCrawler(t, o, reply(200, closed))
			for range 2 {
				if p := c.get(t); p.Meaning != policy.Rules || allows(p, "/x") {
					t.Errorf("%+v", p)
				}
			}
			if c.site.asked() != 1 || !strings.Contains(log.String(), "robots=https://example.com/robots.txt") {
				t.Errorf("%d requests, log %q", c.site.asked(), log.String())
			}
		})
	}
	c := newCrawler(t, with(dialect.RFC9309(), broken{panic: true}), reply(200, closed))
	if p := c.get(t); p.Meaning != policy.Unreachable || p.Err == nil {
		t.Errorf("panic in the store: %+v", p)
	}
}

// damagedOnce reports a damaged record at the first Update.
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

func TestDamagedRecord(t *testing.T) {
	var log bytes.Buffer
	s := store.Memory()
	o := with(dialect.RFC9309(), &damagedOnce{Store: s})
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	newCrawler(t, o, reply(200, closed)).get(t)
	if !strings.Contains(log.String(), "here was damaged and is now there") {
		t.Errorf("log %q", log.String())
	}
	again := newCrawler(t, with(dialect.RFC9309(), s), reply(404, ""))
	if p := again.get(t); p.Meaning != policy.Rules || again.site.asked() != 0 {
		t.Errorf("the record was not written: %+v", p)
	}
}

// TestLog: a file that cannot be read is logged with what was made of it; one that can is not.
func TestLog(t *testing.T) {
	var log bytes.Buffer
	o := under(dialect.RFC9309())
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	newCrawler(t, o, reply(200, closed)).get(t)
	newCrawler(t, o, reply(404, "")).get(t)
	if log.Len() != 0 {
		t.Errorf("logged: %s", log.String())
	}
	newCrawler(t, o, refuse).get(t)
	for _, want := range []string{"https://example.com/robots.txt", errReset.Error(), "meaning=unreachable"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log: %s", want, log.String())
		}
	}
}
