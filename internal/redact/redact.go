// Package redact removes passwords from the URLs in texts for people, such as errors and log
// messages.
package redact

import (
	"errors"
	"net/url"
	"strings"
)

// mask replaces a password, as in url.URL.Redacted.
const mask = "xxxxx"

// Text returns text with the passwords of all URLs replaced, including those of invalid URLs. If
// text contains no password, Text returns it unchanged.
func Text(text string) string {
	var b strings.Builder
	rest := text
	for {
		i := strings.Index(rest, "://")
		if i < 0 {
			break
		}
		end := len(rest)
		if n := strings.IndexAny(rest[i:], " \t\r\n\"<>"); n >= 0 {
			end = i + n
		}
		begin := i
		for begin > 0 && isScheme(rest[begin-1]) {
			begin--
		}
		b.WriteString(rest[:begin])
		b.WriteString(one(rest[begin:end], i-begin+len("://")))
		rest = rest[end:]
	}
	if b.Len() == 0 {
		return text
	}
	b.WriteString(rest)
	return b.String()
}

// whole is like [Text] for a text that is one URL. Blanks and quotation marks do not end it.
func whole(raw string) string {
	i := strings.Index(raw, "://")
	if i < 0 {
		return raw
	}
	return one(raw, i+len("://"))
}

// one returns the URL s without its password. The authority of s begins at the given offset. If s
// is not a valid URL, one replaces everything between that offset and the last "@", because any
// part of it may be the password.
func one(s string, authority int) string {
	at := strings.LastIndexByte(s, '@')
	if at < authority {
		return s
	}
	u, err := url.Parse(s)
	if err != nil {
		return s[:authority] + mask + s[at:]
	}
	if _, secret := u.User.Password(); !secret {
		return s
	}
	return u.Redacted()
}

func isScheme(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'
}

// errInvalid replaces an error whose text may contain a part of a password.
var errInvalid = errors.New("invalid URL")

// ParseError returns an error of url.Parse with the password in its URL replaced. The cause of such
// an error is also replaced, because it may quote a part of the password. If the URL has no
// password, ParseError returns err unchanged.
func ParseError(err error) error {
	failed := (*url.Error)(nil)
	if !errors.As(err, &failed) {
		return err
	}
	if safe := whole(failed.URL); safe != failed.URL {
		return &url.Error{Op: failed.Op, URL: safe, Err: errInvalid}
	}
	return err
}

// Error returns an error that wraps err and whose text is the text of err after [Text]. If the text
// contains no password, Error returns err unchanged.
func Error(err error) error {
	if err == nil {
		return nil
	}
	if text := err.Error(); Text(text) != text {
		return &redacted{err: err, text: Text(text)}
	}
	return err
}

// A redacted error wraps another error and has a different text.
type redacted struct {
	err  error
	text string
}

func (e *redacted) Error() string { return e.text }
func (e *redacted) Unwrap() error { return e.err }
