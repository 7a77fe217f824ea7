package term

import (
	"net/url"
	"regexp"
	"strings"
)

// urls matches the URLs in a text, valid or not.
var urls = regexp.MustCompile(`[A-Za-z0-9+.-]*://[^ \t\r\n"<>]*`)

// withoutPasswords returns text with the passwords of all URLs replaced, as in url.URL.Redacted.
func withoutPasswords(text string) string { return urls.ReplaceAllStringFunc(text, withoutPassword) }

// withoutPassword returns a URL without its password. If the URL is not valid, everything before the
// last "@" of its authority and path may be the password.
func withoutPassword(raw string) string {
	authority := strings.Index(raw, "://") + len("://")
	at := strings.LastIndexByte(raw, '@')
	if at < authority {
		return raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		return raw[:authority] + "xxxxx" + raw[at:]
	}
	if _, secret := u.User.Password(); !secret {
		return raw
	}
	return u.Redacted()
}
