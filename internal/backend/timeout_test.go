package backend_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
)

// The requests of a collector share one timer. Each of them fails exactly one timeout after its own
// beginning, whatever became of the others, also after SetRequestTimeout.
func TestTimeoutOfEachRequest(t *testing.T) {
	inBubble(func(t *testing.T) {
		c := withRedirects(t, nil)
		c.WithTransport(roundTripper(func(req *http.Request) (*http.Response, error) {
			answer, _ := time.ParseDuration(req.URL.Query().Get("answer"))
			select {
			case <-time.After(answer):
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
			case <-req.Context().Done():
				return nil, req.Context().Err()
			}
		}))
		began := time.Now()
		var mu sync.Mutex
		var log []string
		record := func(r *colly.Response, how string) {
			mu.Lock()
			defer mu.Unlock()
			log = append(log, time.Since(began).String()+" "+r.Request.URL.Path+how)
		}
		c.OnResponse(func(r *colly.Response) { record(r, "") })
		c.OnError(func(r *colly.Response, err error) { record(r, " failed") })
		visit := func(at time.Duration, path string, answer string) {
			time.Sleep(at - time.Since(began))
			if err := c.Visit("http://a.test/" + path + "?answer=" + answer); err != nil {
				t.Error(err)
			}
		}
		c.Async = true
		c.SetRequestTimeout(10 * time.Second)
		visit(0, "first", "1h")
		visit(time.Second, "answered", "2s")
		visit(4*time.Second, "second", "1h")
		visit(12*time.Second, "third", "9s")
		visit(13*time.Second, "fourth", "1h")
		c.Wait()
		c.SetRequestTimeout(3 * time.Second)
		visit(40*time.Second, "shorter", "1h")
		c.Wait()
		want := []string{"3s /answered", "10s /first failed", "14s /second failed", "21s /third", "23s /fourth failed", "43s /shorter failed"}
		if !slices.Equal(log, want) {
			t.Errorf("%q, want %q", log, want)
		}
	})(t)
}
