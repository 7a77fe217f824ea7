package exchange

import (
	"crypto/ed25519"
	"net/http"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/webbotauth"
)

// onWire returns an exchange of a page that began when the bubble began, and has its turn.
func (w *world) onWire() *Exchange {
	x := w.newExchange("a.test")
	w.must(x.awaitTurn(w.t.Context()))
	return x
}

// TestTrace checks what the events of an exchange say about its waits and its end.
func TestTrace(t *testing.T) {
	steps := []struct {
		name   string
		run    func(x *Exchange)
		events []string
	}{
		{
			name: "a page that waited, failed and goes on",
			run: func(x *Exchange) {
				time.Sleep(2 * time.Second)
				x.Trace.Continue(x.Trace.IDs, time.Now())
				time.Sleep(time.Second)
				x.HandOver()
				x.Trace.connected(address("192.88.0.1"))
				time.Sleep(4 * time.Second)
				x.Answered(respond(302, nil))
				x.Trace.HandOn()
				x.Trace.Fail()
				x.Ended(7, nil)
			},
			events: []string{
				"3s started a.test for=page waited=2s",
				"7s answered a.test for=page status=302 took=4s remote=192.88.0.1:80 more=true failed=true",
			},
		},
		{
			name: "not sent",
			run: func(x *Exchange) {
				time.Sleep(time.Second)
				x.Trace.Fail()
				x.Ended(0, errRefused)
			},
			events: []string{"1s unsent a.test for=page waited=1s failed=true err=refused"},
		},
		{
			name: "given up, which an event has reported",
			run: func(x *Exchange) {
				x.Trace.GiveUp(x.Trace.IDs, true)
				x.Ended(0, errRefused)
			},
		},
		{
			name: "a private address",
			run:  func(x *Exchange) { x.Ended(0, &report.PrivateNetworkError{URL: "http://a.test/", Address: "10.0.0.1"}) },
			events: []string{
				"0s denied a.test for=page err=" + (&report.PrivateNetworkError{URL: "http://a.test/", Address: "10.0.0.1"}).Error(),
			},
		},
		{
			name: "a response although the start was not reported",
			run: func(x *Exchange) {
				x.Through = http.DefaultTransport
				x.HandOver()
				time.Sleep(time.Second)
				x.Answered(respond(200, nil))
				x.Ended(7, nil)
			},
			events: []string{"0s started a.test for=page", "1s answered a.test for=page status=200 took=1s"},
		},
		{
			name: "sent again after a response",
			run: func(x *Exchange) {
				x.HandOver()
				x.Answered(respond(503, nil))
				x.EndAttempt(nil)
				x.Again(x.Wire.groupings.closing)
				x.Ended(7, nil)
			},
			events: []string{
				"0s started a.test for=page",
				"0s answered a.test for=page status=503 more=true",
				"0s started a.test for=retry",
				"0s answered a.test for=retry",
			},
		},
	}
	for _, test := range steps {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, 0, func(w *world) {
				test.run(w.onWire())
				w.wantEvents(test.events...)
				if w.host("a.test").Stats(time.Now()).Busy {
					t.Error("the host is still busy")
				}
			})
		})
	}
}

// TestTraceOfPage checks that the events of a file have the number of the page that needs it, and
// that a start has the decision that allows it.
func TestTraceOfPage(t *testing.T) {
	inBubble(t, 0, func(w *world) {
		page := w.Report.NewPage(w.t.Context())
		time.Sleep(3 * time.Second)
		w.get(new(Exchange), "http://a.test/robots.txt", Lead{Kind: report.RequestRobots, Page: page})
		x := w.onWire()
		x.Trace.Decide(report.Decision{URL: "http://a.test/"})
		x.HandOver()
		x.Ended(0, nil)
		w.wantEvents(
			"3s started a.test for=robots waited=3s",
			"3s answered a.test for=robots status=200",
			"3s started a.test for=page waited=3s",
			"3s answered a.test for=page",
		)
		if w.events[0].Page != 1 || w.events[1].Page != 1 || w.events[2].Page != 0 {
			t.Error("the events of a file do not have the number of its page")
		}
		if w.events[0].Decision != nil || w.events[2].Decision == nil {
			t.Error("the started event of a page has no decision, or that of a file has one")
		}
	})
	inBubble(t, 0, func(w *world) {
		r := reporter.New(w.Report.Log)
		x := w.onWire()
		x.Trace.Report = r
		x.HandOver()
		x.Answered(respond(401, http.Header{"Www-Authenticate": {"License"}}))
		x.Trace.again(x.Host, nil)
		x.Trace.connected(address("192.88.0.1"))
		x.Ended(0, nil)
		w.wantEvents()
	})
}

