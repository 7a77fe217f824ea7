package policy

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

func classify(status int) class {
	switch {
	case status == 200:
		return ok
	case status > 200 && status < 300:
		return success
	case status == http.StatusTooManyRequests:
		return throttled
	case status >= 400 && status < 500:
		return clientError
	case status >= 500 && status < 600:
		return serverError
	default:
		return undefined
	}
}

// readBody returns the text of a response as t reads it, and what it has gone through: at most one
// octet more than a dialect with a limit reads, which shows that there was more. A body that ends
// early is an error.
func (t *accessTable) readBody(resp *http.Response) ([]byte, coding, error) {
	applied := codings(resp.Header)
	switch {
	case len(applied) == 0:
		body, err := t.readText(resp.Body)
		return body, plain, err
	case strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip"):
		return t.readGzip(resp.Body)
	case t.asSent:
		body, err := t.readText(resp.Body)
		return body, encoded, err
	case len(applied) == 1 && strings.TrimPrefix(applied[0], "x-") == "gzip":
		body, err := t.unzip(resp.Body)
		return body, decoded, err
	}
	return nil, encoded, &CodingError{Coding: strings.Join(applied, ", ")}
}

// readGzip reads a body that net/http would have decompressed if the request had not asked for gzip
// itself: the text counts as plain. A dialect that reads bodies as they are also accepts text that
// is only labelled as gzip.
func (t *accessTable) readGzip(body io.Reader) ([]byte, coding, error) {
	buffered := bufio.NewReader(body)
	if magic, _ := buffered.Peek(len(gzipMagic)); t.asSent && string(magic) != gzipMagic {
		text, err := t.readText(buffered)
		return text, encoded, err
	}
	text, err := t.unzip(buffered)
	return text, plain, err
}

// gzipMagic is what a gzip stream begins with (RFC 1952, section 2.3.1).
const gzipMagic = "\x1f\x8b"

// readText reads what t reads of a text. A line that is cut by a limit of ours is dropped; where
// the limit is the dialect's own, the dialect does that.
func (t *accessTable) readText(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, int64(t.size)+1))
	if t.readsOn() && len(text) > t.size {
		text = text[:bytes.LastIndexByte(text, '\n')+1]
	}
	return text, err
}

// readsOn reports whether t reads what the dialects with a limit leave out.
func (t *accessTable) readsOn() bool { return t.size > dialect.SizeLimit }

// errNoEnd is the error for a gzip stream that is far longer than its text.
var errNoEnd = errors.New("the compressed text is too long")

// unzip reads compressed text. Compressed text is not much longer than the text, so reading also
// stops after a number of compressed bytes: a stream of empty gzip members or empty blocks has no
// text and no end.
func (t *accessTable) unzip(body io.Reader) ([]byte, error) {
	limited := &io.LimitedReader{R: body, N: 2 * int64(t.size)}
	var text []byte
	unzipped, err := gzip.NewReader(limited)
	if err == nil {
		text, err = t.readText(unzipped)
	}
	if limited.N == 0 {
		return nil, &CodingError{Coding: "gzip", Err: errNoEnd}
	}
	corrupt := flate.CorruptInputError(0)
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt) {
		err = &CodingError{"gzip", err}
	}
	return text, err
}

// coding is what a text has gone through on its way from the transport. The numbers are in stored
// records.
type coding uint8

const (
	plain   coding = iota // nothing: there was no coding
	encoded               // nothing: it is still in a coding
	decoded               // it was in a coding, and is not any more
)

// contentCodings are the codings of HTTP (IANA's HTTP Content Coding Registry) but identity, which
// is none.
var contentCodings = []string{"aes128gcm", "br", "compress", "dcb", "dcz", "deflate", "exi", "gzip", "pack200-gzip", "x-compress", "x-gzip", "zstd"}

// codings returns the codings that a body is in, in the order in which they were applied. Other
// values of Content-Encoding, such as "utf-8" and "none", are mistakes of the server and no
// codings.
func codings(h http.Header) (applied []string) {
	for _, line := range h.Values("Content-Encoding") {
		for value := range strings.SplitSeq(line, ",") {
			if value = strings.ToLower(strings.TrimSpace(value)); slices.Contains(contentCodings, value) {
				applied = append(applied, value)
			}
		}
	}
	return applied
}

// freshness reads Cache-Control and Age (RFC 9111, sections 5.1 and 5.2). What forbids caching
// counts as max-age 0.
func freshness(h http.Header) (maxAge, age seconds) {
	maxAge = noMaxAge
	for _, line := range h.Values("Cache-Control") {
		for directive := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "max-age":
				if s, ok := parseSeconds(strings.Trim(value, `" `)); ok && maxAge != 0 {
					maxAge = s
				}
			case "no-store", "no-cache":
				maxAge = 0
			}
		}
	}
	age, _ = parseSeconds(h.Get("Age"))
	return maxAge, age
}

// parseSeconds reads delta-seconds (RFC 9111, section 1.2.2): digits, and what is too large is
// large.
func parseSeconds(s string) (seconds, bool) {
	s = strings.TrimSpace(s)
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	const large = 1<<31 - 1
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return large, true
	}
	return seconds(n), true
}

// longestWait is what a longer Retry-After counts as.
const longestWait = day

// RetryAfter reads Retry-After (RFC 9110, section 10.2.3), seconds or a date, as a time from now
// on. More than a day counts as a day; 0: there is none, or it has passed.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if s, ok := parseSeconds(value); ok {
		return min(s.duration(), longestWait)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(0, at.Sub(now)), longestWait)
	}
	return 0
}
