package report

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/collyrobots/collyrobots/internal/seconds"
)

// This file has the JSON methods of the types whose durations are numbers of seconds, and whose
// errors are texts. For each type there are a copy of the type without methods, which package json
// reads and writes field by field; a struct that adds the durations and the error to the copy; and
// the methods. The fields that the struct adds are tagged "-" in the type itself. File append.go
// encodes Event and Decision.

type plainDecision Decision

type decisionJSON struct {
	plainDecision
	CrawlDelay seconds.Duration `json:"crawl_delay,omitempty"`
	Delay      seconds.Duration `json:"delay,omitempty"`
	BackOff    seconds.Duration `json:"back_off,omitempty"`
	Error      string           `json:"error,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *Decision) UnmarshalJSON(b []byte) error {
	j := decisionJSON{plainDecision: plainDecision(*d)}
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*d = *j.decision()
	return nil
}

// decision returns the Decision with the fields that j adds.
func (j *decisionJSON) decision() *Decision {
	d := (*Decision)(&j.plainDecision)
	d.CrawlDelay = time.Duration(j.CrawlDelay)
	d.Delay = time.Duration(j.Delay)
	d.BackOff = time.Duration(j.BackOff)
	d.Err = errorOf(j.Error)
	return d
}

type plainEvent Event

// An eventJSON has a decisionJSON, so that package json reads the Decision only once.
type eventJSON struct {
	*plainEvent
	Gap   seconds.Duration `json:"gap,omitempty"`
	Delay seconds.Duration `json:"delay,omitempty"`
	Took  seconds.Duration `json:"took,omitempty"`

	Waited     seconds.Duration `json:"waited,omitempty"`
	RobotsWait seconds.Duration `json:"robots_wait,omitempty"`
	Connect    seconds.Duration `json:"connect,omitempty"`

	Error    string        `json:"error,omitempty"`
	Decision *decisionJSON `json:"decision,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *Event) UnmarshalJSON(b []byte) error {
	j := eventJSON{plainEvent: (*plainEvent)(e)}
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	e.Gap = time.Duration(j.Gap)
	e.Delay = time.Duration(j.Delay)
	e.Took = time.Duration(j.Took)
	e.Waited = time.Duration(j.Waited)
	e.RobotsWait = time.Duration(j.RobotsWait)
	e.Connect = time.Duration(j.Connect)
	e.Err = errorOf(j.Error)
	if j.Decision != nil {
		e.Decision = j.Decision.decision()
	}
	return nil
}

type plainRobotsState RobotsState

type robotsStateJSON struct {
	*plainRobotsState
	CrawlDelay seconds.Duration `json:"crawl_delay,omitempty"`
	Error      string           `json:"error,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (s RobotsState) MarshalJSON() ([]byte, error) {
	return json.Marshal(robotsStateJSON{
		plainRobotsState: (*plainRobotsState)(&s),
		CrawlDelay:       seconds.Duration(s.CrawlDelay),
		Error:            textOf(s.Err),
	})
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *RobotsState) UnmarshalJSON(b []byte) error {
	j := robotsStateJSON{plainRobotsState: (*plainRobotsState)(s)}
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	s.CrawlDelay = time.Duration(j.CrawlDelay)
	s.Err = errorOf(j.Error)
	return nil
}

type plainRateStats RateStats

type rateStatsJSON struct {
	*plainRateStats
	Waited seconds.Duration `json:"waited"`
}

// MarshalJSON implements json.Marshaler.
func (s RateStats) MarshalJSON() ([]byte, error) {
	return json.Marshal(rateStatsJSON{plainRateStats: (*plainRateStats)(&s), Waited: seconds.Duration(s.Waited)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *RateStats) UnmarshalJSON(b []byte) error {
	j := rateStatsJSON{plainRateStats: (*plainRateStats)(s)}
	err := json.Unmarshal(b, &j)
	if err != nil {
		return err
	}
	s.Waited = time.Duration(j.Waited)
	return nil
}

type plainHostStats HostStats

type hostStatsJSON struct {
	*plainHostStats
	CrawlDelay seconds.Duration `json:"crawl_delay,omitempty"`
	BackOff    seconds.Duration `json:"back_off,omitempty"`
	Delay      seconds.Duration `json:"delay,omitempty"`
	MinGap     seconds.Duration `json:"min_gap,omitempty"`
	Waited     seconds.Duration `json:"waited,omitempty"`

	ResponseTime seconds.Duration `json:"response_time,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (s HostStats) MarshalJSON() ([]byte, error) {
	return json.Marshal(hostStatsJSON{
		plainHostStats: (*plainHostStats)(&s),
		CrawlDelay:     seconds.Duration(s.CrawlDelay),
		BackOff:        seconds.Duration(s.BackOff),
		Delay:          seconds.Duration(s.Delay),
		MinGap:         seconds.Duration(s.MinGap),
		Waited:         seconds.Duration(s.Waited),
		ResponseTime:   seconds.Duration(s.ResponseTime),
	})
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *HostStats) UnmarshalJSON(b []byte) error {
	j := hostStatsJSON{plainHostStats: (*plainHostStats)(s)}
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	s.CrawlDelay = time.Duration(j.CrawlDelay)
	s.BackOff = time.Duration(j.BackOff)
	s.Delay = time.Duration(j.Delay)
	s.MinGap = time.Duration(j.MinGap)
	s.Waited = time.Duration(j.Waited)
	s.ResponseTime = time.Duration(j.ResponseTime)
	return nil
}

// textOf returns the text of an error, or "" for nil.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// errorOf returns an error with a text, or nil for "".
func errorOf(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}
