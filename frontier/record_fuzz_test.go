package frontier

import (
	"testing"

	"github.com/collyrobots/collyrobots/store/urlstore"
)

// FuzzPage checks that every encoded page can be decoded.
func FuzzPage(f *testing.F) {
	f.Add("http://a.test/", "", "b.test", []byte("{}"), 1, 2)
	f.Add("http://A.test/", "http://a.test/", "", []byte(nil), -1, 0)
	f.Fuzz(func(t *testing.T, rawURL, key, from string, request []byte, depth, collector int) {
		p := &urlstore.Page{URL: rawURL, Host: "a.test", Key: key, From: from, Request: request, Depth: depth, Collector: collector, ID: 7}
		got, err := decodePage(encodePage(p), "a.test", position{id: 7})
		if err != nil {
			t.Fatal(err)
		}
		got.Found = p.Found
		if got.URL != p.URL || got.Key != p.Key || got.From != p.From || string(got.Request) != string(p.Request) ||
			got.Depth != p.Depth || got.Collector != p.Collector || got.ID != p.ID {
			t.Errorf("got %+v, want %+v", got, p)
		}
	})
}

// FuzzDecode checks that damaged records cause errors and no panics.
func FuzzDecode(f *testing.F) {
	p := &urlstore.Page{URL: "http://a.test/", Key: "x", Request: []byte("{}")}
	f.Add(encodePage(p))
	f.Add(seenRecord{state: waiting, at: position{order: 1, id: 2}}.encode())
	f.Add(hostRecord{counts: counts{waiting: 1}}.encode())
	f.Add(pageKey(queueKey, "a.test", position{id: 1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := decodePage(b, "a.test", position{}); (p == nil) == (err == nil) {
			t.Errorf("decodePage: %v, %v", p, err)
		}
		foundOf(b)
		if r, err := decodeSeen(b); err == nil && len(b) > 0 && string(r.encode()) != string(b) {
			if again, err := decodeSeen(r.encode()); err != nil || again != r {
				t.Errorf("decodeSeen: %+v, %v, want %+v", again, err, r)
			}
		}
		if r, err := decodeHost(b); err == nil && len(b) > 0 {
			if again, err := decodeHost(r.encode()); err != nil || again != r {
				t.Errorf("decodeHost: %+v, %v, want %+v", again, err, r)
			}
		}
		if host, at, ok := splitPageKey(b); ok && b[0] == queueKey && string(pageKey(queueKey, host, at)) != string(b) {
			t.Errorf("splitPageKey: %q, %+v", host, at)
		}
	})
}
