package policy

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// FuzzRecord checks that any bytes decode to facts or an error, and that facts do not change when
// they are encoded and decoded.
func FuzzRecord(f *testing.F) {
	at := time.Unix(1_800_000_000, 5)
	for _, known := range []facts{
		{},
		{copy: &goodCopy{class: ok, status: 200, maxAge: 60, fetched: instantOf(at), validators: &validators{`"a"`, "b"}}, body: []byte("x\ny")},
		{copy: &goodCopy{class: clientError, status: 404, maxAge: noMaxAge, fetched: instantOf(at)}},
		{failure: &failure{first: instantOf(at), last: instantOf(at.Add(1)), count: 3, class: serverError, status: 503, wait: 7, err: &StatusError{Status: 503}}},
	} {
		raw, err := known.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(nil))
	f.Add([]byte(`{"version":1,"copy":{"class":7}}`))
	f.Add([]byte(`{"version":1,"failure":{"class":0,"count":0}}`))
	var tables []*accessTable
	for _, d := range dialect.All() {
		tables = append(tables, tableOf(d))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		known, err := decode(raw)
		if err != nil {
			return
		}
		for _, table := range tables {
			if m, _ := table.status(known); m == Rules && (known.copy == nil || !known.copy.class.definite()) {
				t.Fatalf("got rules without a copy: %+v", known)
			}
		}
		again, err := known.encode()
		if err != nil {
			t.Fatal(err)
		}
		twice, err := decode(again)
		if err != nil {
			t.Fatal(err)
		}
		third, err := twice.encode()
		if err != nil || !bytes.Equal(again, third) {
			t.Fatalf("%q is encoded again as %q, %v", again, third, err)
		}
		if m := known.merge(twice); (m.copy == nil) != (known.copy == nil) {
			t.Fatalf("merged with itself: %+v", m)
		}
	})
}

// TestMergeFacts checks that merged facts have the newer copy and the failures after it, counted
// from the earliest. Times are in minutes.
func TestMergeFacts(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	at := func(minute int) time.Time { return start.Add(time.Duration(minute) * time.Minute) }
	copyAt := func(minute int) *goodCopy { return &goodCopy{class: ok, status: 200, fetched: instantOf(at(minute))} }
	failed := func(first, last, count int) *failure {
		return &failure{first: instantOf(at(first)), last: instantOf(at(last)), count: int32(count), class: serverError, err: errors.New("x"), answered: new(moment)}
	}
	for _, test := range []struct {
		name        string
		one, other  facts
		copy        int // the minute; -1 if there is none
		first, last int // of the failures; -1 if there are none
		count       int
	}{
		{"nothing", facts{}, facts{}, -1, -1, -1, 0},
		{"the newer copy", facts{copy: copyAt(1)}, facts{copy: copyAt(2)}, 2, -1, -1, 0},
		{"a copy and a later failure", facts{copy: copyAt(1)}, facts{failure: failed(2, 3, 2)}, 1, 2, 3, 2},
		{"a copy and an earlier failure", facts{copy: copyAt(4)}, facts{failure: failed(2, 3, 2)}, 4, -1, -1, 0},
		{"a copy and a failure at one time", facts{copy: copyAt(3)}, facts{failure: failed(3, 3, 1)}, 3, -1, -1, 0},
		{"a copy amid failures", facts{copy: copyAt(3)}, facts{failure: failed(2, 5, 9)}, 3, 5, 5, 1},
		{"the earliest first failure", facts{failure: failed(2, 5, 2)}, facts{failure: failed(1, 4, 3)}, -1, 1, 5, 3},
		{"the newest last failure", facts{copy: copyAt(0), failure: failed(1, 9, 4)}, facts{copy: copyAt(0), failure: failed(1, 2, 2)}, 0, 1, 9, 4},
		{"a newer copy ends the failures of the other", facts{copy: copyAt(0), failure: failed(1, 5, 3)}, facts{copy: copyAt(6)}, 6, -1, -1, 0},
	} {
		for _, m := range []facts{test.one.merge(test.other), test.other.merge(test.one)} {
			if got := m.copy; (got == nil) != (test.copy < 0) || got != nil && !got.fetched.time().Equal(at(test.copy)) {
				t.Errorf("%s: got copy %+v, want minute %d", test.name, got, test.copy)
			}
			got := m.failure
			if (got == nil) != (test.first < 0) {
				t.Errorf("%s: got failure %+v, want %d to %d, count %d", test.name, got, test.first, test.last, test.count)
			} else if got != nil && !(got.first == instantOf(at(test.first)) && got.last == instantOf(at(test.last)) && int(got.count) == test.count) {
				t.Errorf("%s: got failure %+v, want %d to %d, count %d", test.name, got, test.first, test.last, test.count)
			}
		}
	}
}

// TestRecordFormat checks that records of the first release with this format are still decoded, and
// encoded in the same way.
func TestRecordFormat(t *testing.T) {
	for _, raw := range []string{
		`{"version":1,"copy":{"class":2,"status":200,"fetched":"2027-01-15T08:00:00.000000005Z","max_age":60,"age":7,` +
			`"etag":"\"a\"","last_modified":"Mon, 02 Jan 2006 15:04:05 GMT",` +
			`"sha256":"a92d287a72a3f39a55e2848ec6af83163ae1c28172d2e2d89a45a105db0e2540"}}` + "\nUser-agent: *\nDisallow: /x\n",
		`{"version":1,"copy":{"class":5,"hops":2,"status":404,"fetched":"2027-01-15T08:00:00.000000005Z","max_age":-1,` +
			`"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},` +
			`"failure":{"first":"2027-01-15T08:00:01.000000005Z","last":"2027-01-15T08:01:00.000000005Z","count":3,"class":7,` +
			`"status":503,"wait":3600000000000,"error":"robots.txt answered with status 503","answered":"2027-01-15T09:00:00.000000005Z"}}` + "\n",
		`{"version":1,"failure":{"first":"2027-01-15T08:00:00.000000005Z","last":"2027-01-15T08:00:00.000000005Z","count":1,` +
			`"class":0,"error":"connection refused"}}` + "\n",
	} {
		f, err := decode([]byte(raw))
		if err != nil {
			t.Errorf("%q: %v", raw, err)
			continue
		}
		if got, err := f.encode(); err != nil || string(got) != raw {
			t.Errorf("%q is encoded as %q, %v", raw, got, err)
		}
	}
}
