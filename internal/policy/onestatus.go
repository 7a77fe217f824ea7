package policy

import "github.com/collyrobots/collyrobots/dialect"

// OfStatus returns the RobotsStatus of a site about which nothing is known except the status code
// of one response to GET /robots.txt. For a redirect, it is Unreachable.
func OfStatus(d dialect.Dialect, status int) RobotsStatus {
	switch tableOf(d).on[classify(status)] {
	case follow:
		return Rules
	case open:
		return NoRobots
	case down:
		return SiteDown
	default:
		return Unreachable
	}
}
