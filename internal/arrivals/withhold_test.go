package arrivals

import (
	"errors"
	"strings"
	"testing"
)

// TestWithhold plays steps about one URL: w withholds it and r releases it; v is a visit that the
// collector accepts if IsVisited returns false (V if it returns true); + decides that a visit may
// be requested (D if that is reported as a duplicate) and - that it must not be. The result has the
// letters that the steps report, and at the end m if the URL is marked, and h if it is still
// remembered.
func TestWithhold(t *testing.T) {
	for _, test := range []struct{ steps, want string }{
		{"v + v", "vV m"},
		{"w v -", "v h"},
		{"w v - r", "v"},
		{"w v r -", "v"},
		{"w v - v + v", "vvV mh"}, // another page may lead to it
		{"w v v - + v", "vvV mh"}, // its visit was accepted before the first was decided
		{"w v v + - v", "vvV mh"},
		{"w v v + + v r", "vvDV m"}, // only one of two visits is requested
		{"w v v r + + v", "vvDV m"},
		{"w v v v - + + v r", "vvvDV m"},
		{"v w + v r", "vV m"}, // the visit was accepted before the page was read
		{"w v r + v", "vV m"}, // the page is gone before the visit is decided
		{"w w r v - r", "v"},  // two pages
		{"w w r v - v + r", "vv m"},
		{"v - v + v", "vvV m"},   // a link that was not known when the page was read
		{"v - - v + v", "vvV m"}, // and its retry
		{"w v - - r v + v", "vvV m"},
		{"w v + - r", "v m"},
	} {
		s := newStorage(t, New(nil))
		var releases []func()
		got := ""
		for step := range strings.FieldsSeq(test.steps) {
			switch step {
			case "w":
				releases = append(releases, s.Withhold([]uint64{7}))
			case "r":
				releases[0]()
				releases = releases[1:]
			case "v":
				visited, err := s.IsVisited(7)
				if err != nil {
					t.Fatal(err)
				}
				if visited {
					got += "V"
					continue
				}
				got += "v"
				if err := s.Visited(7); err != nil {
					t.Fatal(err)
				}
			case "+", "-":
				duplicate, err := s.Decide(7, step == "+")
				if err != nil {
					t.Fatal(err)
				}
				if duplicate {
					got += "D"
				}
			}
		}
		marked, err := s.Storage.IsVisited(7)
		if err != nil {
			t.Fatal(err)
		}
		got += " "
		if marked {
			got += "m"
		}
		if s.Withholds() {
			got += "h"
		}
		if got = strings.TrimSpace(got); got != test.want {
			t.Errorf("%s: got %s, want %s", test.steps, got, test.want)
		}
	}
}

// An error of the user's storage is returned when the visit is decided.
func TestWithholdFails(t *testing.T) {
	s := New(nil).Wrap(new(failing))
	defer s.Withhold([]uint64{7})()
	if err := s.Visited(7); err != nil {
		t.Fatal(err)
	}
	_, err := s.Decide(7, true)
	if err == nil || errors.Unwrap(err) != nil {
		t.Errorf("got %v", err)
	}
}

// The other URLs are marked at once.
func TestWithholdOthers(t *testing.T) {
	s := newStorage(t, New(nil))
	release := s.Withhold([]uint64{7, 7, 8})
	if err := s.Visited(9); err != nil {
		t.Fatal(err)
	}
	if marked, _ := s.Storage.IsVisited(9); !marked {
		t.Error("a URL that is not withheld is not marked")
	}
	release()
	if s.Withholds() {
		t.Error("a URL is remembered")
	}
}
