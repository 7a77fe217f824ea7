package collyrobots

import (
	"crypto/sha1"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/gocolly/colly/v2"
)

// cached reports whether a page will come from the collector's CacheDir, where Colly v2 stores it
// under the SHA-1 of its URL. cached does not read the file: if the stored response is a server
// error, Colly requests the page although cached has returned true.
func cached(c *colly.Collector, r *colly.Request) bool {
	if c.CacheDir == "" || r.Method != http.MethodGet || r.Headers.Get("Cache-Control") == "no-cache" {
		return false
	}
	sum := sha1.Sum([]byte(r.URL.String()))
	name := hex.EncodeToString(sum[:])
	info, err := os.Stat(filepath.Join(c.CacheDir, name[:2], name))
	return err == nil && (c.CacheExpiration <= 0 || time.Since(info.ModTime()) <= c.CacheExpiration)
}

// keepFromCache makes Colly pass a denied page to the transport although it may be in CacheDir. It
// reports whether it has changed the headers for that.
func keepFromCache(c *colly.Collector, r *colly.Request) bool {
	if c.CacheDir == "" {
		return false
	}
	values := (*r.Headers)["Cache-Control"]
	(*r.Headers)["Cache-Control"] = append([]string{"no-cache"}, values...)
	return true
}

// allowCache undoes the change of keepFromCache, because a retry of the page has the same headers.
func allowCache(r *colly.Request) {
	values := (*r.Headers)["Cache-Control"]
	switch {
	case len(values) == 0 || values[0] != "no-cache": // a later callback has changed it
	case len(values) == 1:
		delete(*r.Headers, "Cache-Control")
	default:
		(*r.Headers)["Cache-Control"] = values[1:]
	}
}
