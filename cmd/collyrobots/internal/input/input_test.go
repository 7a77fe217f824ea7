package input

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
)

func TestLines(t *testing.T) {
	for text, want := range map[string][]string{
		"":                            nil,
		"a.test":                      {"1 a.test"},
		"\ufeff# x\r\n\r\n b.test \n": {"3 b.test"},
		"a.test # x\n#y\n\ufeffc":     {"1 a.test # x", "3 c"},
	} {
		var got []string
		err := Lines("-", strings.NewReader(text), func(number int, text string) { got = append(got, fmt.Sprint(number, " ", text)) })
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, name := range []string{"-", "/does/not/exist"} {
		_, err := List(name, strings.NewReader(strings.Repeat("a", 2<<20)))
		want := strings.Replace(name, "-", "standard input: ", 1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGrouping(t *testing.T) {
	for value, want := range map[string]collyrobots.Grouping{"host": collyrobots.ByHost, "domain": collyrobots.ByDomain, "address": collyrobots.ByAddress} {
		if got, err := Grouping(value); got != want || err != nil {
			t.Errorf("%s: %v, %v", value, got, err)
		}
	}
	if _, err := Grouping("server"); err == nil || err.Error() != "-pace-by server: use host, domain or address" {
		t.Error(err)
	}
}

func TestHours(t *testing.T) {
	if h, err := ParseHours("", "nowhere"); h != (Hours{}) || err != nil {
		t.Errorf("%+v, %v", h, err)
	}
	h, err := ParseHours("22:00-06:30", "UTC")
	if err != nil || h != (Hours{From: "22:00", To: "06:30", Zone: time.UTC}) || h.String() != "22:00-06:30" {
		t.Errorf("%+v, %v", h, err)
	}
	from, to, err := h.SinceMidnight()
	if err != nil || from != 22*time.Hour || to != 6*time.Hour+30*time.Minute {
		t.Errorf("from %v to %v, %v", from, to, err)
	}
	for _, hours := range []string{"22:00-22:00", "22:00-25:00", "-"} {
		h, err := ParseHours(hours, "UTC")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := h.SinceMidnight(); err == nil || err.Error() != "-hours "+hours+": want a window such as 22:00-06:00" {
			t.Error(err)
		}
	}
	for want, args := range map[string][2]string{
		"-hours 22:00: want a window such as 22:00-06:00": {"22:00", "UTC"},
		"-zone Mars: unknown time zone Mars":              {"22:00-06:00", "Mars"},
	} {
		if _, err := ParseHours(args[0], args[1]); err == nil || err.Error() != want {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestDialect(t *testing.T) {
	if d, err := Dialect("google"); d != dialect.Google() || err != nil {
		t.Errorf("%v, %v", d, err)
	}
	if _, err := Dialect("bing"); err == nil || !strings.HasPrefix(err.Error(), "-dialect bing: unknown dialect; use one of rfc9309, google, ") {
		t.Error(err)
	}
}

func TestNames(t *testing.T) {
	if names := Names(" a,b, c d,"); !slices.Equal(names, []string{"a", "b", "c", "d"}) {
		t.Errorf("%q", names)
	}
}
