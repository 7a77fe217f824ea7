package report

import (
	"encoding/json"
	"reflect"
	"testing"
)

// TestHostCounts checks that Add adds each count, and that JSON has the counts as members of HostStats.
func TestHostCounts(t *testing.T) {
	var c HostCounts
	fields := reflect.ValueOf(&c).Elem()
	for i := range fields.NumField() {
		if f := fields.Field(i); f.CanInt() {
			f.SetInt(int64(i + 1))
		}
	}
	once := reflect.ValueOf(c)
	c.Add(c)
	for i := range fields.NumField() {
		if f := fields.Field(i); f.CanInt() && f.Int() != 2*once.Field(i).Int() {
			t.Errorf("the sum of %s is %d", fields.Type().Field(i).Name, f.Int())
		}
	}
	for _, test := range [][3]float64{{0, 2, 2}, {2, 0, 2}, {2, 1, 1}, {1, 2, 1}} {
		c := HostCounts{GapOverDelay: test[0]}
		c.Add(HostCounts{GapOverDelay: test[1]})
		if c.GapOverDelay != test[2] {
			t.Errorf("GapOverDelay of %v and %v is %v", test[0], test[1], c.GapOverDelay)
		}
	}
	text, err := json.Marshal(HostStats{HostCounts: HostCounts{Pages: 1, Waited: 1e9}})
	const want = `{"requests":0,"throttled":0,"pages":1,"denied":0,"failed":0,"waiting":0,"waited":1}`
	if string(text) != want || err != nil {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
}
