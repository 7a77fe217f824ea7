package weburl_test

import (
	"testing"

	"github.com/collyrobots/collyrobots/internal/weburl"
)

func TestDecodeUnreserved(t *testing.T) {
	for target, want := range map[string]string{
		"":                      "",
		"/plain?q=1":            "/plain?q=1",
		"/%41%5A%61%7A%30%39":   "/AZaz09",
		"/%2D%2E%5F%7E":         "/-._~",
		"/%2F%3F%25%20%C3%A9":   "/%2F%3F%25%20%C3%A9",
		"%41":                   "A",
		"/a%2541":               "/a%2541", // an escaped percent sign
		"/%25%34%31":            "/%2541",
		"/x%5By%5D%40%5E%60%7B": "/x%5By%5D%40%5E%60%7B", // next to letters in ASCII
	} {
		if got := weburl.DecodeUnreserved(target); got != want {
			t.Errorf("%s: got %s, want %s", target, got, want)
		}
	}
}
