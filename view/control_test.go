package view

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// calls records what a page has asked for.
type calls struct{ list []string }

func (c *calls) Pause(host string) error  { return c.add("pause", host) }
func (c *calls) Resume(host string) error { return c.add("resume", host) }

func (c *calls) add(action, host string) error {
	if host == "bad host" {
		return errors.New("not the name of a host")
	}
	c.list = append(c.list, action+" "+host)
	return nil
}

// TestControl sends requests that pause hosts, from the page itself and from elsewhere.
func TestControl(t *testing.T) {
	for _, test := range []struct {
		name, target, body string
		headers            []string
		want               int
		call               string // "" if nothing may be paused
	}{
		{"our page", "/pause", "host=a.test", []string{"Sec-Fetch-Site", "same-origin"}, 204, "pause a.test"},
		{"our page, all hosts", "/pause", "host=", []string{"Sec-Fetch-Site", "same-origin"}, 204, "pause "},
		{"our page below a prefix", "/robots/resume", "host=a.test", []string{"Sec-Fetch-Site", "same-origin"}, 204, "resume a.test"},
		{"curl", "/resume", "host=a.test", nil, 204, "resume a.test"},
		{"an old browser, our page", "/pause", "host=a.test", []string{"Origin", "http://127.0.0.1:8090"}, 204, "pause a.test"},
		{"an old browser, another site", "/pause", "host=a.test", []string{"Origin", "https://evil.example"}, 403, ""},
		{"an old browser, a sandbox", "/pause", "host=a.test", []string{"Origin", "null"}, 403, ""},
		{"another site", "/pause", "host=a.test", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403, ""},
		{"another port", "/pause", "host=a.test", []string{"Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:3000"}, 403, ""},
		{"a form of another site", "/pause", "host=a.test", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403, ""},
		{"DNS rebinding", "/pause", "host=a.test", []string{"Host", "evil.example", "Sec-Fetch-Site", "same-origin"}, 421, ""},
		{"no host", "/pause", "", nil, 400, ""},
		{"two hosts", "/pause", "host=a.test&host=b.test", nil, 400, ""},
		{"the host in the URL", "/pause?host=a.test", "", nil, 400, ""},
		{"not a form", "/pause", "host=%zz", nil, 400, ""},
		{"a bad host", "/pause", "host=bad+host", nil, 400, ""},
		{"a long body", "/pause", "host=" + strings.Repeat("a", 1<<20), nil, 400, ""},
		{"the page", "/", "host=a.test", nil, 405, ""},
		{"another path", "/pause/x", "host=a.test", nil, 405, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			control := new(calls)
			for _, h := range []*Page{New(nil, Options{Control: control}), New(nil, Options{})} {
				w := post(h, test.target, test.body, test.headers...)
				want := test.want
				if h.control == nil {
					want = http.StatusMethodNotAllowed
				}
				if w.Code != want {
					t.Errorf("status %d, want %d: %s", w.Code, want, w.Body)
				}
			}
			want := []string{test.call}
			if test.call == "" {
				want = nil
			}
			if !slices.Equal(control.list, want) {
				t.Errorf("the page has called %q, want %q", control.list, want)
			}
		})
	}
	w := ask(New(nil, Options{Control: new(calls)}), "GET", "/pause?host=a.test")
	if w.Code != http.StatusNotFound {
		t.Errorf("GET: status %d", w.Code)
	}
}

// post sends a form to a page.
func post(h http.Handler, target, form string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", target, strings.NewReader(form))
	r.Host = "127.0.0.1:8090"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestFaultText checks what the page says about a robots.txt that closes its host.
func TestFaultText(t *testing.T) {
	now := time.Now()
	for want, fault := range map[string]robotsFault{
		"closed: robots.txt 503":                                             {Status: 503},
		"closed: robots.txt 503 with a web page":                             {Status: 503, Walled: true},
		"closed: robots.txt without a response, next try with the next page": {NextTry: now},
		"closed: robots.txt 503 with a web page, next try in 2 min 0 s":      {Status: 503, Walled: true, NextTry: now.Add(2 * time.Minute)},
	} {
		if got := fault.text(now); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
