package sitemap

import (
	"net/url"
	"testing"
)

func mustURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

func base(t testing.TB, s string) *url.URL {
	t.Helper()
	return mustURL(s)
}
