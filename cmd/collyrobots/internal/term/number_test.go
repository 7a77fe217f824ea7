package term

import (
	"encoding/json"
	"testing"
	"time"
)

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                       "0",
		1:                       "0.000000001",
		875 * time.Microsecond:  "0.000875",
		1500 * time.Millisecond: "1.5",
		10 * time.Second:        "10",
		1000 * 24 * time.Hour:   "86400000",
		-500 * time.Millisecond: "-0.5",
	} {
		text, err := json.Marshal(Seconds(d))
		if err != nil || string(text) != want {
			t.Errorf("%v: got %s (%v), want %s", d, text, err, want)
		}
		var back Seconds
		if err := json.Unmarshal(text, &back); err != nil || time.Duration(back) != d {
			t.Errorf("%s: got %v (%v), want %v", text, time.Duration(back), err, d)
		}
	}
}