// TestDates checks when the Date of a response is the clock of its server.
func TestDates(t *testing.T) {
	const date = "Sun, 06 Nov 1994 08:49:37 GMT"
	var d dates
	for _, test := range []struct {
		header http.Header
		known  bool
	}{
		{header: http.Header{"Date": {date}}, known: true},
		{header: http.Header{"Date": {date}}, known: true},
		{header: http.Header{"Date": {date}, "Age": {"0"}}, known: true},
		{header: http.Header{"Date": {date}, "Age": {"9"}}},
		{header: http.Header{"Date": {"yesterday"}}},
		{header: http.Header{}},
	} {
		got := d.of(test.header)
		if known := !got.IsZero(); known != test.known || known && got.Unix() != 784111777 {
			t.Errorf("%v: got %v", test.header, got)
		}
	}
}

// TestSign checks which requests are signed, and which are sent again with a signature.
func TestSign(t *testing.T) {
	ask := http.Header{"Accept-Signature": {`sig=("@authority")`}}
	withNonce := http.Header{"Accept-Signature": {`sig=("@authority");nonce="n"`}}
	tests := []struct {
		name      string
		whenAsked bool
		answers   []*http.Response
		delay     time.Duration
		signed    string // for each request, "y" or "n"
		stats     report.SignatureStats
	}{
		{name: "always", answers: []*http.Response{respond(200, nil)}, signed: "y", stats: report.SignatureStats{Signed: 1}},
		{name: "always, and rejected", answers: []*http.Response{respond(403, ask)}, signed: "y", stats: report.SignatureStats{Signed: 1, Asked: 1}},
		{
			name: "always, with a nonce", answers: []*http.Response{respond(403, withNonce), respond(200, nil)}, signed: "yy",
			stats: report.SignatureStats{Signed: 2, Asked: 1},
		},
		{name: "not asked", whenAsked: true, answers: []*http.Response{respond(200, nil)}, signed: "n"},
		{
			name: "asked", whenAsked: true, answers: []*http.Response{respond(403, ask), respond(200, nil)}, signed: "ny",
			stats: report.SignatureStats{Signed: 1, Asked: 1, Hosts: 1},
		},
		{
			name: "asked twice", whenAsked: true, answers: []*http.Response{respond(403, ask), respond(403, withNonce)}, signed: "ny",
			stats: report.SignatureStats{Signed: 1, Asked: 2, Hosts: 1},
		},
		{
			name: "the host may be asked only much later", whenAsked: true, answers: []*http.Response{respond(403, ask)}, delay: time.Hour, signed: "n",
			stats: report.SignatureStats{Asked: 1, Hosts: 1},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			signed := ""
			inBubble(t, test.delay, func(w *world) {
				w.answer = func(req *http.Request) *http.Response {
					is := "n"
					if req.Header.Get("Signature") != "" {
						is = "y"
					}
					signed += is
					return test.answers[len(signed)-1]
				}
				if w.Signs() {
					t.Error("requests are signed without a signer")
				}
				key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
				signer, err := webbotauth.NewSigner(key, "https://bot.test"+webbotauth.DirectoryPath, webbotauth.Draft)
				w.must(err)
				signer.WhenAsked = test.whenAsked
				w.Sign(signer)
				w.get(new(Exchange), "http://a.test/", Lead{Kind: report.RequestPage})
				if signed != test.signed {
					t.Errorf("signed %q, want %q", signed, test.signed)
				}
				if stats, _ := w.Statistics(); *stats != test.stats {
					t.Errorf("counts %+v, want %+v", *stats, test.stats)
				}
			})
		})
	}
}
