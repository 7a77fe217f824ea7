// Package reasons says in words why a URL is allowed or denied.
package reasons

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/report"
)

// Of returns the reason for a decision, such as "line 3: Disallow: /a".
func Of(d collyrobots.Decision) string {
	rule := d.Reason == report.ReasonRule || d.Reason == report.ReasonNoRule
	switch {
	case rule && d.Rule.Line > 0:
		return fmt.Sprintf("line %d: %v", d.Rule.Line, d.Rule)
	case rule && d.Allowed:
		return "no rule matches"
	case rule: // temoto keeps no line numbers
		return "a rule; temoto does not return which one"
	case d.Reason == report.ReasonNoRobots:
		return "no robots.txt"
	}
	why := strings.ReplaceAll(string(d.Reason), "_", " ")
	if d.Err != nil {
		why += ": " + Cause(d)
	}
	return why
}

// Cause returns the text of the error of a decision without the URL of the robots.txt.
func Cause(d collyrobots.Decision) string {
	var request *url.Error // its text begins with the URL
	if errors.As(d.Err, &request) {
		return request.Err.Error()
	}
	return d.Err.Error()
}
