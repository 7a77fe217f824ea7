package revalidate

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A control has the directives of Cache-Control that concern a private cache, which is the cache of
// one user (RFC 9111, section 5.2). It ignores s-maxage, which is for shared caches.
type control struct {
	noStore bool
	noCache bool
	maxAge  time.Duration // -1 if it is missing; 0 if it is invalid or if two values differ
}

func controlOf(h http.Header) control {
	c := control{maxAge: -1}
	for _, line := range h["Cache-Control"] {
		for directive := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "no-store":
				c.noStore = true
			case "no-cache":
				c.noCache = true
			case "max-age":
				age, ok := seconds(strings.Trim(value, `" `))
				if !ok || c.maxAge >= 0 && c.maxAge != age {
					age = 0
				}
				c.maxAge = age
			}
		}
	}
	return c
}

// freshness returns how long a response is fresh, and its age when it was received (RFC 9111,
// sections 4.2.1 and 4.2.3). A response without a valid Date is not fresh. There is no heuristic: a
// response without max-age and Expires is not fresh either.
func (c control) freshness(h http.Header, now time.Time) (lifetime, age time.Duration) {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil || c.noCache {
		return 0, 0
	}
	age, _ = seconds(h.Get("Age"))
	age = max(age, now.Sub(date))
	if c.maxAge >= 0 {
		return c.maxAge, age
	}
	expires := h["Expires"]
	if len(expires) != 1 {
		return 0, age
	}
	until, err := http.ParseTime(expires[0])
	if err != nil {
		return 0, age
	}
	return min(max(0, until.Sub(date)), longestLifetime), age
}

// longestLifetime limits how long a response is fresh.
const longestLifetime = Life

// seconds reads delta-seconds (RFC 9111, section 1.2.2). A number that is too large counts as the
// longest lifetime.
func seconds(s string) (time.Duration, bool) {
	s = strings.TrimSpace(s)
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return longestLifetime, true
	}
	return min(time.Duration(n)*time.Second, longestLifetime), true
}
