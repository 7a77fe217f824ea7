package track

import (
	"runtime"
	"testing"

	"github.com/gocolly/colly/v2"
)

func TestAnswered(t *testing.T) {
	var a Answered
	r := request("/1")
	if a.Retries(retry(r)) {
		t.Error("a request that is not done has a retry")
	}
	a.Add(r)
	if !a.Retries(retry(r)) {
		t.Error("a retry is not recognized")
	}
	child := request("/2")
	child.Ctx = r.Ctx
	other := retry(r)
	other.URL.Path = "/3"
	for name, r := range map[string]*colly.Request{"another request": request("/1"), "a link of the page": child, "another URL": other} {
		if a.Retries(r) {
			t.Errorf("%s is taken for a retry", name)
		}
	}
	runtime.KeepAlive(r)
}

// TestAnsweredIsBounded checks that requests which the program has dropped are forgotten.
func TestAnsweredIsBounded(t *testing.T) {
	var a Answered
	for range 20 {
		for range 1000 {
			a.Add(request("/1"))
		}
		runtime.GC()
	}
	if n := len(a.requests); n > 8000 {
		t.Errorf("%d of 20,000 requests are remembered", n)
	}
}
