package conformance_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/conformance"
)

// TestSchema checks that the schema has the fields of the types of this package.
func TestSchema(t *testing.T) {
	var schema struct {
		Defs map[string]struct {
			Properties map[string]any
		} `json:"$defs"`
	}
	if err := json.Unmarshal(conformance.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		value any
		more  []string // fields that the type does not have
	}{
		"case":          {value: conformance.Case{}, more: []string{"robots", "robots_base64", "robots_parts"}},
		"fetchCase":     {value: conformance.FetchCase{}},
		"question":      {value: conformance.Question{}},
		"answer":        {value: conformance.Answer{}},
		"fetchQuestion": {value: conformance.FetchQuestion{}},
		"fetchAnswer":   {value: conformance.FetchAnswer{}},
		"source":        {value: conformance.Source{}},
		"reply":         {value: conformance.Reply{}},
	} {
		want := append(jsonNames(reflect.TypeOf(test.value)), test.more...)
		var got []string
		for field := range schema.Defs[name].Properties {
			got = append(got, field)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the schema has %q, want %q", name, got, want)
		}
	}
}

// jsonNames returns the names of the fields of a struct in JSON.
func jsonNames(of reflect.Type) []string {
	var names []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if name != "-" {
			names = append(names, name)
		}
	}
	return names
}
