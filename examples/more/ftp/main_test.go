package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"goftp.io/server/v2"
	"goftp.io/server/v2/driver/file"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A ftpServer is an ftp server on the loopback interface, with a log of its downloads.
type ftpServer struct {
	server.NullNotifier
	address string
	mu      sync.Mutex
	log     []download
}

// A download is a file that the server was asked for.
type download struct {
	path string
	at   time.Time
}

// BeforeDownloadFile implements server.Notifier.
func (s *ftpServer) BeforeDownloadFile(_ *server.Context, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, download{path: path, at: time.Now()})
}

// CheckPasswd implements server.Auth.
func (s *ftpServer) CheckPasswd(_ *server.Context, user, _ string) (bool, error) {
	return user == "anonymous", nil
}

// serve starts a server with the files, whose names are the keys.
func serve(t *testing.T, files map[string]string) *ftpServer {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	driver, err := file.NewDriver(root)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &ftpServer{address: listener.Addr().String()}
	ftp, err := server.NewServer(&server.Options{
		Driver:   driver,
		Auth:     s,
		Perm:     server.NewSimplePerm("user", "group"),
		Hostname: "127.0.0.1",
		Logger:   new(server.DiscardLogger),
	})
	if err != nil {
		t.Fatal(err)
	}
	ftp.RegisterNotifer(s)
	ended := make(chan error)
	go func() { ended <- ftp.Serve(listener) }()
	t.Cleanup(func() {
		ftp.Shutdown()
		<-ended
	})
	return s
}

// A recorder is an ftpTransport that records when it gets each request.
type recorder struct {
	ftpTransport
	sent map[string]time.Time // by path
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.sent[req.URL.Path] = time.Now()
	return r.ftpTransport.RoundTrip(req)
}

// TestFTP checks a crawl by the server's log: no file that robots.txt denies is requested, and the
// requests are a Crawl-delay apart. On a busy machine the server may log a request late and the
// next one at once. Therefore the test measures from the time at which the transport got a request
// to the time of the next one in the log.
func TestFTP(t *testing.T) {
	const delay = 200 * time.Millisecond
	s := serve(t, map[string]string{
		"robots.txt":        "User-agent: *\nCrawl-delay: 0.2\nDisallow: /pub/closed\nDisallow: /*.iso$\n",
		"pub/readme.txt":    "four",
		"pub/disc.iso":      "a large file",
		"pub/a b/notes.txt": "seven..",
		"pub/closed/x.txt":  "x",
	})
	var out bytes.Buffer
	r := &recorder{sent: make(map[string]time.Time)}
	if err := crawl([]string{"ftp://" + s.address + "/pub/"}, r, 0, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"4 bytes ftp://" + s.address + "/pub/readme.txt\n", "7 bytes ftp://" + s.address + "/pub/a%20b/notes.txt\n",
		"\"Disallow: /pub/closed\", line 3 of ftp://" + s.address + "/robots.txt"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output has no %q:\n%s", want, &out)
		}
	}
	var paths []string
	for i, d := range s.log {
		paths = append(paths, d.path)
		if i == 0 {
			continue
		}
		before := s.log[i-1].path
		if gap := d.at.Sub(r.sent[before]); gap < delay*8/10 {
			t.Errorf("%s was requested %v after %s, want %v", d.path, gap, before, delay)
		}
	}
	if got, want := fmt.Sprint(paths), "[/robots.txt /pub/a b/notes.txt /pub/readme.txt]"; got != want {
		t.Errorf("downloads %s, want %s", got, want)
	}
}

// TestWithoutRobotsTxt checks that a server without a robots.txt restricts nothing.
func TestWithoutRobotsTxt(t *testing.T) {
	s := serve(t, map[string]string{"a.txt": "a"})
	var out bytes.Buffer
	if err := crawl([]string{"ftp://" + s.address + "/"}, new(ftpTransport), time.Millisecond, &out); err != nil {
		t.Fatal(err)
	}
	if want := "1 bytes ftp://" + s.address + "/a.txt\n"; out.String() != want {
		t.Errorf("printed %s, want %s", &out, want)
	}
}
