package nofollow

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"golang.org/x/net/html"
)

// response returns the response to a request for a URL.
func response(u, body string) *colly.Response {
	parsed, err := url.Parse(u)
	if err != nil {
		panic(err)
	}
	ctx := colly.NewContext()
	return &colly.Response{
		Body:    []byte(body),
		Ctx:     ctx,
		Request: &colly.Request{URL: parsed, Ctx: ctx, Method: http.MethodGet, Depth: 1},
	}
}

// child returns a request that a callback of the page has made.
func child(r *colly.Response, method, u string, depth int) *colly.Request {
	parsed, err := url.Parse(u)
	if err != nil {
		panic(err)
	}
	return &colly.Request{URL: parsed, Ctx: r.Request.Ctx, Method: method, Depth: depth}
}

func withholdNothing([]string) func() { return func() {} }

func TestOrigin(t *testing.T) {
	const page = `<a rel=nofollow href=/1><a href=/2><a rel=nofollow href=/0>`
	for _, test := range []struct {
		method, url string
		depth       int
		want, all   bool // whether the request follows a link with nofollow, by rel and by a rule for the page
	}{
		{"GET", "http://a.test/1", 2, true, true},
		{"HEAD", "http://a.test/1", 2, true, true},
		{"POST", "http://a.test/1", 2, false, false},
		{"GET", "http://a.test/1#top", 2, true, true},
		{"GET", "http://a.test/1?a", 2, false, true},
		{"GET", "https://a.test/1", 2, false, true},
		{"GET", "http://a.test/2", 2, false, true},
		{"GET", "http://a.test/1", 0, true, true},
		{"GET", "http://a.test/1", 1, false, false},
		{"GET", "http://a.test/1", 3, false, false},
		{"GET", "http://a.test/0", 1, false, false}, // a retry
		{"GET", "http://a.test/0", 2, true, true},
	} {
		t.Run(fmt.Sprint(test.method, " ", test.url, " ", test.depth), func(t *testing.T) {
			var pages Pages
			r := response("http://user:secret@a.test/0", page)
			r.Request.URL.User = nil
			pages.Add(r, false, true, withholdNothing)
			if got := pages.Origin(child(r, test.method, test.url, test.depth)) != ""; got != test.want {
				t.Errorf("by rel: %v, want %v", got, test.want)
			}
			r = response("http://a.test/0", page)
			pages.Add(r, true, false, withholdNothing)
			if got := pages.Origin(child(r, test.method, test.url, test.depth)) != ""; got != test.all {
				t.Errorf("by a rule for the page: %v, want %v", got, test.all)
			}
		})
	}
}

func TestAdd(t *testing.T) {
	for name, test := range map[string]struct {
		body      string
		all, html bool
		want      string // the withheld URLs
		empty     bool
	}{
		"no links":          {body: "<p>", html: true, empty: true},
		"no nofollow":       {body: "<a href=/1>", html: true, empty: true},
		"nofollow":          {body: "<a href=/1 rel=nofollow><a href=/2>", html: true, want: "http://a.test/1"},
		"all":               {body: "<a href=/1 rel=nofollow><a href=/2>", html: true, all: true, want: "http://a.test/1 http://a.test/2"},
		"all, not HTML":     {body: "<a href=/1>", all: true},
		"both on one page":  {body: "<a href=/1 rel=nofollow><a href='/1#a'>", html: true, empty: true},
		"fragments":         {body: "<a href='/1#a' rel=nofollow><a href='/1#b' rel=nofollow>", html: true, want: "http://a.test/1#a http://a.test/1#b"},
		"IDN":               {body: "<a href='//BÜCHER.test' rel=nofollow>", html: true, want: "http://xn--bcher-kva.test/"},
		"not a URL":         {body: "<a href='http://[' rel=nofollow><a href='#' rel=nofollow>", html: true, empty: true},
		"empty href":        {body: "<a href='' rel=nofollow>", html: true, want: "http://a.test/0"},
		"base without href": {body: "<base target=x><base href='http://b.test/d/'><a href=1 rel=nofollow>", html: true, want: "http://b.test/d/1"},
	} {
		t.Run(name, func(t *testing.T) {
			var pages Pages
			r := response("http://a.test/0", test.body)
			ctx := r.Ctx
			got := ""
			pages.Add(r, test.all, test.html, func(urls []string) func() {
				slices.Sort(urls)
				got = strings.Join(urls, " ")
				return func() {}
			})
			if got != test.want || pages.Empty() != test.empty {
				t.Errorf("withheld %q, empty %v", got, pages.Empty())
			}
			if r.Ctx == ctx || r.Request.Ctx != r.Ctx {
				t.Error("the Context is not the page's own")
			}
			runtime.KeepAlive(r)
		})
	}
}

