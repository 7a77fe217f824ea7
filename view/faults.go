package view

import (
	"time"

	"github.com/collyrobots/collyrobots/report"
)

// maxFaults is the maximum number of hosts with a robotsFault.
const maxFaults = 10_000

// A robotsFault says why the robots.txt of a host closes the host.
type robotsFault struct {
	Status  int       `json:"status,omitempty"`  // of the robots.txt; 0 if there was no response
	Walled  bool      `json:"walled,omitempty"`  // whether it is a web page or a challenge
	NextTry time.Time `json:"next_try,omitzero"` // when the robots.txt may be requested again, or zero if that is not known
}

// robotsRead records whether the robots.txt of a host could be read.
func (r *recorder) robotsRead(e *report.Event) {
	if !isClosing(e) || e.Option != "" {
		r.faults.remove(e.Host)
		return
	}
	fault, _ := r.faults.touch(clip(e.Host), func() *robotsFault { return &robotsFault{} })
	*fault = robotsFault{Status: e.Status, Walled: e.RobotsStatus == report.RobotsWalled}
}

// isClosing reports whether a robots.txt that was read, or could not be, closes its host.
func isClosing(e *report.Event) bool {
	s := e.RobotsStatus
	return s == report.RobotsUnreachable || s == report.RobotsSiteDown || s == report.RobotsWalled && e.Err != nil
}

// robotsDenied records when the robots.txt that has denied a request is requested again.
func (r *recorder) robotsDenied(e *report.Event) {
	d := e.Decision
	if d == nil || d.Allowed || d.Option != "" || d.Reason != report.ReasonUnreachable && d.Reason != report.ReasonSiteDown {
		return
	}
	fault, _ := r.faults.touch(clip(e.Host), func() *robotsFault { return &robotsFault{} })
	*fault = robotsFault{Status: d.Status, Walled: d.Walled, NextTry: d.Expires}
}

// faultOf returns a copy of the fault of a host, or nil if there is none or if it has been over for
// some time. r.mu must be held.
func (r *recorder) faultOf(host string) *robotsFault {
	fault, ok := r.faults.get(host)
	if !ok {
		return nil
	}
	found := *fault
	return &found
}
