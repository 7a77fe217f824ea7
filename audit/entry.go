package audit

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/collyrobots/collyrobots/audit/internal/tiles"
	"github.com/collyrobots/collyrobots/report"
)

// format is the version of the entries that this package writes.
const format = 1

// An Entry is one entry of a log. It has an Event or a Notice.
type Entry struct {
	// Body is the SHA-256 of the robots.txt in hexadecimal digits, if Event reports one whose rules
	// are in force and the log has the file.
	Body  string        `json:"body,omitempty"`
	Event *report.Event `json:"event,omitempty"`
	Log   *Notice       `json:"log,omitempty"`
	Salt  string        `json:"salt"` // 16 random bytes in base64url
	V     int           `json:"v"`    // the version of this format
}

// A Notice is an entry about the log itself.
type Notice struct {
	Kind NoticeKind `json:"kind"`
	Time time.Time  `json:"time"`
	// Version (opened) is the version of this module, and Go that of Go.
	Version string `json:"version,omitempty"`
	Go      string `json:"go,omitempty"`
	// Clock (opened) identifies the clock of the machine since it was started: logs with the same
	// Clock have comparable times. It is "" if the system does not say.
	Clock string `json:"clock,omitempty"`
	// Count (lost) is the number of events that could not be written.
	Count int `json:"count,omitempty"`
}

// A NoticeKind says what happened to the log.
type NoticeKind string

const (
	NoticeOpened NoticeKind = "opened" // Open was called
	NoticeClosed NoticeKind = "closed" // Close was called
	NoticeLost   NoticeKind = "lost"   // events are missing, because the disk could not be written
)

// encode appends an entry with a new salt to b.
func (e Entry) encode(b []byte) ([]byte, error) {
	e.V = format
	var salt [16]byte
	rand.Read(salt[:])
	e.Salt = base64.RawURLEncoding.EncodeToString(salt[:])
	return e.appendTo(b)
}

// appendTo appends the only form that an entry has: the members in the order of the fields, without
// spaces, and without escapes that JSON does not need.
func (e *Entry) appendTo(b []byte) ([]byte, error) {
	b = append(b, '{')
	if e.Body != "" {
		b = append(b, `"body":`...)
		b = appendDigits(b, e.Body)
		b = append(b, ',')
	}
	var err error
	if e.Event != nil {
		b = append(b, `"event":`...)
		b, err = e.Event.AppendJSON(b)
		b = append(b, ',')
	}
	if e.Log != nil {
		b = append(b, `"log":`...)
		b, err = e.Log.appendTo(b)
		b = append(b, ',')
	}
	b = append(b, `"salt":`...)
	b = appendDigits(b, e.Salt)
	b = append(b, `,"v":`...)
	b = strconv.AppendInt(b, int64(e.V), 10)
	return append(b, '}'), err
}

// appendDigits appends a text of hexadecimal or base64url digits. These need no escapes in JSON.
func appendDigits(b []byte, text string) []byte { return strconv.AppendQuote(b, text) }

// appendTo appends the JSON object of n.
func (n *Notice) appendTo(b []byte) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(n)
	return append(b, bytes.TrimSuffix(text.Bytes(), []byte("\n"))...), err
}

// decodeEntry returns the entry with these bytes. It returns an error if they are not in the form
// that encode writes, or have another version.
func decodeEntry(text []byte) (Entry, error) {
	e, err := unmarshalEntry(text)
	if err != nil {
		return Entry{}, err
	}
	if err := e.check(text); err != nil {
		return Entry{}, err
	}
	return e, nil
}

// check returns an error if e, which was read from text, has another version or another form than
// encode writes.
func (e *Entry) check(text []byte) error {
	switch {
	case e.V != format:
		return fmt.Errorf("version %d of the format is not known", e.V)
	case (e.Event == nil) == (e.Log == nil):
		return fmt.Errorf("not exactly one of event and log")
	}
	again, err := e.appendTo(make([]byte, 0, len(text)))
	if err != nil {
		return err
	}
	if !bytes.Equal(again, text) {
		return fmt.Errorf("not in the form that this package writes")
	}
	return nil
}

