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

// readBody returns the text of a response as t reads it, and its coding. The text is at most one
// byte longer than the limit of t; that byte shows that there is more. A truncated body is an
// error.
func (t *accessTable) readBody(resp *http.Response) ([]byte, coding, error) {
	applied := codings(resp.Header)
	switch {
	case len(applied) == 0:
		body, err := t.readText(resp.Body)
		return body, plain, err
	case strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip"):
		return t.readGzip(resp.Body)
	case t.ignoresCoding:
		body, err := t.readText(resp.Body)
		return body, encoded, err
	case len(applied) == 1 && strings.TrimPrefix(applied[0], "x-") == "gzip":
		body, err := t.unzip(resp.Body)
		return body, decoded, err
	}
	return nil, encoded, &CodingError{Coding: strings.Join(applied, ", ")}
}

// readGzip reads a body that net/http would have decompressed if the request had not asked for gzip
// explicitly. Therefore the text counts as plain. A dialect that ignores codings also accepts plain
// text whose Content-Encoding is gzip.
func (t *accessTable) readGzip(body io.Reader) ([]byte, coding, error) {
	buffered := bufio.NewReader(body)
	if magic, _ := buffered.Peek(len(gzipMagic)); t.ignoresCoding && string(magic) != gzipMagic {
		text, err := t.readText(buffered)
		return text, encoded, err
	}
	text, err := t.unzip(buffered)
	return text, plain, err
}

// gzipMagic is the beginning of a gzip stream (RFC 1952, section 2.3.1).
const gzipMagic = "\x1f\x8b"

// readText reads a text up to the limit of t. If the limit is ours, it drops a line that the limit
// cuts; if the limit is the dialect's, the dialect does that.
func (t *accessTable) readText(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, int64(t.sizeLimit)+1))
	if t.readsLongFiles() && len(text) > t.sizeLimit {
		text = text[:bytes.LastIndexByte(text, '\n')+1]
	}
	return text, err
}

// readsLongFiles reports whether t reads files beyond the limit of the dialects that have one.
func (t *accessTable) readsLongFiles() bool { return t.sizeLimit > dialect.SizeLimit }

// errTooLong is the error for a gzip stream that is much longer than its text.
var errTooLong = errors.New("the compressed text is too long")

// unzip reads compressed text. It also stops after a number of compressed bytes, because a stream
// of empty gzip members or empty blocks may go on for ever without any text. Useful compressed text
// is not much longer than the text.
func (t *accessTable) unzip(body io.Reader) ([]byte, error) {
	limited := &io.LimitedReader{R: body, N: 2 * int64(t.sizeLimit)}
	var text []byte
	unzipped, err := gzip.NewReader(limited)
	if err == nil {
		text, err = t.readText(unzipped)
	}
	if limited.N == 0 {
		return nil, &CodingError{Coding: "gzip", Err: errTooLong}
	}
	corrupt := flate.CorruptInputError(0)
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt) {
		err = &CodingError{Coding: "gzip", Err: err}
	}
	return text, err
}

// coding says whether a text had a content coding, and whether it was decoded. Stored records
// contain these numbers.
type coding uint8

const (
	plain   coding = iota // the text had no coding
	encoded               // the text still has its coding
	decoded               // the text was decoded
)

// contentCodings are the codings of IANA's HTTP Content Coding Registry, except identity, which
// changes nothing.
var contentCodings = []string{
	"aes128gcm", "br", "compress", "dcb", "dcz", "deflate", "exi", "gzip", "pack200-gzip", "x-compress", "x-gzip", "zstd",
}

// codings returns the codings of a body in the order of their application. It ignores other values
// of Content-Encoding, such as "utf-8" and "none", which are mistakes of the server.
func codings(h http.Header) (applied []string) {
	for _, line := range h.Values("Content-Encoding") {
		for value := range strings.SplitSeq(line, ",") {
			value = strings.ToLower(strings.TrimSpace(value))
			if slices.Contains(contentCodings, value) {
				applied = append(applied, value)
			}
		}
	}
	return applied
}

// freshness reads Cache-Control and Age (RFC 9111, sections 5.1 and 5.2). A directive that forbids
// caching counts as max-age 0.
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

// parseSeconds reads delta-seconds (RFC 9111, section 1.2.2), which are digits. A number that is
// too large counts as the largest.
func parseSeconds(s string) (seconds, bool) {
	s = strings.TrimSpace(s)
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	const largest = 1<<31 - 1
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return largest, true
	}
	return seconds(n), true
}

// longestWait limits Retry-After.
const longestWait = day

// RetryAfter returns the time from now that a Retry-After header asks for in seconds or by a date
// (RFC 9110, section 10.2.3). More than a day counts as a day. RetryAfter returns 0 if there is no
// such header, or if its date has passed.
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
