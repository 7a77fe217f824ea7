package view

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/collyrobots/collyrobots/report"
)

// TestFailedReasons checks that failed pages are listed by reason, and that other events are not.
func TestFailedReasons(t *testing.T) {
	refused := &url.Error{Op: "Get", URL: "http://h0.test/", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	for _, test := range []struct {
		status int
		err    error
		want   string
	}{
		{404, nil, "404 Not Found"},
		{999, nil, "999 status 999"},
		{0, refused, "0 connection refused"},
		{0, &net.DNSError{Err: "no such host", Name: "h0.test"}, "0 no such host"},
		{0, &net.OpError{Op: "read", Err: context.DeadlineExceeded}, "0 timeout"},
		{0, fmt.Errorf("%w: %w", errors.New("collyrobots: redirect loop"), errors.New("x")), "0 redirect loop"},
		{200, errors.New("unexpected EOF"), "200 unexpected EOF"},
		{0, errors.New(strings.Repeat("a", 5000)), "0 " + strings.Repeat("a", maxReasonText-20)},
	} {
		r := newRecorder()
		for i := range 5 {
			e := answeredAt(fmt.Sprintf("h%d.test", i%2), 0, test.status, test.err)
			e.URL = fmt.Sprintf("http://h%d.test/%d", i%2, i)
			e.Failed = i < 4
			r.hear(e)
		}
		reasons := r.failedReasons()
		if len(reasons) != 1 {
			t.Fatalf("%d reasons for %v", len(reasons), test.err)
		}
		f := reasons[0]
		if got := fmt.Sprint(f.Status, " ", f.Reason); !strings.HasPrefix(got, test.want) || len(f.Reason) > maxReasonText+len("…") {
			t.Errorf("got %s, want %s", got, test.want)
		}
		if f.Count != 4 || f.Hosts != 2 || strings.Join(f.URLs, " ") != "http://h1.test/3 http://h0.test/2 http://h1.test/1" {
			t.Errorf("%+v", f)
		}
	}
}

// TestManyReasons checks that the number of reasons is bounded.
func TestManyReasons(t *testing.T) {
	r := newRecorder()
	for i := range 10 * maxReasons {
		r.hear(&report.Event{Kind: report.EventUnsent, Host: "a.test", Err: fmt.Errorf("error %d", i), Failed: true, Time: then})
	}
	if n := r.failures.order.Len(); n != maxReasons {
		t.Errorf("%d reasons", n)
	}
}
