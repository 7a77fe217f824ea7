package backend_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/internal/backend"
)

func TestOpenReturnsErrUnsupported(t *testing.T) {
	for name, c := range map[string]*colly.Collector{"nil": nil, "zero": {}} {
		if _, err := backend.Open(c); !errors.Is(err, backend.ErrUnsupported) {
			t.Errorf("%s: %v, want ErrUnsupported", name, err)
		}
	}
}

func TestClientAfterSetClient(t *testing.T) {
	c := colly.NewCollector()
	handle := open(t, c)
	mine := &http.Client{}
	c.SetClient(mine)
	if handle.Client() != mine {
		t.Error("Client does not return the client that SetClient has set")
	}
}

// Collector.Init replaces the backend and keeps the callbacks.
func TestInitReplacesTheBackend(t *testing.T) {
	server := redirecting(t)
	c, redirects := countRedirects(t)
	c.Init()
	if err := c.Visit(server.URL + "/"); err != nil || *redirects != 1 {
		t.Errorf("%v, %d redirects; want 1", err, *redirects)
	}
}

func TestWaitWaitsWhileHeld(t *testing.T) {
	c := colly.NewCollector()
	handle := open(t, c)
	first := handle.Hold()
	second := handle.Hold()
	var released atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Wait()
		if !released.Load() {
			t.Error("Wait did not wait")
		}
	}()
	first()
	time.Sleep(50 * time.Millisecond)
	released.Store(true)
	second()
	<-done
}
