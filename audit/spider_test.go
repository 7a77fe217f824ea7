package audit_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/audit"
)

// A spiderOrder tells a process of this test binary what to crawl. It is in the variable
// spiderVariable of the environment, as JSON.
type spiderOrder struct {
	Dir  string // of the log
	Site string // the first part of the URLs
	Run  int
	// Limit is the largest size of a file that the process may write, in bytes; 0 if there is none.
	Limit uint64
	// Stop says that the spider stops when its log cannot be written.
	Stop  bool
	Pages int // 0 if the spider never ends
}

const spiderVariable = "AUDIT_SPIDER"

// mustStart starts a spider.
func (o spiderOrder) mustStart(t *testing.T, output io.Writer) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), spiderVariable+"="+string(text))
	cmd.Stdout = output
	cmd.Stderr = output
	err = cmd.Start()
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

// obey is the main function of the process of a spider. It returns the exit status.
func obey(text string) int {
	var o spiderOrder
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = o.crawl()
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// crawl is the work of a spider. It visits pages until it is killed, or until the log
// cannot be written and Stop is set.
func (o spiderOrder) crawl() error {
	failed := make(chan error, 1)
	l, err := audit.Open(o.Dir, audit.OnError(func(err error) {
		fmt.Println("OnError:", err)
		failed <- err
	}))
	if err != nil {
		return err
	}
	if o.Limit > 0 {
		err := limitFiles(o.Limit)
		if err != nil {
			return err
		}
	}
	c := colly.NewCollector(colly.UserAgent("ExampleBot/1.0"))
	robots, err := collyrobots.WithRobots(c, quiet, collyrobots.OnEveryEvent(l.Event))
	if err != nil {
		return err
	}
	for page := 0; page < o.Pages || o.Pages == 0; page++ {
		c.Visit(fmt.Sprintf("%s/%d/%d", o.Site, o.Run, page))
		if o.Stop && len(failed) > 0 {
			fmt.Println("stopped after", page, "pages")
			break
		}
	}
	robots.Close()
	if o.Limit > 0 {
		err := limitFiles(1 << 30)
		if err != nil {
			return err
		}
	}
	return l.Close()
}

// An accessLog is a site on the loopback interface that records its requests.
type accessLog struct {
	*httptest.Server
	mu  sync.Mutex
	got map[string]time.Time // by path
}

func newAccessLog(t *testing.T) *accessLog {
	a := &accessLog{got: make(map[string]time.Time)}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.got[r.URL.Path] = time.Now()
		if r.URL.Path == "/robots.txt" {
			fmt.Fprint(w, "User-agent: *\nDisallow: /secret\n")
		}
	}))
	t.Cleanup(a.Close)
	return a
}

// pathOf returns the path of a URL.
func pathOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return text
	}
	return u.Path
}
