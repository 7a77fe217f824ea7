package arrivals

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/gocolly/colly/v2"
)

// HashOf returns the number of a request in the storage of a collector. ok is false if the
// collector does not mark such a request as visited. HashOf does not read from the body.
func HashOf(r *colly.Request) (hash uint64, ok bool) {
	body, known := contents(r.Body)
	if !known && r.Method != http.MethodGet {
		return 0, false
	}
	return addTo(HashOfURL(r.URL.String()), body), true
}

// HashOfURL returns the number of a GET of a URL in the storage of a collector. Only Colly itself
// knows how it normalizes URLs, so a collector computes the number.
func HashOfURL(u string) uint64 {
	p := probes.Get().(*probe)
	defer probes.Put(p)
	p.collector.HasVisited(u)
	return p.hash
}

// A probe is a collector that only computes hashes. It implements the storage of that collector.
type probe struct {
	collector *colly.Collector
	hash      uint64 // the argument of the last IsVisited
}

var probes = sync.Pool{New: func() any { return newProbe() }}

func newProbe() *probe {
	p := &probe{collector: colly.NewCollector()}
	p.collector.SetStorage(p)
	return p
}

// IsVisited implements storage.Storage.
func (p *probe) IsVisited(hash uint64) (bool, error) {
	p.hash = hash
	return false, nil
}

// The other methods of storage.Storage do nothing.

func (p *probe) Init() error                 { return nil }
func (p *probe) Visited(uint64) error        { return nil }
func (p *probe) Cookies(*url.URL) string     { return "" }
func (p *probe) SetCookies(*url.URL, string) {}

// contents returns a reader of the same bytes as a request body, without changing the body. known
// is false if net/http sets no GetBody for the type of the body, so that Colly cannot read it twice
// either.
func contents(body io.Reader) (copied io.Reader, known bool) {
	switch b := body.(type) {
	case *bytes.Buffer:
		return bytes.NewReader(b.Bytes()), true
	case *bytes.Reader:
		snapshot := *b
		return &snapshot, true
	case *strings.Reader:
		snapshot := *b
		return &snapshot, true
	}
	return nil, false
}

// addTo returns the hash of a URL and a body. Colly writes both to one 64-bit FNV-1a.
func addTo(hash uint64, body io.Reader) uint64 {
	if body == nil {
		return hash
	}
	const prime = 1099511628211
	text, _ := io.ReadAll(body)
	for _, b := range text {
		hash = (hash ^ uint64(b)) * prime
	}
	return hash
}