// Pages are forgotten when their Context is gone, and the withheld links are released.
func TestPagesAreForgotten(t *testing.T) {
	var pages Pages
	released := make(chan bool, 100)
	for range 100 {
		pages.Add(response("http://a.test/0", "<a href=/1 rel=nofollow>"), false, true, func([]string) func() {
			return func() { released <- true }
		})
	}
	for range 1000 {
		runtime.GC()
		if pages.Empty() && len(released) == 100 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d pages are remembered, %d are released", pages.count.Load(), len(released))
}

// FuzzRead compares Read with the tree of the parser.
func FuzzRead(f *testing.F) {
	for _, page := range []string{
		"<a href=/1 rel=nofollow>1</a>", "<map><area href=/1 rel='a NOFOLLOW'></map>", "<base href=/d><a href>", "<a rel=nofollow href=/1 <b>", "<a href=1 rel=x><a href=1 rel=nofollow>",
	} {
		f.Add([]byte(page))
	}
	f.Fuzz(func(t *testing.T, page []byte) {
		got := Read(page)
		lower := bytes.ToLower(page)
		// The parser drops or repeats elements in these, and knows where they are text.
		for _, word := range []string{"<template", "<frame", "<noframes", "<noembed", "<iframe", "<select", "<svg", "<math", "<script", "<style", "<plaintext", "<noscript", "<table", "<col", "<title", "<textarea", "<xmp", "\x00", "cdata"} {
			if bytes.Contains(lower, []byte(word)) {
				return
			}
		}
		want, ok := ofTree(page)
		if ok && (got.Base != want.Base || !maps.Equal(got.Links, want.Links)) {
			t.Errorf("Read(%q) = %+v, the parser has %+v", page, got, want)
		}
	})
}

// ofTree returns the links of the parsed page.
func ofTree(page []byte) (p Page, ok bool) {
	root, err := html.ParseWithOptions(bytes.NewReader(page), html.ParseOptionEnableScripting(false))
	if err != nil {
		return p, false
	}
	p.Links = make(map[string]bool)
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		var href, rel *string
		for _, a := range n.Attr {
			switch {
			case a.Key == "href" && href == nil:
				href = &a.Val
			case a.Key == "rel" && rel == nil:
				rel = &a.Val
			}
		}
		if href == nil {
			continue
		}
		switch n.Data {
		case "base":
			if p.Base == "" {
				p.Base = *href
			}
		case "a", "area":
			nofollow := rel != nil && hasNofollow(*rel)
			before, known := p.Links[*href]
			p.Links[*href] = nofollow && (before || !known)
		}
	}
	return p, true
}

func BenchmarkAdd(b *testing.B) {
	for _, links := range []string{"", "<a href=/login rel=nofollow>log in</a>"} {
		name := "without nofollow"
		if links != "" {
			name = "with one nofollow"
		}
		page := "<!DOCTYPE html><title>a</title>" + strings.Repeat("<p>A paragraph of text with <a href='/a/link?of=it'>a link</a>.</p>\n", 400)
		for i := range 100 {
			links += fmt.Sprintf("<a href='/page/%d'>%d</a>", i, i)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(page) + len(links)))
			for b.Loop() {
				var pages Pages
				pages.Add(response("http://a.test/0", page+links), false, true, withholdNothing)
			}
		})
	}
}
