package arrivals

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/storage"
)

// newStorage returns a Storage of v around an empty storage.
func newStorage(t *testing.T, v *Visits) *Storage {
	t.Helper()
	inner := new(storage.InMemoryStorage)
	if err := inner.Init(); err != nil {
		t.Fatal(err)
	}
	return v.Wrap(inner)
}

// TestAfter checks when the calls of After end. Each step is a visit (+hash), its arrival (-hash),
// the end of its request without a record (!hash), a redirect to its URL (>hash) or a call of After
// (a letter).
func TestAfter(t *testing.T) {
	for _, test := range []struct{ steps, want string }{
		{"a", "a"},
		{"+1 a", ""},
		{"+1 a -1", "a"},
		{"+1 a +2 b -1", "a"},
		{"+1 a +2 b -2", ""},
		{"+1 a +2 b -2 -1", "a b"},
		{"+1 a b -1", "a b"},
		{"+1 +2 a -1", ""},
		{"+1 +2 a -1 -2", "a"},
		{"+1 a -1 +1 b", "a"},            // a revisit of the same URL is another visit
		{"+1 +1 a -1", ""},               // two collectors
		{"+1 a +1 >1", ""},               // the redirect is the later one
		{"+1 a +1 >1 -1", "a"},           //
		{"+1 a !1", "a"},                 // a request that was not recorded, without links
		{"+1 a +2 !1", ""},               // 2 may be a link of 1
		{"+1 a +2 !1 -2", "a"},           //
		{"+1 a +2 !1 +3 !2 b", ""},       // 3 may be a link of 2, and so of 1
		{"+1 a +2 !1 +3 !2 b -3", "a b"}, //
		{"+1 a +2 !1 !2", "a"},           //
		{"+1 a +2 !1 b +3 -2", "a b"},    // 3 is no link of 1
		{"-1 a", "a"},                    // a retry arrives without a visit
		{">1 a", "a"},                    // a redirect to a visited URL
		{"+1 a close", "a!"},             // pages that may have lost links
		{"close +1 a", "a!"},             // nothing is seen after Close
		{"+1 close a -1", "a!"},          //
	} {
		v := New(nil)
		s := newStorage(t, v)
		var ended []string
		for step := range strings.FieldsSeq(test.steps) {
			var hash uint64
			fmt.Sscan(step[1:], &hash)
			switch {
			case step == "close":
				v.Close()
			case step[0] == '+':
				s.Visited(hash)
			case step[0] == '-':
				s.Arriving(hash).Arrived()
			case step[0] == '!':
				s.Arriving(hash).Ended()
			case step[0] == '>':
				v.Drop(hash)
			default:
				v.After(func(complete bool) {
					if !complete {
						step += "!"
					}
					ended = append(ended, step)
				})
			}
		}
		if got := strings.Join(ended, " "); got != test.want {
			t.Errorf("%s: %q have ended, want %q", test.steps, got, test.want)
		}
	}
}

// A visit of one collector is not taken for that of another one.
func TestArrivingAtAnotherCollector(t *testing.T) {
	v := New(nil)
	a := newStorage(t, v)
	b := newStorage(t, v)
	a.Visited(1)
	if b.Arriving(1) != nil {
		t.Error("the visit has arrived at the wrong collector")
	}
	if a.Arriving(1) == nil {
		t.Error("the visit is gone")
	}
}

func TestWrap(t *testing.T) {
	v := New(nil)
	s := newStorage(t, v)
	if v.Wrap(s) != s {
		t.Error("a Storage was wrapped twice")
	}
	other := New(nil).Wrap(s)
	if other.Storage != s.Storage {
		t.Error("a Storage of other Visits was not replaced")
	}
}

func TestExempt(t *testing.T) {
	s := newStorage(t, New(nil))
	s.Visited(1)
	visited := func() bool {
		is, err := s.IsVisited(1)
		if err != nil {
			t.Error(err)
		}
		return is
	}
	stop := s.Exempt(1)
	if visited() {
		t.Error("the page counts as visited")
	}
	if !visited() {
		t.Error("the page does not count as visited the second time")
	}
	stop()
	stop = s.Exempt(1)
	stop()
	if !visited() {
		t.Error("the page does not count as visited after stop")
	}
	if len(s.exempt) != 0 {
		t.Errorf("%d hashes are left", len(s.exempt))
	}
}

// failing is a storage that cannot store.
type failing struct{ storage.InMemoryStorage }

func (*failing) Visited(uint64) error { return errors.New("disk full") }

func TestVisitedFails(t *testing.T) {
	v := New(nil)
	s := v.Wrap(new(failing))
	if s.Visited(1) == nil {
		t.Error("the error is lost")
	}
	if v.Pending() != 0 {
		t.Error("a visit that Colly refuses is expected to arrive")
	}
}

