package collyrobots

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/robotstest"
)

// newTestJudge returns the judge of a plugin with these options, and a fetcher that uses web.
func newTestJudge(t *testing.T, web *robotstest.Web, opts ...Option) (*judge, fetcher) {
	t.Helper()
	next := web.Transport()
	t.Cleanup(next.CloseIdleConnections)
	p, err := New(append(opts, HTTPClient(&http.Client{Transport: next}))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	_, _, f := p.own(t.Context())
	return p.judge, f
}

// TestReadersAreShared checks that settings that read robots.txt alike share a reader, that others
// do not, and that no reader is made twice.
func TestReadersAreShared(t *testing.T) {
	web := robotstest.New(t, nil)
	var opts []Option
	for i := range 20 {
		opts = append(opts, ForHosts(fmt.Sprintf("h%d.test", i), MinDelay(time.Duration(i+1)*time.Second), MaxPages(i+1)))
	}
	opts = append(opts,
		ForHosts("google.test", Dialect(dialect.Google())),
		ForHosts("given.test", RobotsTxt([]byte{})),
		ForHosts("open.test", WhenUnreachable(AllowAll)),
		ForHosts("token.test", ProductToken("Other")))
	j, _ := newTestJudge(t, web, opts...)
	first := make(map[string]*reader)
	for range 3 {
		for name := range 40 {
			userAgent := fmt.Sprintf("Bot%c%c/1.0", 'a'+name/26, 'a'+name%26)
			for _, host := range []string{"a.test", "h0.test", "h19.test", "google.test", "given.test", "open.test", "token.test"} {
				s := j.settings.of(host)
				r, err := j.policies.reader(s, userAgent)
				if err != nil {
					t.Fatal(err)
				}
				key := fmt.Sprint(s.index, r.name)
				if first[key] == nil {
					first[key] = r
				}
				if r.cache != first[key].cache {
					t.Errorf("%s on %s has a second reader", userAgent, host)
				}
				if tokens := s.productTokens(s.dialect, userAgent); r.tokens != tokens[0] {
					t.Errorf("%s on %s is read as %s", userAgent, host, r.tokens)
				}
			}
		}
	}
	if got, want := len(j.policies.readers), 40*4+1; got != want {
		t.Errorf("%d readers, want %d", got, want)
	}
}

// TestReadersAreBounded checks that readers are dropped when there are many names, that their
// policies stay within one bound, and that a request that still has a dropped reader is judged by a
// new one with the same name.
func TestReadersAreBounded(t *testing.T) {
	web := robotstest.New(t, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: Botaaa\nDisallow: /\n"}})
	j, f := newTestJudge(t, web)
	decide := func(v *verdict, userAgent string) {
		t.Helper()
		a := dialect.Authority{Scheme: "http", Host: "a.test"}
		var err error
		v.settings = j.settings.of("a.test")
		if v.reader == nil {
			v.reader, err = j.policies.reader(v.settings, userAgent)
		}
		if err == nil {
			v.policy, err = j.policies.get(t.Context(), v, a, userAgent, f)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var before verdict
	decide(&before, "Botaaa/1.0")
	for i := 1; i < 2*maxReaders; i++ {
		var v verdict
		decide(&v, fmt.Sprintf("Bot%c%c%c/1.0", 'a'+i/676, 'a'+i/26%26, 'a'+i%26))
		if v.policy.Group().Name() != "" {
			t.Fatalf("name %d has the group of %q", i, v.policy.Group().Name())
		}
		if n := len(j.policies.readers); n > maxReaders {
			t.Fatalf("%d readers", n)
		}
	}
	again := verdict{reader: before.reader}
	decide(&again, "Botaaa/1.0")
	if again.reader.cache == before.reader.cache {
		t.Error("the first reader was not dropped")
	}
	if got := again.policy.Group().Name(); got != "Botaaa" || again.reader.tokens != "Botaaa" {
		t.Errorf("the request is judged by the group of %q for %q", got, again.reader.tokens)
	}
	if n := len(web.Log("a.test")); n != 2 {
		t.Errorf("%d requests for robots.txt, want 2", n)
	}
	if n := j.policies.statistics()["rules"].Count; n != maxReaders {
		t.Errorf("%d policies are counted, want %d", n, maxReaders)
	}
}
