package audit

import (
	"errors"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/seconds"
)

// This file has the types that package json decodes in one pass. The JSON methods of Event and
// Decision would make it read every entry three times.

type entryJSON struct {
	Body  string     `json:"body,omitempty"`
	Event *eventJSON `json:"event,omitempty"`
	Log   *Notice    `json:"log,omitempty"`
	Salt  string     `json:"salt"`
	V     int        `json:"v"`
}

type plainEvent collyrobots.Event

type eventJSON struct {
	plainEvent
	Gap      seconds.Duration `json:"gap,omitempty"`
	Delay    seconds.Duration `json:"delay,omitempty"`
	Took     seconds.Duration `json:"took,omitempty"`
	Error    string           `json:"error,omitempty"`
	Decision *decisionJSON    `json:"decision,omitempty"`
}

type plainDecision collyrobots.Decision

type decisionJSON struct {
	plainDecision
	CrawlDelay seconds.Duration `json:"crawl_delay,omitempty"`
	Delay      seconds.Duration `json:"delay,omitempty"`
	BackOff    seconds.Duration `json:"back_off,omitempty"`
	Error      string           `json:"error,omitempty"`
}

// entry returns w as an Entry.
func (w *entryJSON) entry() Entry {
	e := Entry{Body: w.Body, Log: w.Log, Salt: w.Salt, V: w.V}
	if w.Event == nil {
		return e
	}
	e.Event = (*collyrobots.Event)(&w.Event.plainEvent)
	e.Event.Gap = time.Duration(w.Event.Gap)
	e.Event.Delay = time.Duration(w.Event.Delay)
	e.Event.Took = time.Duration(w.Event.Took)
	e.Event.Err = errorOf(w.Event.Error)
	d := w.Event.Decision
	if d == nil {
		return e
	}
	e.Event.Decision = (*collyrobots.Decision)(&d.plainDecision)
	e.Event.Decision.CrawlDelay = time.Duration(d.CrawlDelay)
	e.Event.Decision.Delay = time.Duration(d.Delay)
	e.Event.Decision.BackOff = time.Duration(d.BackOff)
	e.Event.Decision.Err = errorOf(d.Error)
	return e
}

func errorOf(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}