// Every visit of a collector arrives under the hash that it was accepted under.
func TestHashOf(t *testing.T) {
	v := New(nil)
	var s *Storage
	c := colly.NewCollector()
	inner := new(storage.InMemoryStorage)
	s = v.Wrap(inner)
	c.SetStorage(s)
	c.WithTransport(transport(func(r *http.Request) (*http.Response, error) {
		var sent []byte
		if r.Body != nil {
			sent, _ = io.ReadAll(r.Body)
		}
		return &http.Response{StatusCode: 200, Header: http.Header{"X-Sent": {string(sent)}}, Body: http.NoBody, Request: r}, nil
	}))
	var arrived int
	c.OnRequest(func(r *colly.Request) {
		hash, ok := HashOf(r)
		if !ok {
			return
		}
		visit := s.Arriving(hash)
		if visit != nil {
			arrived++
		}
		visit.Arrived()
	})
	var sent []string
	c.OnResponse(func(r *colly.Response) { sent = append(sent, r.Headers.Get("X-Sent")) })
	for _, u := range []string{
		"http://a.test", "http://a.test/b?c=d&a=1#frag", "http://A.test:80/%7Euser/100%", "https://a.test/ä ö?q=ü&x=%zz",
		"http://[::1]:8080/../x/./y", "http://user:pass@a.test/", "http://bücher.test/", "http://a.test/\\x|y^z",
	} {
		if err := c.Visit(u); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
	visits := len(sent)
	if arrived != visits || v.Pending() != 0 {
		t.Errorf("%d of %d visits have arrived, %d are pending", arrived, visits, v.Pending())
	}
	for _, body := range []io.Reader{strings.NewReader("one"), bytes.NewReader([]byte("two")), bytes.NewBufferString("three")} {
		if err := c.Request("POST", "http://a.test/post", body, nil, nil); err != nil {
			t.Error(err)
		}
	}
	c.Request("GET", "http://a.test/get", strings.NewReader("four"), nil, nil)
	c.Request("POST", "http://a.test/pipe", io.MultiReader(strings.NewReader("five")), nil, nil)
	c.Head("http://a.test/head")
	if want := visits + 4; arrived != want || v.Pending() != 0 {
		t.Errorf("%d visits have arrived, want %d; %d are pending", arrived, want, v.Pending())
	}
	want := []string{"one", "two", "three", "four", "five", ""}
	if !slices.Equal(sent[visits:], want) {
		t.Errorf("the bodies %q were sent, want %q", sent[visits:], want)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func BenchmarkHashOfURL(b *testing.B) {
	for b.Loop() {
		HashOfURL("https://www.example.com/a/page?with=query&and=more")
	}
}

// A visit that reaches no callback is given up after a minute, or up to two. A visit that has
// reached one is waited for.
func TestVisitsThatNeverArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New(nil)
		s := newStorage(t, v)
		s.Visited(1)
		s.Visited(2)
		arriving := s.Arriving(2)
		began := time.Now()
		var first, second time.Duration
		v.After(func(bool) { first = time.Since(began) })
		s.Visited(3)
		v.After(func(bool) { second = time.Since(began) })
		time.Sleep(time.Hour)
		synctest.Wait()
		if first != 0 || second != 0 {
			t.Errorf("the waits have ended after %v and %v", first, second)
		}
		arriving.Arrived()
		if first != time.Hour || second != time.Hour {
			t.Errorf("the waits have ended after %v and %v, want an hour", first, second)
		}
		s.Visited(4)
		v.After(func(bool) { first = time.Since(began) })
		time.Sleep(2 * patience)
		synctest.Wait()
		if first != time.Hour+patience {
			t.Errorf("the wait has ended after %v, want %v", first, time.Hour+patience)
		}
		if len(v.byHash) != 0 || v.Pending() != 0 {
			t.Errorf("%d hashes and %d visits are left", len(v.byHash), v.Pending())
		}
	})
}

// TestWait checks when a visit waits because many others are on their way.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New(nil)
		defer v.Close()
		s := newStorage(t, v)
		start := time.Now()
		visit := func(hash uint64, want time.Duration) {
			t.Helper()
			if err := s.Visited(hash); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(start); waited != want {
				t.Errorf("visit %d was accepted after %v, want %v", hash, waited, want)
			}
		}
		for hash := range uint64(mostOnWay) {
			visit(hash, 0)
		}
		s.Arriving(0).Arrived()
		visit(mostOnWay, 0)
		time.AfterFunc(300*time.Millisecond, func() { s.Arriving(1).Passed() })
		visit(mostOnWay+1, 300*time.Millisecond)
		visit(mostOnWay+2, 1300*time.Millisecond) // none arrives, so the others no longer count
		for hash := range uint64(mostOnWay - 1) {
			visit(mostOnWay+3+hash, 1300*time.Millisecond)
		}
		s.Arriving(2).Arrived() // one of those that do not count
		visit(3*mostOnWay, 2300*time.Millisecond)
	})
}
