package crawl

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/view"
)

// listen listens on an address. If the address has no host, it listens on the loopback interface.
func listen(address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%w; use an address such as :8090", err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.Listen("tcp", net.JoinHostPort(host, port))
}

// servePage serves the page of a plugin until stop is called.
func servePage(l net.Listener, robots *collyrobots.Plugin, p *progress) (stop func()) {
	server := &http.Server{Handler: view.Handler(robots), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(l) // returns when the server is closed
	}()
	at := l.Addr().(*net.TCPAddr)
	host := at.IP.String()
	if at.IP.IsUnspecified() {
		host = "localhost"
	}
	p.display.Printf("Watch the crawl at http://%s/", net.JoinHostPort(host, fmt.Sprint(at.Port)))
	if !at.IP.IsLoopback() {
		p.display.Printf("Warning: everyone who can reach %v can see every URL of this crawl. "+
			"Use -http :%d to serve the page on loopback only.", at, at.Port)
	}
	return func() {
		server.Close()
		<-done
	}
}
