package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"time"

	"github.com/collyrobots/collyrobots/robotstest"
)

// demoURLs are the pages that are visited if the command has no arguments.
var demoURLs = []string{
	"http://shop.test/",
	"http://shop.test/cart",   // robots.txt disallows it
	"http://shop.test/old",    // redirects to a page that is allowed
	"http://shop.test/basket", // redirects to a page that is disallowed
	"http://shop.test/frame",  // has a frame that is disallowed
}

// demoSites are on the loopback interface. The pages have an empty icon, so that the browser does
// not request /favicon.ico.
var demoSites = robotstest.Sites{
	"shop.test": {
		"/robots.txt": "User-agent: *\nCrawl-delay: 0.5\nDisallow: /cart\nDisallow: /ads/\n",
		"/":           page("A shop", `<link rel="stylesheet" href="/style.css"><img src="/ads/1.png"><img src="http://images.test/tea.png">`),
		"/style.css":  typed("text/css", ""),
		"/tea":        page("Tea", ""),
		"/old":        robotstest.Redirect("/tea"),
		"/basket":     robotstest.Redirect("/cart"),
		"/frame":      page("A frame", `<iframe src="/cart/embedded"></iframe>`),
		// The following pages are disallowed.
		"/cart":          page("The cart", ""),
		"/cart/embedded": page("The cart", ""),
		"/ads/1.png":     http.StatusOK,
	},
	"images.test": {"/robots.txt": http.StatusNotFound, "/tea.png": http.StatusOK},
}

func page(title, body string) string {
	return "<!DOCTYPE html><title>" + title + "</title><link rel=\"icon\" href=\"data:,\">" + body
}

// typed returns a handler that responds with a body of a given type.
func typed(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, body)
	}
}

// serve makes the sites of web available to a browser at an address.
func serve(web *robotstest.Web) (address string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	transport := web.Transport()
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme = "http"
			r.Out.URL.Host = r.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}}
	go server.Serve(listener) // ends with stop
	return listener.Addr().String(), func() {
		server.Close()
		transport.CloseIdleConnections()
	}, nil
}
