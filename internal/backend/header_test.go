package backend

import (
	"net/http"
	"runtime"
	"testing"

	"github.com/gocolly/colly/v2"
)

// Retry hands the header map on, and other requests have one of their own.
func TestAHeaderIsKnownAgain(t *testing.T) {
	c := colly.NewCollector(colly.AllowURLRevisit())
	var keys []HeaderKey
	c.OnRequest(func(r *colly.Request) {
		keys = append(keys, KeyOf(*r.Headers))
		r.Headers.Set("User-Agent", "another")
		r.Abort()
		if len(keys) < 3 {
			r.Retry()
		}
	})
	c.Visit("http://a.test/")
	c.Visit("http://a.test/")
	if len(keys) != 4 || keys[0] != keys[1] || keys[1] != keys[2] || keys[2] == keys[3] {
		t.Errorf("%v, want three of a kind and another", keys)
	}
	for range 5 {
		runtime.GC()
	}
	if keys[0].Alive() {
		t.Error("a header that nobody needs is alive")
	}
	h := http.Header{}
	if !KeyOf(h).Alive() || KeyOf(nil).Alive() {
		t.Error("Alive is wrong about a header in use, or about none")
	}
	runtime.KeepAlive(h)
}
