// Package redact takes the passwords out of URLs that are to be read by people.
package redact

import (
	"errors"
	"net/url"
	"strings"
)

// mask stands for a password, as it does in url.URL.Redacted.
const mask = "xxxxx"

// Text returns a text in which the passwords of all URLs are replaced, those of what is no valid
// URL included. Without one it returns text itself.
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

// one returns a URL without its password. Its authority begins at an offset.
func one(s string, authority int) string {
	at := strings.LastIndexByte(s, '@')
	if at < authority {
		return s
	}
	u, err := url.Parse(s)
	if err != nil {
		return s[:authority] + mask + s[at:] // whatever stands there
	}
	if _, secret := u.User.Password(); !secret {
		return s
	}
	return u.Redacted()
}

func isScheme(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'
}

// errInvalid stands for an error that may quote a part of a password.
var errInvalid = errors.New("invalid URL")

// ParseError returns the error of url.Parse without the password in the URL that it quotes.
func ParseError(err error) error {
	failed := (*url.Error)(nil)
	if !errors.As(err, &failed) {
		return err
	}
	if safe := Text(failed.URL); safe != failed.URL {
		return &url.Error{Op: failed.Op, URL: safe, Err: errInvalid}
	}
	return err
}

// Error returns err with the text that [Text] makes of its own, or err itself if that is the same.
// What it is, errors.Is and errors.As find as before.
func Error(err error) error {
	if err == nil {
		return nil
	}
	if text := err.Error(); Text(text) != text {
		return &redacted{err, Text(text)}
	}
	return err
}

// A redacted error is another one with its text changed.
type redacted struct {
	err  error
	text string
}

func (e *redacted) Error() string { return e.text }
func (e *redacted) Unwrap() error { return e.err }
