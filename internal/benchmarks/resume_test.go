package benchmarks

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/sitemap"
	"github.com/collyrobots/collyrobots/store"
)

// TestResume feeds the URLs in the sitemaps of one site to a Sink, without Resume and with Resume
// in each store. It prints the time for a URL, which includes the writes to the disk.
func TestResume(t *testing.T) {
	files := max(1, *urls/perFile)
	if *urls == 0 && !underRace {
		files = 4
	}
	site := &listing{files: files, document: listed()}
	for name, open := range map[string]func(path string) (store.Store, error){
		"no Resume": nil,
		"Memory":    func(string) (store.Store, error) { return store.NewMemory(), nil },
		"Dir":       store.OpenDir,
	} {
		t.Run(name, func(t *testing.T) { feedToSink(t, site, open) })
	}
}

// feedToSink feeds a site once. If open is nil, it does so without Resume.
func feedToSink(t *testing.T, site *listing, open func(path string) (store.Store, error)) {
	fed := 0
	feed := collyrobots.Feed{Sink: func(context.Context, sitemap.Entry) error { fed++; return nil }, Resume: open != nil}
	options := []collyrobots.Option{collyrobots.FollowSitemaps(feed)}
	if open != nil {
		records, err := open(filepath.Join(t.TempDir(), "records"))
		if err != nil {
			t.Fatal(err)
		}
		defer records.Close()
		options = append(options, collyrobots.Store(records))
	}
	c, p := obedient(t, site, options...)
	began := time.Now()
	if err := c.Visit("https://www.example.com/"); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	n := site.files * perFile
	t.Logf("%d URLs: %v per URL", n, time.Since(began)/time.Duration(n))
	if fed != n {
		t.Errorf("%d of %d URLs were fed: %+v", fed, n, p.Stats().Sitemaps)
	}
}
