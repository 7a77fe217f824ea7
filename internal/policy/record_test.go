package policy

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

// FuzzRecord: any bytes are facts or an error, and facts survive being written and read.
func FuzzRecord(f *testing.F) {
	at := time.Unix(1_800_000_000, 5)
	for _, known := range []facts{
		{},
		{copy: &settled{class: ok, status: 200, maxAge: 60, at: at.UnixNano(), tag: validators{`"a"`, "b"}, reading: unread([]byte("x\ny"))}},
		{copy: &settled{class: missing, status: 404, maxAge: noMaxAge, at: at.UnixNano()}},
		{failure: &failure{first: at, last: at.Add(1), count: 3, class: broken, status: 503, wait: 7, err: &StatusError{503}}},
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
	rows := []row{rfc9309, google, cocCoc, original1994, temoto}
	f.Fuzz(func(t *testing.T, raw []byte) {
		known, err := decodeFacts(raw)
		if err != nil {
			return
		}
		for _, r := range rows {
			if v := r.judge(known); v.meaning == Rules && (known.copy == nil || !known.copy.class.final()) {
				t.Fatalf("rules without a copy: %+v", known)
			}
		}
		again, err := known.encode()
		if err != nil {
			t.Fatal(err)
		}
		twice, err := decodeFacts(again)
		if err != nil {
			t.Fatal(err)
		}
		third, err := twice.encode()
		if err != nil || !bytes.Equal(again, third) {
			t.Fatalf("%q is written again as %q, %v", again, third, err)
		}
		if m := known.merge(twice); (m.copy == nil) != (known.copy == nil) {
			t.Fatalf("merged with itself: %+v", m)
		}
	})
}

// TestMerge: what two know, in minutes: the newer copy, and the failures since it from the earliest.
func TestMerge(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	at := func(minute int) time.Time { return start.Add(time.Duration(minute) * time.Minute) }
	copyAt := func(minute int) *settled { return &settled{class: ok, status: 200, at: at(minute).UnixNano()} }
	failed := func(first, last, count int) *failure {
		return &failure{first: at(first), last: at(last), count: count, class: broken, err: errors.New("x"), answered: new(moment)}
	}
	for _, test := range []struct {
		name        string
		one, other  facts
		copy        int // minute; -1: none
		first, last int // of the failures; -1: none
		count       int
	}{
		{"nothing", facts{}, facts{}, -1, -1, -1, 0},
		{"the newer copy", facts{copy: copyAt(1)}, facts{copy: copyAt(2)}, 2, -1, -1, 0},
		{"a copy and a later failure", facts{copy: copyAt(1)}, facts{failure: failed(2, 3, 2)}, 1, 2, 3, 2},
		{"a copy and an earlier failure", facts{copy: copyAt(4)}, facts{failure: failed(2, 3, 2)}, 4, -1, -1, 0},
		{"a copy and a failure at one time", facts{copy: copyAt(3)}, facts{failure: failed(3, 3, 1)}, 3, -1, -1, 0},
		{"a copy amid failures", facts{copy: copyAt(3)}, facts{failure: failed(2, 5, 9)}, 3, 5, 5, 1},
		{"the earliest first failure", facts{failure: failed(2, 5, 2)}, facts{failure: failed(1, 4, 3)}, -1, 1, 5, 3},
		{"the newest last failure", facts{copyAt(0), failed(1, 9, 4)}, facts{copyAt(0), failed(1, 2, 2)}, 0, 1, 9, 4},
		{"a success ends what the other still sees fail", facts{copyAt(0), failed(1, 5, 3)}, facts{copy: copyAt(6)}, 6, -1, -1, 0},
	} {
		for _, m := range []facts{test.one.merge(test.other), test.other.merge(test.one)} {
			if got := m.copy; (got == nil) != (test.copy < 0) || got != nil && !got.fetched().Equal(at(test.copy)) {
				t.Errorf("%s: copy %+v", test.name, got)
			}
			got := m.failure
			if (got == nil) != (test.first < 0) {
				t.Errorf("%s: failure %+v", test.name, got)
			} else if got != nil && !(got.first.Equal(at(test.first)) && got.last.Equal(at(test.last)) && got.count == test.count) {
				t.Errorf("%s: failure %+v", test.name, got)
			}
		}
	}
}
