package collyrobots_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
)

// Every kind of event is in JSON what it was, but for the text that stands for an error.
func TestEventsSurviveJSON(t *testing.T) {
	at := time.Date(2026, 11, 21, 18, 0, 0, 5, time.UTC)
	why := errors.New("refused")
	state := collyrobots.RobotsState{RobotsStatus: collyrobots.RobotsRules, Status: 200, Fetched: at, CrawlDelay: 1500 * time.Millisecond, Sitemaps: []string{"/s.xml"}}
	lost := collyrobots.RobotsState{RobotsStatus: collyrobots.RobotsSiteDown, Err: why}
	for _, e := range []collyrobots.Event{
		{Kind: collyrobots.EventStarted, Time: at, Host: "a.test", URL: "http://a.test/", Collector: 1, Request: 2, RequestKind: collyrobots.RequestRedirect,
			From: "http://b.test/", Gap: 1501 * time.Millisecond, Delay: 1500 * time.Millisecond, Source: collyrobots.SourceCrawlDelay, Line: 3},
		{Kind: collyrobots.EventAnswered, Time: at, Host: "a.test", URL: "http://a.test/", RequestKind: collyrobots.RequestRobots, Status: 200, Bytes: 1 << 40, Took: time.Minute, Err: why},
		{Kind: collyrobots.EventDenied, Time: at, Decision: &collyrobots.Decision{Reason: collyrobots.ReasonRule, Dialect: dialect.Google(), Rule: dialect.Rule{Pattern: "/<x>", Line: 4}, Delay: time.Second}},
		{Kind: collyrobots.EventWaiting, Time: at, Count: 3, Until: at.Add(time.Hour), Delay: time.Hour, Source: collyrobots.SourceRetryAfter},
		{Kind: collyrobots.EventRobots, Time: at, RobotsStatus: collyrobots.RobotsSiteDown, Fetched: at, Stored: true, Hash: "00ff", Change: &collyrobots.RobotsChange{Authority: "http://a.test", RobotsURL: "http://a.test/robots.txt", Old: state, New: lost}},
		{Kind: collyrobots.EventSitemap, Time: at, URL: "http://a.test/s.xml", Count: 50000},
		{Kind: collyrobots.EventSlowed, Time: at, Status: 429, Until: at, Delay: 1, Source: collyrobots.SourceBackOff},
		{Kind: collyrobots.EventRecovered, Time: at},
		{Kind: collyrobots.EventMissed, Time: at, Count: 7},
	} {
		text, err := json.Marshal(e)
		var back collyrobots.Event
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if again, _ := json.Marshal(back); err != nil || !reflect.DeepEqual(back, e) || string(again) != string(text) {
			t.Errorf("%s: %v\n%+v\n%+v", text, err, back, e)
		}
	}
	body, _ := json.Marshal(collyrobots.Event{Kind: collyrobots.EventRobots, Body: []byte("Disallow: /")})
	if want := `{"kind":"robots","time":"0001-01-01T00:00:00Z"}`; string(body) != want {
		t.Errorf("%s, want %s", body, want)
	}
	if err := json.Unmarshal([]byte(`{"gap":"x"}`), new(collyrobots.Event)); err == nil {
		t.Error("a gap that is no duration is taken")
	}
}
