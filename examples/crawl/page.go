package main

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/view"
)

// listen listens on an address, which without a host is one of the loopback interface.
func listen(address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%w: want an address such as :8090", err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.Listen("tcp", net.JoinHostPort(host, port))
}

// servePage shows the crawl of a plugin in a browser, until the function that it returns is called.
func servePage(l net.Listener, robots *collyrobots.Plugin, p *progress) (stop func()) {
	server := &http.Server{Handler: view.Handler(robots), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(l) // until it is closed
	}()
	at := l.Addr().(*net.TCPAddr)
	host := at.IP.String()
	if at.IP.IsUnspecified() {
		host = "localhost"
	}
	p.display.Printf("Watch it at http://%s/", net.JoinHostPort(host, fmt.Sprint(at.Port)))
	if !at.IP.IsLoopback() {
		p.display.Printf("Whoever can reach %v sees every URL of this crawl: it belongs on loopback, as -http :%d is.", at, at.Port)
	}
	return func() { server.Close(); <-done }
}
