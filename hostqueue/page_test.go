package hostqueue

import (
	"strings"
	"testing"

	"github.com/gocolly/colly/v2"
	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots"
)

// TestSamePage checks which URLs are the same page.
func TestSamePage(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"http://a.test/", "http://a.test", true},
		{"http://a.test/", "http://a.test/#top", true},
		{"http://a.test/", "http://A.Test:80/", true},
		{"http://a.test/", "HTTP://a.test/", true},
		{"https://a.test/", "https://a.test:443/", true},
		{"http://a.test/b", "http://a.test/./c/../b", true},
		{"http://a.test/~b", "http://a.test/%7Eb", true},
		{"http://a.test/%C3%A9", "http://a.test/é", true},
		{"http://a.test/%c3%a9", "http://a.test/%C3%A9", true},
		{"http://a.test/?q=b c", "http://a.test/?q=b%20c", true},
		{"http://bücher.test/", "http://xn--bcher-kva.test/", true},
		{"http://user:password@a.test/", "http://a.test/", true},
		{"http://a.test/", "https://a.test/", false},
		{"http://a.test/", "http://a.test:8080/", false},
		{"http://a.test/", "http://www.a.test/", false},
		{"http://a.test/b", "http://a.test/B", false},
		{"http://a.test/b", "http://a.test/b/", false},
		{"http://a.test/", "http://a.test/?", false},
		{"http://a.test/b%2Fc", "http://a.test/b/c", false},
		{"http://a.test/?a&b", "http://a.test/?b&a", false},
	} {
		a, errA := newPage(test.a, 1)
		b, errB := newPage(test.b, 1)
		if errA != nil || errB != nil {
			t.Errorf("%s: %v, %s: %v", test.a, errA, test.b, errB)
			continue
		}
		if same := a.host == b.host && a.key == b.key; same != test.same {
			t.Errorf("%s and %s: same = %v (%q, %q)", test.a, test.b, same, a.key, b.key)
		}
	}
}

// TestBadURLs checks that URLs that cannot be crawled are errors without passwords.
func TestBadURLs(t *testing.T) {
	for _, raw := range []string{
		"", "/b", "mailto:b@a.test", "ftp://a.test/", "javascript:void(0)", "http://", "http:///b", "https:b", "http://a.test:port/",
		"http://user:secret@a b/", "http://joe:top%secret@a.test/", "http://a}b.test/", "http://a{b.test/", "http://a\x00b/", "http://a.test/" + strings.Repeat("b", mostURL),
	} {
		p, err := newPage(raw, 1)
		if err == nil || !strings.HasPrefix(err.Error(), "hostqueue: ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%.50q: %v, %v", raw, p, err)
		}
	}
}

// TestPageText checks that a page is read as it was stored.
func TestPageText(t *testing.T) {
	for _, p := range []page{
		{url: "http://a.test/", host: "a.test", depth: 1},
		{url: "http://a.test/?q=b c", host: "a.test", depth: 300, attempts: 2},
	} {
		if got, err := parsePage("a.test", p.text()); err != nil || got != p {
			t.Errorf("%+v, %v, want %+v", got, err, p)
		}
	}
	for _, text := range []string{"", "1", "1 1", "a 1 http://a.test/", "1 a http://a.test/"} {
		if p, err := parsePage("a.test", text); err == nil {
			t.Errorf("%q: %+v", text, p)
		}
	}
}

// TestOpenFaults checks the errors of Open and of options.
func TestOpenFaults(t *testing.T) {
	_, client := newMini(t)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": client.Options().Addr}})
	defer ring.Close()
	for name, err := range map[string]error{
		"nil client":         second(Open(t.Context(), nil, "news")),
		"no name":            second(Open(t.Context(), client, "")),
		"brace in a name":    second(Open(t.Context(), client, "{a}")),
		"newline in a name":  second(Open(t.Context(), client, "a\nb")),
		"zero Option":        second(Open(t.Context(), client, "news", Option{})),
		"Lease":              second(Open(t.Context(), client, "news", Lease(99*1e6))),
		"Hosts":              second(Open(t.Context(), client, "news", Hosts(0))),
		"RetryPause":         second(Open(t.Context(), client, "news", RetryPause(0))),
		"MaxRecordedPerHost": second(Open(t.Context(), client, "news", MaxRecordedPerHost(-1))),
		"Logger":             second(Open(t.Context(), client, "news", Logger(nil))),
		"nil collector":      mustOpen(t, client, "news").Run(t.Context(), nil, new(collyrobots.Plugin)),
		"nil plugin":         mustOpen(t, client, "news").Run(t.Context(), colly.NewCollector(), nil),
		"Async":              mustOpen(t, client, "news").Run(t.Context(), colly.NewCollector(colly.Async()), new(collyrobots.Plugin)),
		"redis.Ring":         second(Open(t.Context(), ring, "news")),
		"URL without scheme": mustOpen(t, client, "news").Add(t.Context(), "http://a.test/", "a.test"),
		"Follow":             mustOpen(t, client, "news").Follow(nil, "/"),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), "hostqueue: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	err := second(Open(t.Context(), client, "news", Hosts(0), MaxRecordedPerHost(-1)))
	if !strings.Contains(err.Error(), "Hosts") || !strings.Contains(err.Error(), "MaxRecordedPerHost") {
		t.Errorf("not all faults are reported: %v", err)
	}
	if s, err := mustOpen(t, client, "news").Stats(t.Context()); err != nil || s.Known != 0 {
		t.Errorf("%+v, %v, want no page", s, err)
	}
}

func second[A, B any](_ A, b B) B { return b }
