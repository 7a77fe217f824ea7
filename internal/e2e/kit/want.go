package kit

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// FaultsOf returns every OptionError that an error joins or wraps.
func FaultsOf(err error) (faults []*collyrobots.OptionError) {
	if fault, ok := err.(*collyrobots.OptionError); ok {
		faults = append(faults, fault)
	}
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			faults = append(faults, FaultsOf(err)...)
		}
	case interface{ Unwrap() error }:
		faults = append(faults, FaultsOf(e.Unwrap())...)
	}
	return faults
}

// Must ends the test if err is not nil.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// URIsOf returns the URIs of the requests in a log in order, separated by spaces.
func URIsOf(log robotstest.Log) string { return strings.Join(log.URIs(), " ") }

// WantSchedule compares the access log of a host with want. Lines in want end with a newline or ",
// ".
func WantSchedule(t *testing.T, web *robotstest.Web, host, want string) {
	t.Helper()
	want = strings.ReplaceAll(strings.TrimSpace(want), ", ", "\n")
	if got := web.Log(host).String(); got != want {
		t.Errorf("requests to %s:\n%s\nwant\n%s", host, got, want)
	}
}

// WantURIs compares the URIs of the requests to a host, in order, with want.
func WantURIs(t *testing.T, web *robotstest.Web, host, want string) {
	t.Helper()
	if got := URIsOf(web.Log(host)); got != want {
		t.Errorf("requests to %s: %s, want %s", host, got, want)
	}
}

// WantSortedURIs is like WantURIs for requests that are made concurrently.
func WantSortedURIs(t *testing.T, web *robotstest.Web, host, want string) {
	t.Helper()
	if got := strings.Join(web.Log(host).SortedURIs(), " "); got != want {
		t.Errorf("requests to %s: %s, want %s", host, got, want)
	}
}

// WantPace fails the test if a host did not get n requests, or if a gap between two of them differs
// from the delay by more than a microsecond. A shorter gap would break the promise of the plugin,
// and a longer gap would waste time.
func WantPace(t *testing.T, web *robotstest.Web, host string, delay time.Duration, n int) {
	t.Helper()
	log := web.Log(host)
	if len(log) != n {
		t.Errorf("%s: %d requests, want %d:\n%s", host, len(log), n, log)
	}
	for i := 1; i < len(log); i++ {
		if gap := log[i].Time.Sub(log[i-1].Time); gap.Round(time.Microsecond) != delay {
			t.Errorf("%s: %v between %s and %s, want %v", host, gap, log[i-1].URI, log[i].URI, delay)
		}
	}
}

// WantNoSooner is like WantPace but allows longer gaps, for a crawl that also waits for something
// else.
func WantNoSooner(t *testing.T, web *robotstest.Web, host string, delay time.Duration, n int) {
	t.Helper()
	log := web.Log(host)
	if len(log) != n {
		t.Errorf("%s: %d requests, want %d:\n%s", host, len(log), n, log)
	}
	if gap := log.MinGap(); gap < delay-time.Microsecond {
		t.Errorf("%s: two requests within %v, want at least %v:\n%s", host, gap, delay, log)
	}
}

// IsDenial reports whether err is a DeniedError or wraps one.
func IsDenial(err error) bool {
	denied := (*collyrobots.DeniedError)(nil)
	return errors.As(err, &denied)
}

// WantDenied checks the error that OnDenied got for a URL.
func WantDenied(t *testing.T, c *Crawl, url string, reason report.Reason, line int) {
	t.Helper()
	var denied *collyrobots.DeniedError
	if err := c.Denied[url]; !errors.As(err, &denied) {
		t.Errorf("%s: OnDenied got %v, want a DeniedError", url, err)
		return
	}
	blocked := reason == report.ReasonRule || reason == report.ReasonUnreachable || reason == report.ReasonSiteDown
	if errors.Is(denied, colly.ErrRobotsTxtBlocked) != blocked {
		t.Errorf("%s: the error %v is ErrRobotsTxtBlocked: %t, want %t", url, denied, !blocked, blocked)
	}
	if d := denied.Decision; d.Reason != reason || d.Rule.Line != line || d.Allowed {
		t.Errorf("%s: got %v, want reason %q, line %d", url, d, reason, line)
	}
}

// Survives fails the test if v is different after a round trip through JSON. It returns the JSON.
func Survives[T any](t *testing.T, v T) string {
	t.Helper()
	text, err := json.Marshal(v)
	Must(t, err)
	var back T
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	before, after := reflect.New(reflect.TypeFor[T]()).Elem(), reflect.New(reflect.TypeFor[T]()).Elem()
	before.Set(plain(reflect.ValueOf(v)))
	after.Set(plain(reflect.ValueOf(back)))
	if !reflect.DeepEqual(before.Interface(), after.Interface()) {
		t.Errorf("before %+v\nafter  %+v\ntext   %s", before, after, text)
	}
	return string(text)
}

// plain returns a copy of a value as JSON preserves it: times are in UTC and have no reading of a
// monotonic clock, and errors have only their text.
func plain(v reflect.Value) reflect.Value {
	switch x := v.Interface().(type) {
	case time.Time:
		return reflect.ValueOf(x.Round(0).UTC())
	case error:
		if v.Kind() == reflect.Interface {
			return reflect.ValueOf(errorText(x.Error()))
		}
	}
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(plain(v.Field(i)))
			}
		}
	case reflect.Slice:
		if v.Len() == 0 {
			return reflect.Zero(v.Type()) // in JSON, nil and empty are the same
		}
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(plain(v.Index(i)))
		}
	case reflect.Map:
		if v.Len() == 0 {
			return reflect.Zero(v.Type())
		}
		out.Set(reflect.MakeMap(v.Type()))
		for _, key := range v.MapKeys() {
			out.SetMapIndex(key, plain(v.MapIndex(key)))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(plain(v.Elem()))
		}
	}
	return out
}

// An errorText is an error that has only a text.
type errorText string

func (e errorText) Error() string { return string(e) }

// HostStats returns the HostStats of a host.
func HostStats(t *testing.T, p *collyrobots.Plugin, host string) report.HostStats {
	t.Helper()
	for _, s := range p.Stats().Hosts {
		if s.Host == host {
			return s
		}
	}
	t.Fatalf("there is no host %s", host)
	return report.HostStats{}
}

// CountURI returns the number of requests to a.test with a URI.
func CountURI(web *robotstest.Web, uri string) (n int) {
	for _, got := range web.Log("a.test").URIs() {
		if got == uri {
			n++
		}
	}
	return n
}
