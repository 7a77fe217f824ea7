package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/collyrobots/collyrobots/internal/seconds"
)

// AppendJSON appends the JSON object of e to b. It has one form only: the members have a fixed order,
// there are no spaces, and there are no escapes that JSON does not need. So a log can compare the
// bytes. It is much faster than package json. The error says which field JSON cannot hold, such as a
// time after the year 9999.
func (e *Event) AppendJSON(b []byte) ([]byte, error) {
	o := object{b: b}
	o.event(e)
	return o.b, errors.Join(o.faults...)
}

// MarshalJSON implements json.Marshaler. It returns the bytes of AppendJSON.
func (e Event) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil) }

// MarshalJSON implements json.Marshaler.
func (d Decision) MarshalJSON() ([]byte, error) {
	var o object
	o.decision(&d)
	return o.b, errors.Join(o.faults...)
}

// An object appends the members of JSON objects to b. Most methods leave out a member whose value is
// zero.
type object struct {
	b      []byte
	faults []error
}

// event appends the object of an Event.
func (o *object) event(e *Event) {
	o.b = append(o.b, '{')
	o.always("kind", string(e.Kind))
	o.name("time")
	o.instant(e.Time)
	o.text("host", e.Host)
	o.text("url", e.URL)
	o.number("collector", int64(e.Collector))
	o.number("request", int64(e.Request))
	o.counter("page", e.Page)
	o.text("request_kind", string(e.RequestKind))
	o.flag("more", e.More)
	o.flag("failed", e.Failed)
	o.text("from", e.From)
	o.text("group", e.Group)
	o.text("source", string(e.Source))
	o.number("line", int64(e.Line))
	o.number("status", int64(e.Status))
	o.number("bytes", e.Bytes)
	o.time("date", e.Date)
	o.text("remote", e.Remote)
	o.flag("signed", e.Signed)
	if len(e.Tags) > 0 {
		o.value("tags", e.Tags)
	}
	o.number("count", int64(e.Count))
	o.flag("on_disk", e.OnDisk)
	o.time("until", e.Until)
	o.text("robots_status", string(e.RobotsStatus))
	o.text("option", e.Option)
	o.time("fetched", e.Fetched)
	o.flag("stored", e.Stored)
	o.text("hash", e.Hash)
	if e.Change != nil {
		o.value("change", e.Change)
	}
	o.seconds("gap", e.Gap)
	o.seconds("delay", e.Delay)
	o.seconds("took", e.Took)
	o.seconds("waited", e.Waited)
	o.seconds("robots_wait", e.RobotsWait)
	o.seconds("connect", e.Connect)
	o.text("error", textOf(e.Err))
	if e.Decision != nil {
		o.name("decision")
		o.decision(e.Decision)
	}
	o.b = append(o.b, '}')
}

// decision appends the object of a Decision.
func (o *object) decision(d *Decision) {
	o.b = append(o.b, '{')
	o.always("url", d.URL)
	o.always("authority", d.Authority)
	o.always("robots_url", d.RobotsURL)
	o.truth("allowed", d.Allowed)
	o.always("reason", string(d.Reason))
	o.text("linked_from", d.LinkedFrom)
	o.always("dialect", d.Dialect.String())
	o.text("option", d.Option)
	o.text("token", d.Token)
	o.text("group", d.Group)
	var none Decision
	if d.Rule != none.Rule {
		o.value("rule", d.Rule)
	}
	o.text("hash", d.Hash)
	o.number("status", int64(d.Status))
	o.flag("walled", d.Walled)
	o.time("fetched", d.Fetched)
	o.time("expires", d.Expires)
	if d.Usage != none.Usage {
		o.value("usage", d.Usage)
	}
	o.time("not_before", d.NotBefore)
	o.time("opens", d.Opens)
	o.number("refusals", int64(d.Refusals))
	o.time("next_try", d.NextTry)
	if d.Permission != nil {
		o.value("permission", d.Permission)
	}
	o.number("max_pages", int64(d.MaxPages))
	o.number("max_pages_per_host", int64(d.MaxPagesPerHost))
	o.seconds("crawl_delay", d.CrawlDelay)
	o.seconds("delay", d.Delay)
	o.seconds("back_off", d.BackOff)
	o.text("error", textOf(d.Err))
	o.b = append(o.b, '}')
}

// name appends the name of a member.
func (o *object) name(name string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

// always appends a member with a text, which may be empty.
func (o *object) always(name, text string) {
	o.name(name)
	o.quoted(text)
}

func (o *object) text(name, text string) {
	if text != "" {
		o.always(name, text)
	}
}

func (o *object) number(name string, n int64) {
	if n != 0 {
		o.name(name)
		o.b = strconv.AppendInt(o.b, n, 10)
	}
}

// counter is like number, for a number that may exceed an int64.
func (o *object) counter(name string, n uint64) {
	if n != 0 {
		o.name(name)
		o.b = strconv.AppendUint(o.b, n, 10)
	}
}

func (o *object) flag(name string, set bool) {
	if set {
		o.truth(name, true)
	}
}

// truth appends a member that is true or false.
func (o *object) truth(name string, is bool) {
	o.name(name)
	o.b = strconv.AppendBool(o.b, is)
}

func (o *object) time(name string, t time.Time) {
	if !t.IsZero() {
		o.name(name)
		o.instant(t)
	}
}

// instant appends a time in RFC 3339.
func (o *object) instant(t time.Time) {
	o.b = append(o.b, '"')
	var err error
	o.b, err = t.AppendText(o.b)
	o.b = append(o.b, '"')
	o.check(err)
}

func (o *object) seconds(name string, d time.Duration) {
	if d != 0 {
		o.name(name)
		o.b = seconds.Duration(d).Append(o.b)
	}
}

// quoted appends a JSON string. Package json encodes those that need an escape.
func (o *object) quoted(text string) {
	if needsEscape(text) {
		o.encode(text)
		return
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, text...)
	o.b = append(o.b, '"')
}

// needsEscape reports whether a text may need an escape in JSON.
func needsEscape(text string) bool {
	for i := range len(text) {
		c := text[i]
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

// value appends a member with any value.
func (o *object) value(name string, value any) {
	o.name(name)
	o.encode(value)
}

// encode appends what package json writes for a value.
func (o *object) encode(value any) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	o.check(encoder.Encode(value))
	o.b = append(o.b, unescape(bytes.TrimSuffix(text.Bytes(), []byte("\n")))...)
}

// unescape replaces the escapes of U+FFFD in JSON by the character. Package json writes this escape
// for a byte that is not UTF-8, such as one in a pattern of robots.txt. It writes the character when
// the decoded text is encoded again, so an entry would have two forms.
func unescape(text []byte) []byte {
	const escape = `\ufffd`
	if !bytes.Contains(text, []byte(escape)) {
		return text
	}
	var b []byte
	for len(text) > 0 {
		size := 1
		switch {
		case bytes.HasPrefix(text, []byte(escape)):
			b = append(b, "\ufffd"...)
			text = text[len(escape):]
			continue
		case text[0] == '\\':
			size = 2 // the escaped character may be a backslash
		}
		b = append(b, text[:size]...)
		text = text[size:]
	}
	return b
}

// check records an error, if there is one.
func (o *object) check(err error) {
	if err != nil {
		o.faults = append(o.faults, err)
	}
}
