package usage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/collyrobots/collyrobots/internal/match"
)

// TDMRepPath is the path of the TDMRep file of a site.
const TDMRepPath = "/.well-known/tdmrep.json"

// A TDM is a TDMRep declaration: it says whether the rights of text and data mining are reserved,
// and names the policy of the owner. The zero TDM declares nothing.
type TDM struct {
	Reservation Preference `json:"reservation"`      // Disallowed if the rights are reserved, Allowed if they are not
	Policy      string     `json:"policy,omitempty"` // the URL of the policy; "" if there is none
	Source                 // of the reservation or, if it is Unknown, of the policy
}

// Override returns t with the values that next has. Use it to combine declarations of several
// places: a response header overrides the file, and HTML overrides both. A value that next does not
// have stays as it is, so the policy and the reservation of the result may be from different
// places.
func (t TDM) Override(next TDM) TDM {
	if next.Reservation != Unknown || t.Reservation == Unknown && next.Policy != "" {
		t.Reservation = next.Reservation
		t.Source = next.Source
	}
	if next.Policy != "" {
		t.Policy = next.Policy
	}
	return t
}

// Preferences returns t as preferences: text and data mining is both AIUse and TrainAI.
func (t TDM) Preferences() Preferences {
	var p Preferences
	p.set(AIUse, t.Reservation, t.Source)
	p.set(TrainAI, t.Reservation, t.Source)
	return p
}

// reservation returns the meaning of a value of tdm-reservation. A value other than 0 and 1 is
// invalid and declares nothing.
func reservation(value string) Preference {
	switch strings.TrimSpace(value) {
	case "0":
		return Allowed
	case "1":
		return Disallowed
	}
	return Unknown
}

// ParseTDMHeader returns the declaration in the response headers tdm-reservation and tdm-policy. If
// there are several tdm-reservation headers, 1 overrides 0.
func ParseTDMHeader(h http.Header, from Source) TDM {
	said := Unknown
	for _, value := range h.Values("Tdm-Reservation") {
		said = max(said, reservation(value))
	}
	return newTDM(said, h.Get("Tdm-Policy"), from)
}

// newTDM returns the zero TDM if there are neither a reservation nor a policy.
func newTDM(reservation Preference, policy string, from Source) TDM {
	policy = strings.TrimSpace(policy)
	if reservation == Unknown && policy == "" {
		return TDM{}
	}
	return TDM{Reservation: reservation, Policy: policy, Source: from}
}

// ParseTDMMeta returns the declaration in the meta elements of an HTML page. content returns the
// attribute content of the first meta element with a name, or "" if there is none. The names are
// "tdm-reservation" and "tdm-policy".
func ParseTDMMeta(content func(name string) string, from Source) TDM {
	return newTDM(reservation(content("tdm-reservation")), content("tdm-policy"), from)
}

// A TDMFile has the rules of a TDMRep file. It is immutable and safe for concurrent use. A nil
// TDMFile declares nothing.
type TDMFile struct {
	from      Source
	rules     []tdmRule
	locations match.List // the locations of rules, in the order of the file
}

// A tdmRule is one rule of a TDMRep file.
type tdmRule struct {
	location    string
	reservation Preference
	policy      string
}

// ParseTDMFile parses a TDMRep file: a JSON array of objects with the members location,
// tdm-reservation and tdm-policy. It returns an error if body is not an array. An element is
// ignored if it is not such an object, has no tdm-reservation, or has a location that does not
// begin with a slash. A tdm-reservation other than the numbers 0 and 1 declares nothing. The caller
// limits the size of body to 16 MiB or less.
func ParseTDMFile(body []byte, from Source) (*TDMFile, error) {
	var rules []json.RawMessage
	err := json.Unmarshal(bytes.TrimPrefix(body, []byte("\uFEFF")), &rules)
	if err != nil {
		return nil, fmt.Errorf("usage: %s is not a list of rules: %w", TDMRepPath, err)
	}
	f := &TDMFile{from: from}
	var drafts []match.Draft
	for _, text := range rules {
		rule, ok := parseTDMRule(text)
		if ok {
			drafts = appendDrafts(drafts, len(f.rules), rule.location)
			f.rules = append(f.rules, rule)
		}
	}
	for i := range drafts {
		drafts[i].Rank = 0 // the first rule of the file that matches decides
	}
	f.locations = match.New(drafts, "")
	return f, nil
}

// parseTDMRule parses one rule. ok is false if text is not a rule.
func parseTDMRule(text []byte) (rule tdmRule, ok bool) {
	var r struct {
		Location    string          `json:"location"`
		Reservation json.RawMessage `json:"tdm-reservation"`
		Policy      string          `json:"tdm-policy"`
	}
	err := json.Unmarshal(text, &r)
	if err != nil || !strings.HasPrefix(r.Location, "/") || r.Reservation == nil || string(r.Reservation) == "null" {
		return tdmRule{}, false
	}
	rule.location = r.Location
	rule.reservation = reservationOfJSON(r.Reservation)
	if rule.reservation != Unknown {
		rule.policy = r.Policy
	}
	return rule, true
}

// reservationOfJSON returns the meaning of a JSON value. Numbers have several spellings, such as
// 1.0 and 1e0.
func reservationOfJSON(value []byte) Preference {
	number := math.NaN()
	if err := json.Unmarshal(value, &number); err != nil {
		return Unknown
	}
	switch number {
	case 0:
		return Allowed
	case 1:
		return Disallowed
	}
	return Unknown
}

// Of returns the declaration for a target, which is the path and query of a URL; see Target. The
// first rule that matches target applies. If no rule matches, nothing is declared.
func (f *TDMFile) Of(target string) TDM {
	if f == nil {
		return TDM{}
	}
	i, ok := find(&f.locations, normal(target))
	if !ok || f.rules[i].reservation == Unknown {
		return TDM{}
	}
	return TDM{Reservation: f.rules[i].reservation, Policy: f.rules[i].policy, Source: f.from}
}
