package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"github.com/collyrobots/collyrobots/report"
)

// An Option sets one property of a Log. The zero Option is not valid.
type Option struct{ set func(*config) error }

type config struct {
	key     string
	onError func(error)
	conceal concealer
}

// configure applies opts and returns all of their faults.
func configure(opts []Option) (config, error) {
	c := config{onError: func(err error) { slog.Error("audit log has a fault", "error", err) }}
	var faults []error
	for _, o := range opts {
		if o.set == nil {
			faults = append(faults, errors.New("audit: the zero Option is not valid"))
			continue
		}
		faults = append(faults, o.set(&c))
	}
	return c, errors.Join(faults...)
}

// Key sets the key that signs the checkpoints: the text of a private key of
// golang.org/x/mod/sumdb/note, as note.GenerateKey returns it. The name of the key is the origin of
// the log. Without Key, Open makes a key and keeps it in the folder.
func Key(text string) Option {
	return Option{set: func(c *config) error {
		_, _, err := parseKey(text)
		if err != nil {
			return fmt.Errorf("audit: Key: %w", err)
		}
		c.key = text
		return nil
	}}
}

// OnError sets a function that is called, on a goroutine of its own, when the log can no longer be
// written, for example because the disk is full. The crawl continues without the log until the disk
// can be written again. To stop the crawl instead, cancel its context in f. Without OnError the error
// is logged with slog.Default.
func OnError(f func(error)) Option {
	return Option{set: func(c *config) error {
		if f == nil {
			return errors.New("audit: OnError: the function is nil")
		}
		c.onError = f
		return nil
	}}
}

// HashQueries replaces the query of each URL by a keyed hash, HMAC-SHA256 with the secret. Decisions
// about URLs with a query can then not be checked. With the secret it is possible to find out
// whether the log has a certain URL.
func HashQueries(secret []byte) Option { return conceal("HashQueries", secret, false) }

// HashPaths is like HashQueries for the path and the query of each URL, except those of robots.txt
// files. No decision about a page can then be checked, but all delays can.
func HashPaths(secret []byte) Option { return conceal("HashPaths", secret, true) }

func conceal(name string, secret []byte, paths bool) Option {
	secret = append([]byte(nil), secret...)
	return Option{set: func(c *config) error {
		if len(secret) < 16 {
			return fmt.Errorf("audit: %s: the secret has %d bytes, want at least 16", name, len(secret))
		}
		c.conceal = concealer{secret: secret, paths: paths}
		return nil
	}}
}

// A concealer replaces parts of URLs by hashes. The zero concealer replaces nothing.
type concealer struct {
	secret []byte
	paths  bool
}

// hidden begins the hash that replaces a part of a URL.
const hidden = "hmac-sha256-"

// event returns a copy of from with all URLs concealed, or from itself if nothing is concealed.
// Errors are replaced, because their texts have URLs.
func (c concealer) event(from *report.Event) *report.Event {
	if c.secret == nil {
		return from
	}
	event := *from
	e := &event
	e.URL = c.url(e.URL)
	e.From = c.url(e.From)
	e.Err = concealed(e.Err)
	if e.Decision != nil {
		d := *e.Decision
		d.URL = c.url(d.URL)
		d.Err = concealed(d.Err)
		e.Decision = &d
	}
	return e
}

func concealed(err error) error {
	if err == nil {
		return nil
	}
	return errors.New("concealed")
}

// url returns a URL with its query or its path replaced.
func (c concealer) url(text string) string {
	u, err := url.Parse(text)
	if err != nil || text == "" {
		return c.hash(text)
	}
	if u.Path == "/robots.txt" && u.RawQuery == "" {
		return text
	}
	u.Fragment = ""
	switch {
	case c.paths:
		*u = url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/" + c.hash(u.RequestURI())}
	case u.RawQuery != "":
		u.RawQuery = c.hash(u.RawQuery)
	}
	return u.String()
}

func (c concealer) hash(text string) string {
	if text == "" {
		return ""
	}
	mac := hmac.New(sha256.New, c.secret)
	mac.Write([]byte(text))
	return hidden + hex.EncodeToString(mac.Sum(nil))
}

// isConcealed reports whether a part of a URL was replaced.
func isConcealed(text string) bool { return strings.Contains(text, hidden) }
