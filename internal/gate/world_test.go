package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/exchange"
	"github.com/collyrobots/collyrobots/internal/fanout"
	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/leaktest"
	"github.com/collyrobots/collyrobots/internal/netguard"
	"github.com/collyrobots/collyrobots/internal/pace"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A setup is what a test sets before its world is made.
type setup struct {
	settings judge.HostSettings
	access   netguard.Access
	dryRun   bool
	maxPages int
}

// A world is a gate in a bubble, with sites in memory. It has a Seam of pages, as a collector has
// one, and a Seam of an http.Client.
type world struct {
	*Gate
	t        *testing.T
	start    time.Time
	web      *robotstest.Web
	log      bytes.Buffer
	pages    *backend.Seam
	client   *http.Client
	listener *fanout.Listener[*report.Event]
	events   []*report.Event
	rejected []string // the errors that the Root got
	logged   int      // the calls of WouldDeny
	unseen   int      // the calls of Unseen
}

// inBubble runs a test with a gate. It fails if a host is busy after the test.
func inBubble(t *testing.T, s setup, sites robotstest.Sites, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		w := &world{t: t, start: time.Now(), web: robotstest.New(t, sites)}
		settings := &judge.Settings{HostSettings: s.settings}
		settings.Complete(s.dryRun)
		hosts := pace.New(func(host string) *pace.Rules { return &settings.Of(host).Pace })
		r := reporter.New(slog.New(slog.NewTextHandler(&w.log, nil)))
		wire := exchange.NewWire(hosts, settings.Groupings(), r)
		wire.Networks = netguard.New(func(name string) netguard.Host { return hosts.At(time.Now(), name) }, s.access)
		wire.Quota = netguard.NewQuota(hostname.Registrable, errors.New("elsewhere"))
		policies := judge.NewPolicies(settings, nil, nil, wire)
		j := judge.New(settings, wire, policies)
		j.DryRun = s.dryRun
		j.MaxPages = s.maxPages
		w.Gate = New(j, w)
		ctl := NewController(w.Gate)
		w.pages = backend.NewSeam(w.web.Transport(), collectors{Controller: ctl})
		w.client = &http.Client{Transport: backend.NewSeam(w.web.Transport(), Clients{Controller: ctl})}
		w.listener = r.Events.ListenOnDemand(func(e *report.Event) { w.events = append(w.events, e) })
		test(w)
		synctest.Wait()
		for host := range hosts.All() {
			if host.Stats(time.Now()).Busy {
				t.Errorf("%s is busy after the test", host.Name())
			}
		}
		if !w.Empty() {
			t.Error("a record of a request is left")
		}
		policies.Stop()
		wire.Close()
		policies.Close()
		r.Events.Close()
	})
}

// collectors is the controller of pages.
type collectors struct{ Controller }

func (collectors) Redirected(*http.Request, error) {}

// Refused implements Root.
func (w *world) Refused(_ context.Context, _ *Request, err error) error {
	w.rejected = append(w.rejected, textOf(err))
	return err
}

// textOf returns the reason of a denial, or the text of another error.
func textOf(err error) string {
	if d := deniedBy(err); d != nil {
		return "denied: " + string(d.Decision.Reason)
	}
	return err.Error()
}

// IsFailure implements Root.
func (w *world) IsFailure(err error) bool { return deniedBy(err) == nil }

// WouldDeny implements Root.
func (w *world) WouldDeny(*url.URL, error) { w.logged++ }

// Unseen implements Root.
func (w *world) Unseen(*http.Request) { w.unseen++ }

// get requests a URL with a client. The result is the status, or what was wrong.
func (w *world) get(client *http.Client, u *url.URL) string {
	req := (&http.Request{URL: u, Header: http.Header{"User-Agent": {"Bot"}}}).WithContext(w.t.Context())
	resp, err := client.Do(req)
	if err != nil {
		return reasonOf(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return fmt.Sprint(resp.StatusCode)
}

// reasonOf returns the text of what a *url.Error wraps.
func reasonOf(err error) string {
	outer := (*url.Error)(nil)
	if errors.As(err, &outer) {
		err = outer.Err
	}
	return textOf(err)
}

// A way requests a page, as a client, or as a collector, whose hooks admit it in two stages.
type way func(w *world, rawURL string) string

var ways = map[string]way{
	"client": func(w *world, rawURL string) string { return w.get(w.client, mustParse(rawURL)) },
	"page":   func(w *world, rawURL string) string { return w.visit(mustParse(rawURL), Page{}, nil) },
}

// visit requests a page as the hooks of a collector do. between, which may be nil, is called between
// both stages, and may change the page.
func (w *world) visit(u *url.URL, p Page, between func(t *judge.Target)) string {
	target := judge.Target{URL: u, UserAgent: "Bot"}
	by := exchange.SeamClient{Through: w.pages}
	header := http.Header{"User-Agent": {"Bot"}}
	q := w.NewRequest(u, p)
	q.Describe(target, by, header)
	err := w.Admit(w.t.Context(), q, InOnRequest)
	if err == ErrFresh || err == ErrReturned {
		q.Close()
		return err.Error()
	}
	if err != nil {
		q.Refuse(err)
	}
	q.Release()
	if between != nil {
		between(&target)
	}
	q = w.Take(u)
	q.Tick()
	q.Describe(target, by, header)
	err = w.Admit(w.t.Context(), q, InOnRequestHeaders)
	if err != nil {
		q.Refuse(err)
	}
	q.Release()
	return w.get(&http.Client{Transport: w.pages}, u)
}

// wantRequests checks the requests to all sites, as "1s a.test/robots.txt".
func (w *world) wantRequests(want ...string) {
	w.t.Helper()
	var got []string
	for _, r := range w.web.Log("") {
		got = append(got, fmt.Sprintf("%v %s%s", r.Elapsed, r.Host, r.URI))
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("requests:\ngot\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// wantLog checks that the log contains text exactly once.
func (w *world) wantLog(text string) {
	w.t.Helper()
	if log := w.log.String(); strings.Count(log, text) != 1 {
		w.t.Errorf("log: got %q, want %q once", log, text)
	}
}

// mustParse returns a URL.
func mustParse(rawURL string) *url.URL {
	u, err := url.Parse(rawURL)
	if err != nil {
		panic(err)
	}
	return u
}
