package collyrobots

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/collyrobots/collyrobots/internal/seconds"
)

// This file encodes the types whose durations are numbers of seconds in JSON, and whose errors are
// texts. Each type has three parts: a copy of the type without methods, which package json encodes
// field by field; a struct that adds the durations and the error to the copy; and the two methods.
// The fields that the struct adds are tagged "-" in the type itself.

type plainDecision Decision

type decisionJSON struct {
	*plainDecision
	CrawlDelay seconds.Duration `json:"crawl_delay,omitempty"`
	Delay      seconds.Duration `json:"delay,omitempty"`
	BackOff    seconds.Duration `json:"back_off,omitempty"`
	Error      string           `json:"error,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (d Decision) MarshalJSON() ([]byte, error) {
	return json.Marshal(decisionJSON{
		plainDecision: (*plainDecision)(&d),
		CrawlDelay:    seconds.Duration(d.CrawlDelay),
		Delay:         seconds.Duration(d.Delay),
		BackOff:       seconds.Duration(d.BackOff),
		Error:         textOf(d.Err),
	})
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *Decision) UnmarshalJSON(b []byte) error {
	j := decisionJSON{plainDecision: (*plainDecision)(d)}
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	d.CrawlDelay = time.Duration(j.CrawlDelay)
	d.Delay = time.Duration(j.Delay)
	d.BackOff = time.Duration(j.BackOff)
	d.Err = errorOf(j.Error)
	return nil
}

type plainEvent Event

type eventJSON struct {
	*plainEvent
	Gap   seconds.Duration `json:"gap,omitempty"`
	Delay seconds.Duration `json:"delay,omitempty"`
	Took  seconds.Duration `json:"took,omitempty"`
	Error string           `json:"error,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (e Event) MarshalJSON() ([]byte, error) {
	return json.Marshal(eventJSON{
		plainEvent: (*plainEvent)(&e),
		Gap:        seconds.Duration(e.Gap),
		Delay:      seconds.Duration(e.Delay),
		Took:       seconds.Duration(e.Took),
		Error:      textOf(e.Err),
	})
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
	e.Err = errorOf(j.Error)
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
