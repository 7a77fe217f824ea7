// Package revalidate makes the requests for known pages conditional. It reads the validators of a
// response, which are its ETag and its Last-Modified, and says how long the response is fresh (RFC
// 9110, sections 8.8 and 13; RFC 9111, sections 4.1 to 4.3).
//
// The package knows neither Colly nor the store.
package revalidate

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// A Record has the validators of the last response for a URL, if it has any, and how long it is
// fresh. It is immutable.
type Record struct {
	ETag         string    `json:"etag,omitempty"`
	LastModified string    `json:"last_modified,omitempty"`
	Vary         string    `json:"vary,omitempty"`     // the names in Vary, in lower case and sorted; "*" if not known
	Selected     string    `json:"selected"`           // a hash of these fields in the request
	Lifetime     int64     `json:"lifetime,omitempty"` // how long a response is fresh, in seconds
	Fresh        time.Time `json:"fresh,omitzero"`     // the time until which the last response is fresh
	Stored       time.Time `json:"stored"`             // when the record was made
	Version      int       `json:"version"`            // recordVersion
}

const recordVersion = 1

// Life is how long a record is kept after it was written. RenewAfter is the age at which a record
// that is still valid is written again.
const (
	Life       = 90 * 24 * time.Hour
	RenewAfter = Life / 2
)

// longest is the maximum length in bytes of an ETag, and of the list of names in Vary.
const longest = 512

// ErrUnusable reports that a response has a validator that was not kept.
var ErrUnusable = errors.New("the ETag or Last-Modified is malformed, too long or repeated")

// New returns the record of a complete response with status 200 to a GET of u with this header. It
// returns nil if the response is not fresh and has no validator that can be used, or if it must not
// be stored. The error
// is nil or ErrUnusable. If only one of two validators can be used, New returns both a record and
// ErrUnusable.
func New(u *url.URL, sent, received http.Header, now time.Time) (*Record, error) {
	control := controlOf(received)
	if control.noStore {
		return nil, nil
	}
	etag, etagErr := entityTag(received)
	modified, modifiedErr := lastModified(received, now)
	err := errors.Join(etagErr, modifiedErr)
	if err != nil {
		err = ErrUnusable
	}
	r := &Record{
		ETag:         etag,
		LastModified: modified,
		Vary:         varyOf(received),
		Stored:       now.UTC().Truncate(time.Second),
		Version:      recordVersion,
	}
	if r.Vary != "*" && !slices.Contains(strings.Split(r.Vary, ","), "cookie") {
		lifetime, age := control.freshness(received, now)
		r.Lifetime = int64(lifetime / time.Second)
		if lifetime > age {
			r.Fresh = now.Add(lifetime - age).UTC().Truncate(time.Second)
		}
	}
	if r.Fresh.IsZero() && !r.hasValidator() {
		return nil, err
	}
	r.Selected = r.selection(u, sent)
	return r, err
}

// entityTag returns the ETag of a response as it was written, or "" if there is none. It returns
// ErrUnusable unless there is exactly one ETag, and that is well-formed and in ASCII (RFC 9110,
// section 8.8.3). For example, the value "*" would match every page.
func entityTag(h http.Header) (string, error) {
	values := h["Etag"]
	if len(values) == 0 {
		return "", nil
	}
	value := values[0]
	opaque := strings.TrimPrefix(value, "W/")
	if len(values) > 1 || len(value) > longest || len(opaque) < 2 || opaque[0] != '"' || opaque[len(opaque)-1] != '"' {
		return "", ErrUnusable
	}
	for i := 1; i < len(opaque)-1; i++ {
		c := opaque[i]
		if c <= ' ' || c == '"' || c >= 0x7f {
			return "", ErrUnusable
		}
	}
	return value, nil
}

// lastModified returns the Last-Modified of a response as it was written, or "" if there is none. A
// time after the Date of the response cannot be used: until then, the page would seem unchanged.
func lastModified(h http.Header, now time.Time) (string, error) {
	values := h["Last-Modified"]
	if len(values) == 0 {
		return "", nil
	}
	modified, err := http.ParseTime(values[0])
	if len(values) > 1 || err != nil {
		return "", ErrUnusable
	}
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		date = now
	}
	if modified.After(date) {
		return "", ErrUnusable
	}
	return values[0], nil
}

