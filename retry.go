package collyrobots

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/internal/judge"
)

// Retries says which pages Retry requests again, and how often. The zero value is usable.
type Retries struct {
	// Max is how often a page is requested again. If 0, it is 3. A negative Max is an OptionError.
	Max int
	// Statuses are those of responses that are repeated. If nil, they are 408, 425, 429, 500, 502, 503
	// and 504. A response that is a challenge of a bot wall is never repeated.
	Statuses []int
	// Errors reports whether a request that has failed with err is repeated. It must be safe for
	// concurrent use. If nil, failures that can pass are repeated: connections that are refused, reset
	// or closed, time limits, and temporary errors of the DNS. A denial, an error of TLS and the end of
	// a context are never passed to Errors.
	Errors func(err error) bool
	// Wait is the shortest time before the first repetition. It doubles with each further one, up to
	// five minutes, and a random share of up to a half is added. If 0, it is one second. A Wait that
	// is negative or longer than a day is an OptionError.
	Wait time.Duration
	// AnyMethod also repeats requests that the server may have executed although they failed, such as a
	// POST. Otherwise only GET, HEAD, OPTIONS, TRACE, PUT and DELETE are repeated (RFC 9110, section
	// 9.2.2).
	AnyMethod bool
}

// Retry requests a page again that has failed in a way that can pass, before the spider sees the failure.
// It gets the last response or error, once. Retry replaces a RetryThrottled before it.
//
// A repetition waits for its back-off and for its turn at the host, is judged again, and does not count
// for MaxPages and MaxPagesPerHost. The page holds its LimitRule slot while it waits. The spider gets the
// failure at once if the host may not be requested for five minutes, if the deadline of the context comes
// first, if the body of the request cannot be read twice, or if the spider itself has called
// Request.Retry. HostStats.Retried and HostStats.GivenUp have the counts. See docs/retry.md.
func Retry(r Retries) HostOption {
	const day = 24 * time.Hour
	set := judge.Retries(r)
	set.Statuses = slices.Clone(r.Statuses)
	set.SetDefaults()
	i := slices.IndexFunc(r.Statuses, func(status int) bool { return status < 400 || status > 999 })
	wrong := error(nil)
	if i >= 0 {
		wrong = fault("Retry", "the status %d is not one of a failure; it must be from 400 to 999", r.Statuses[i])
	}
	return HostOption{hostOption("Retry", func(s *judge.HostSettings) { s.Retries = &set },
		faultIf(r.Max < 0, "Retry", "Max is negative: %d", r.Max), faultIf(r.Wait < 0 || r.Wait > day, "Retry", "Wait is %v; it must be from 0 to 24 hours", r.Wait), wrong).with(r)}
}

// String returns the fields that are set, without the function.
func (r Retries) String() string {
	var set []string
	add := func(isSet bool, format string, args ...any) {
		if isSet {
			set = append(set, fmt.Sprintf(format, args...))
		}
	}
	add(r.Max != 0, "Max: %d", r.Max)
	add(r.Statuses != nil, "Statuses: %d", r.Statuses)
	add(r.Errors != nil, "Errors: ...")
	add(r.Wait != 0, "Wait: %v", r.Wait)
	add(r.AnyMethod, "AnyMethod: true")
	return "Retries{" + strings.Join(set, ", ") + "}"
}
