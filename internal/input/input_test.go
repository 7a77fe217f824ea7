package input

import (
	"fmt"
	"slices"
	"strings"
	"testing"
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