// unmarshalEntry returns what package json reads from text.
func unmarshalEntry(text []byte) (Entry, error) {
	if e, ok := cutEntry(text); ok {
		return e, nil
	}
	var e Entry
	err := json.Unmarshal(text, &e)
	return e, err
}

// cutEntry returns the entry of an event in the form that appendTo writes, and false if text has
// another form. Package json would read the event three times, because Event has a method
// UnmarshalJSON: to check the entry, to find the end of the event, and in that method.
func cutEntry(text []byte) (e Entry, ok bool) {
	rest, ok := bytes.CutPrefix(text, []byte(`{`))
	if !ok {
		return Entry{}, false
	}
	if body, found := bytes.CutPrefix(rest, []byte(`"body":"`)); found {
		e.Body, rest, ok = cutDigits(body, `",`)
		if !ok {
			return Entry{}, false
		}
	}
	rest, ok = bytes.CutPrefix(rest, []byte(`"event":`))
	end := bytes.LastIndex(rest, []byte(saltMember))
	if !ok || end <= 0 || rest[0] != '{' {
		return Entry{}, false
	}
	var version []byte
	e.Salt, version, ok = cutDigits(rest[end+len(saltMember):], `"`)
	if !ok || string(version) != lastMember {
		return Entry{}, false
	}
	e.V = format
	e.Event = new(report.Event)
	err := e.Event.UnmarshalJSON(rest[:end])
	return e, err == nil
}

// saltMember is between the event and the salt of an entry, and lastMember is after the salt.
const (
	saltMember = `,"salt":"`
	lastMember = `,"v":1}`
)

// cutDigits returns the digits before end, as appendDigits writes them, and the text after end.
func cutDigits(text []byte, end string) (digits string, rest []byte, ok bool) {
	before, rest, ok := bytes.Cut(text, []byte(end))
	for _, b := range before {
		letter := 'a' <= b|0x20 && b|0x20 <= 'z'
		if !letter && (b < '0' || b > '9') && b != '-' && b != '_' {
			return "", nil, false
		}
	}
	return string(before), rest, ok
}

// maxText is the largest number of bytes of a URL or an error in an entry that is too long. JSON may
// need six bytes for each of them.
const maxText = 1 << 10

// clip returns a copy of an event whose entry would be too long, with shorter texts. A text that was
// cut ends in its SHA-256. The decision about a shortened URL cannot be checked. A Change may have all
// sitemaps of a site, which the robots.txt in the log also has, so it is left out.
func clip(from *report.Event) *report.Event {
	clipped := *from
	e := &clipped
	e.Change = nil
	e.URL = clipText(e.URL)
	e.From = clipText(e.From)
	if e.Err != nil {
		e.Err = fmt.Errorf("%s", clipText(e.Err.Error()))
	}
	if e.Decision == nil {
		return e
	}
	d := *e.Decision
	d.URL = clipText(d.URL)
	d.LinkedFrom = clipText(d.LinkedFrom)
	d.Rule.Pattern = clipText(d.Rule.Pattern)
	d.Group = clipText(d.Group)
	if d.Err != nil {
		d.Err = fmt.Errorf("%s", clipText(d.Err.Error()))
	}
	e.Decision = &d
	return e
}

func clipText(s string) string {
	if len(s) <= maxText {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return s[:maxText] + "#sha256=" + hex.EncodeToString(sum[:])
}

// encodeEvent appends the entry of an event to b, which is empty.
func encodeEvent(b []byte, e *report.Event) ([]byte, error) {
	entry := Entry{Event: e}
	if e.Body != nil {
		sum := sha256.Sum256(e.Body)
		entry.Body = hex.EncodeToString(sum[:])
	}
	text, err := entry.encode(b)
	if err != nil || len(text) <= tiles.MaxEntry {
		return text, err
	}
	entry.Event = clip(e)
	return entry.encode(b)
}