// varyOf returns the names in the Vary header of a response, in lower case and sorted.
func varyOf(h http.Header) string {
	var names []string
	length := 0
	for _, line := range h["Vary"] {
		for name := range strings.SplitSeq(line, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			length += len(name) + 1
			if name == "*" || length > longest || strings.ContainsFunc(name, isNoToken) {
				return "*"
			}
			if name != "" {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

func isNoToken(c rune) bool { return c <= ' ' || c >= 0x7f }

// hasValidator reports whether a request for the page can be conditional.
func (r *Record) hasValidator() bool { return r.ETag != "" || r.LastModified != "" }

// WithoutFreshness returns a copy of r that is not fresh. It returns nil if r has no validator, so
// that nothing is left.
func (r *Record) WithoutFreshness() *Record {
	if !r.hasValidator() {
		return nil
	}
	stale := *r
	stale.Lifetime = 0
	stale.Fresh = time.Time{}
	return &stale
}

// selection returns a hash of the fields of a request that select the response: its credentials,
// and the fields that Vary names.
func (r *Record) selection(u *url.URL, sent http.Header) string {
	h := sha256.New()
	if u.User != nil { // net/http derives the header from it
		fmt.Fprintf(h, "%q\n", u.User.String())
	} else {
		fmt.Fprintf(h, "%q\n", sent["Authorization"])
	}
	for name := range strings.SplitSeq(r.Vary, ",") {
		fmt.Fprintf(h, "%q\n", sent[http.CanonicalHeaderKey(name)])
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}

// selects reports whether a request selects the same representation of the page as the recorded
// request.
func (r *Record) selects(u *url.URL, sent http.Header) bool {
	return r.Vary != "*" && r.Selected == r.selection(u, sent)
}

// Conditions returns the header fields that make a request conditional. It returns nil if there are
// none. An ETag identifies the representation. A Last-Modified does not, so it is sent only if the
// request selects the same representation (RFC 9111, section 4.1).
func (r *Record) Conditions(u *url.URL, sent http.Header) http.Header {
	var h http.Header
	if r.ETag != "" {
		h = http.Header{"If-None-Match": {r.ETag}}
	}
	if r.LastModified != "" && r.selects(u, sent) {
		if h == nil {
			h = make(http.Header)
		}
		h["If-Modified-Since"] = []string{r.LastModified}
	}
	return h
}

// IsFresh reports whether the page need not be requested at now by a request with this header.
func (r *Record) IsFresh(u *url.URL, sent http.Header, now time.Time) bool {
	return now.Before(r.Fresh) && !r.Stored.After(now.Add(time.Minute)) && r.selects(u, sent)
}

// Confirm returns the header of the recorded response, updated by a 304 response with the header
// received (RFC 9111, section 4.3.4).
func (r *Record) Confirm(received http.Header) http.Header {
	h := received.Clone()
	if h == nil {
		h = make(http.Header)
	}
	setDefault(h, "Etag", r.ETag)
	setDefault(h, "Last-Modified", r.LastModified)
	setDefault(h, "Vary", r.Vary)
	if r.Lifetime > 0 && h["Expires"] == nil {
		setDefault(h, "Cache-Control", fmt.Sprintf("max-age=%d", r.Lifetime))
	}
	return h
}

func setDefault(h http.Header, name, value string) {
	if value != "" && h[name] == nil {
		h[name] = []string{value}
	}
}

// Outdates reports whether r, which is newer than old, has to be written.
func (r *Record) Outdates(old *Record) bool {
	same := *r
	same.Stored = old.Stored
	return same != *old || r.Stored.Sub(old.Stored) > RenewAfter
}

// Encode returns the stored form of the record.
func (r *Record) Encode() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // a year of more than four digits
	}
	return b
}

// Decode returns the record that Encode has encoded as b. It returns an error if b is not such a
// record.
func Decode(b []byte) (*Record, error) {
	r := new(Record)
	err := json.Unmarshal(b, r)
	if err != nil {
		return nil, err
	}
	if r.Version != recordVersion {
		return nil, fmt.Errorf("unknown record version %d", r.Version)
	}
	h := http.Header{}
	setDefault(h, "Etag", r.ETag)
	_, err = entityTag(h)
	if err != nil {
		return nil, err
	}
	if r.LastModified == "" {
		return r, nil
	}
	_, err = http.ParseTime(r.LastModified)
	return r, err
}

// Key returns the key of the record of a URL for a collector. The URL is hashed, so the key has no
// passwords, and its length is bounded.
func Key(collector int, u *url.URL) string {
	page := *u
	page.Fragment = ""
	page.RawFragment = ""
	sum := sha256.Sum256([]byte(page.String()))
	return fmt.Sprintf("page:%d:%s", collector, base64.RawURLEncoding.EncodeToString(sum[:18]))
}

// conditions are the header fields that make a request conditional or partial (RFC 9110, sections
// 13.1 and 14.2).
var conditions = []string{"If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range", "Range"}

// Allows reports whether a request with this header may be made conditional. It returns false if
// the program has made the request conditional or partial, or has set "Cache-Control: no-cache" or
// "no-store" to get a new copy of the page.
func Allows(sent http.Header) bool {
	for _, name := range conditions {
		if sent[name] != nil {
			return false
		}
	}
	if sent["Cache-Control"] == nil {
		return true
	}
	control := controlOf(sent)
	return !control.noCache && !control.noStore
}
