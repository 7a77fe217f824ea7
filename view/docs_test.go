package view

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestDocumentation checks that docs/reference/view.md describes each field of the JSON and each order.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/view.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{state{}, timeLeft{}, hostState{}, denial{}, sitemapFile{}, sitemapsState{}, frontierState{}, robotsState{}, robotsFile{}, reading{}, statuses{}, seriesState{}, deniedRule{}, robotsFault{}, hostDetails{}, request{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(v)) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name != "" && !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/reference/view.md does not say what %s of %T is", name, v)
			}
		}
	}
	for name := range orders {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/reference/view.md does not name the order %s", name)
		}
	}
}
