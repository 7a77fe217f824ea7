package benchmarks

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/store"
)

// A tagged transport answers every request from memory. Its pages have an ETag.
type tagged struct{}

func (tagged) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/html"}, "Etag": {`"5f3c-0123456789"`}},
		Body:   http.NoBody,
	}
	switch {
	case r.URL.Path == "/robots.txt":
		resp.Body = io.NopCloser(strings.NewReader("User-agent: *\nDisallow: /private\n"))
	case r.Header.Get("If-None-Match") != "":
		resp.StatusCode = http.StatusNotModified
	default:
		resp.Body = io.NopCloser(strings.NewReader("<!doctype html><title>x</title>"))
	}
	return resp, nil
}

// BenchmarkRevalidate measures a page without the option, a new page that is recorded, and a page
// that is unchanged, with each kind of Store.
func BenchmarkRevalidate(b *testing.B) {
	for _, kind := range []struct {
		name string
		open func(folder string) (store.Store, error)
	}{
		{"memory", func(string) (store.Store, error) { return store.NewMemory(), nil }},
		{"dir", store.OpenDir},
	} {
		for name, opts := range map[string][]collyrobots.Option{
			"without":   nil,
			"recorded":  {collyrobots.Revalidate(collyrobots.Revalidation{})},
			"unchanged": {collyrobots.Revalidate(collyrobots.Revalidation{})},
		} {
			b.Run(kind.name+"/"+name, func(b *testing.B) {
				s, err := kind.open(b.TempDir())
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"), colly.AllowURLRevisit())
				c.WithTransport(tagged{})
				opts := append([]collyrobots.Option{collyrobots.Store(s), collyrobots.Logger(slog.New(slog.DiscardHandler))}, opts...)
				robots, err := collyrobots.WithRobots(c, opts...)
				if err != nil {
					b.Fatal(err)
				}
				defer robots.Close()
				n := 0
				visit := func() {
					u := "http://example.test/page"
					if name == "recorded" {
						n++
						u += fmt.Sprint(n)
					}
					err := c.Visit(u)
					if err != nil {
						b.Fatal(err)
					}
				}
				visit()
				b.ReportAllocs()
				for b.Loop() {
					visit()
				}
			})
		}
	}
}
