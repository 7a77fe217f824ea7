package backend

import (
	"net/http"
	"runtime"
	"testing"

	"github.com/gocolly/colly/v2"
)

// A request and its retries have the same key. Other requests have other keys.
func TestHeaderKey(t *testing.T) {
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
		t.Errorf("keys %v, want three that are equal and another", keys)
	}
	for range 5 {
		runtime.GC()
	}
	if keys[0].Alive() {
		t.Error("the header of a finished request is alive")
	}
	h := http.Header{}
	if !KeyOf(h).Alive() {
		t.Error("a header in use is not alive")
	}
	if KeyOf(nil).Alive() {
		t.Error("a nil header is alive")
	}
	runtime.KeepAlive(h)
}
