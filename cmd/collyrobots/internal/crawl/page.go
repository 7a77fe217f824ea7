package crawl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/view"
)

// A pageServer serves the page of a crawl.
type pageServer struct {
	server *http.Server
	url    string
	done   chan struct{}
}

// newPage returns the page of a crawl, which must begin after that.
func newPage(robots *collyrobots.Plugin) *view.Page { return view.New(robots, view.Options{}) }

// servePage serves the page of a crawl until stop is called.
func servePage(l net.Listener, page *view.Page, p *progress) *pageServer {
	server := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second}
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
	url := "http://" + net.JoinHostPort(host, fmt.Sprint(at.Port)) + "/"
	p.display.Printf("Watch the crawl at %s", url)
	if !at.IP.IsLoopback() {
		p.display.Printf("Warning: everyone who can reach %v can see every URL of this crawl. "+
			"Use -http :%d to serve the page on loopback only.", at, at.Port)
	}
	return &pageServer{server: server, url: url, done: done}
}

// writeReportFile writes the report of a crawl that has ended to a file.
func writeReportFile(name string, page *view.Page) error {
	file, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("-report: %w", err)
	}
	err = errors.Join(page.WriteReport(file), file.Close())
	if err != nil {
		return fmt.Errorf("-report: %w", err)
	}
	return nil
}

// stop ends the server.
func (s *pageServer) stop() {
	s.server.Close()
	<-s.done
}

// await serves the page of a crawl that has ended until ctx ends, and then stops. If ctx has ended,
// it stops at once.
func (s *pageServer) await(ctx context.Context, stderr io.Writer) {
	if ctx.Err() == nil {
		fmt.Fprintf(stderr, "The crawl has ended. Its page is still at %s until Ctrl-C, and its report at %sreport.html\n", s.url, s.url)
	}
	<-ctx.Done()
	s.stop()
}
