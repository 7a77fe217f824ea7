package view

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/collyrobots/collyrobots/report"
)

const (
	maxReasons    = 200 // reasons of failed pages
	maxReasonText = 200 // bytes
)

// A failedReason has the pages of all hosts that have failed for one reason.
type failedReason struct {
	Status int      `json:"status,omitempty"` // 0 if there was no response
	Reason string   `json:"reason"`           // such as "Not Found" or "connection refused"
	URLs   []string `json:"urls"`             // the latest ones, newest first
	tally
}

type failureKey struct {
	status int
	reason string
}

// failed records the page of an event.
func (r *recorder) failed(e *report.Event) {
	r.series.at(e.Time.Unix()).failures++
	r.lists++
	key := failureKey{status: e.Status, reason: reasonOf(e)}
	f, _ := r.failures.touch(key, func() *failedReason {
		return &failedReason{Status: key.status, Reason: key.reason, tally: newTally(e.Time)}
	})
	f.add(clip(e.Host), 1, e.Time)
	f.URLs = withLatest(f.URLs, clip(e.URL))
}

// reasonOf returns why the page of an event has failed, without its URL and its host.
func reasonOf(e *report.Event) string {
	switch {
	case e.Err != nil:
		return clipTo(causeOf(e.Err), maxReasonText)
	case http.StatusText(e.Status) != "":
		return http.StatusText(e.Status)
	}
	return "status " + strconv.Itoa(e.Status)
}

// causeOf returns the text of the innermost error of err.
func causeOf(err error) string {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return "timeout"
	}
	for {
		if unknown, ok := err.(*net.DNSError); ok {
			return unknown.Err
		}
		inner := errors.Unwrap(err)
		if several, ok := err.(interface{ Unwrap() []error }); ok && len(several.Unwrap()) > 0 {
			inner = several.Unwrap()[0]
		}
		if inner == nil {
			return strings.TrimPrefix(err.Error(), "collyrobots: ")
		}
		err = inner
	}
}

// failedReasons returns the reasons, the one of the latest failure first. r.mu must be held.
func (r *recorder) failedReasons() []failedReason {
	reasons := []failedReason{}
	for f := range r.failures.all() {
		if len(reasons) < maxListed {
			reasons = append(reasons, *f)
		}
	}
	return reasons
}
