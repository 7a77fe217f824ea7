package observe

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/report"
)

// TestEventsSurviveJSON checks that every kind of event is the same after a round trip through
// JSON, except that an error has only its text.
func TestEventsSurviveJSON(t *testing.T) {
	at := time.Date(2026, 11, 21, 18, 0, 0, 5, time.UTC)
	why := errors.New("refused")
	state := report.RobotsState{RobotsStatus: report.RobotsRules, Status: 200, Fetched: at, CrawlDelay: 1500 * time.Millisecond, Sitemaps: []string{"/s.xml"}}
	lost := report.RobotsState{RobotsStatus: report.RobotsSiteDown, Err: why}
	for _, e := range []*collyrobots.Event{
		{Kind: report.EventStarted, Time: at, Host: "a.test", URL: "http://a.test/", Collector: 1, Request: 2, RequestKind: report.RequestRedirect,
			From: "http://b.test/", Gap: 1501 * time.Millisecond, Delay: 1500 * time.Millisecond, Source: report.SourceCrawlDelay, Line: 3},
		{Kind: report.EventAnswered, Time: at, Host: "a.test", URL: "http://a.test/", RequestKind: report.RequestRobots, Status: 200, Bytes: 1 << 40, Took: time.Minute, Err: why},
		{Kind: report.EventDenied, Time: at, Decision: &collyrobots.Decision{Reason: report.ReasonRule, Dialect: dialect.Google(), Rule: dialect.Rule{Pattern: "/<x>", Line: 4}, Delay: time.Second}},
		{Kind: report.EventWaiting, Time: at, Count: 3, Until: at.Add(time.Hour), Delay: time.Hour, Source: report.SourceRetryAfter},
		{Kind: report.EventWaiting, Time: at, Count: 3, OnDisk: true},
		{Kind: report.EventUnrecorded, Time: at, URL: "http://a.test/", Err: why},
		{Kind: report.EventRobots, Time: at, RobotsStatus: report.RobotsSiteDown, Fetched: at, Stored: true, Hash: "00ff", Change: &report.RobotsChange{Authority: "http://a.test", RobotsURL: "http://a.test/robots.txt", Old: state, New: lost}},
		{Kind: report.EventSitemap, Time: at, URL: "http://a.test/s.xml", Count: 50000},
		{Kind: report.EventSlowed, Time: at, Status: 429, Until: at, Delay: 1, Source: report.SourceBackOff},
		{Kind: report.EventRecovered, Time: at},
		{Kind: report.EventMissed, Time: at, Count: 7},
	} {
		text, err := json.Marshal(e)
		var back collyrobots.Event
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if again, _ := json.Marshal(back); err != nil || !reflect.DeepEqual(&back, e) || string(again) != string(text) {
			t.Errorf("%s: error %v\ngot  %+v\nwant %+v", text, err, back, e)
		}
	}
	body, _ := json.Marshal(collyrobots.Event{Kind: report.EventRobots, Body: []byte("Disallow: /")})
	if want := `{"kind":"robots","time":"0001-01-01T00:00:00Z"}`; string(body) != want {
		t.Errorf("got %s, want %s", body, want)
	}
	for _, text := range []string{`{"gap":"x"}`, `{"gap":"1.5s"}`} {
		if err := json.Unmarshal([]byte(text), new(collyrobots.Event)); err == nil {
			t.Errorf("%s: got no error, want one because gap is not a number", text)
		}
	}
}

// TestDurationsInJSONAreNumbersOfSeconds checks the form of durations, because programs such as jq,
// pandas and DuckDB calculate with them.
func TestDurationsInJSONAreNumbersOfSeconds(t *testing.T) {
	text, err := json.Marshal(collyrobots.Event{
		Kind:  report.EventAnswered,
		Gap:   36 * time.Hour,
		Delay: 1500 * time.Millisecond,
		Took:  875 * time.Microsecond,
	})
	kit.Must(t, err)
	const want = `{"kind":"answered","time":"0001-01-01T00:00:00Z","gap":129600,"delay":1.5,"took":0.000875}`
	if string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
	text, err = json.Marshal(collyrobots.Event{Kind: report.EventAnswered, Took: 1})
	kit.Must(t, err)
	if !strings.Contains(string(text), `"took":0.000000001}`) {
		t.Errorf("got %s, want a nanosecond without an exponent", text)
	}
}
