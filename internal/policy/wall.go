package policy

import (
	"bytes"
	"mime"
	"net/http"
	"strings"
)

// IsChallenge reports whether a response is a challenge, which only a browser with a user can answer.
// Cloudflare marks it with "cf-mitigated: challenge", Vercel with "x-vercel-mitigated: challenge", and
// AWS WAF with "x-amzn-waf-action: challenge" or "captcha":
//
//   - https://developers.cloudflare.com/cloudflare-challenges/challenge-types/challenge-pages/detect-response/
//   - https://vercel.com/docs/vercel-firewall/firewall-concepts
//   - https://docs.aws.amazon.com/waf/latest/developerguide/waf-captcha-and-challenge-how-it-works.html
func IsChallenge(h http.Header) bool {
	for _, name := range [...]string{"Cf-Mitigated", "X-Vercel-Mitigated"} {
		values := h[name]
		if len(values) > 0 && strings.EqualFold(values[0], "challenge") {
			return true
		}
	}
	return len(h["X-Amzn-Waf-Action"]) > 0
}

// isWall reports whether a response to GET /robots.txt is that of a bot wall: it is a challenge, or an
// HTML page instead of a file. text is what is known of its body. Files of rules are often sent as
// text/html, and pages about files that do not exist are usually HTML, so the Content-Type counts only
// for the statuses of walls.
func isWall(resp *http.Response, text []byte) bool {
	if IsChallenge(resp.Header) {
		return true
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
		return kind == "text/html" || kind == "application/xhtml+xml" || isMarkup(text)
	case http.StatusOK:
		return isMarkup(text)
	}
	return false
}

// isMarkup reports whether a text begins like an HTML page.
func isMarkup(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("<"))
}

// Walled reports whether the last response was that of a bot wall, as far as that can be seen. The rules
// are those of its status. A page with rules for the crawler is not a wall.
func (p *Policy) Walled() bool {
	switch {
	case p.RobotsStatus == Rules && p.failure != nil:
		return false // the rules of an earlier file apply
	case p.RobotsStatus == Rules && p.copy != nil:
		return p.copy.walled && p.copy.parsed.isEmpty()
	case p.failure != nil:
		return p.failure.walled
	}
	return p.copy != nil && p.copy.walled
}

// isEmpty reports whether the file says nothing about the crawler.
func (f *parsedFile) isEmpty() bool {
	delay, _ := f.crawlDelay()
	return len(f.group.Rules()) == 0 && len(f.sitemaps) == 0 && delay == 0
}
