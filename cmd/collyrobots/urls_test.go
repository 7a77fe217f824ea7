package main

import (
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/internal/e2e/kit"
)

// TestUnusualURLs checks that each command names the reason why no request can be sent to a URL, before it
// sends one to any other.
func TestUnusualURLs(t *testing.T) {
	for _, test := range kit.UnusualURLs {
		if test.Reason == "" {
			continue
		}
		for _, command := range []string{"check", "plan", "crawl"} {
			status, out, errs := call(t, "", command, test.URL)
			if status != statusFailed || out != "" || !namesReason(errs, test) || len(errs) > 1000 {
				t.Errorf("%s %.60q: status %d, output %q, errors %.500q", command, test.URL, status, out, errs)
			}
		}
	}
}

// namesReason reports whether the errors of a command have the reason of a URL. Package net/url
// rejects some of the URLs itself.
func namesReason(errs string, test kit.UnusualURL) bool {
	return strings.Contains(errs, test.Reason) || strings.Contains(errs, "is above 65535") || strings.Contains(errs, "is not a host or a URL of a web page")
}
