package gate

import (
	"context"
	"net/http"
	"time"

	"github.com/collyrobots/collyrobots/internal/judge"
	"github.com/collyrobots/collyrobots/internal/revalidate"
)

// A knownPage is what the Store contains about the page of a request.
type knownPage struct {
	key    string             // of the record; "" before it was looked up
	record *revalidate.Record // nil if there is none
}

// recall looks up the record of q, whose host has the settings s, unless it was looked up before.
func (q *Request) recall(ctx context.Context, s *judge.HostSettings) {
	if q.Store == nil {
		return
	}
	if !s.Revalidate {
		q.known = knownPage{}
		return
	}
	key := q.Store.Key(q.target.URL)
	if key != q.known.key {
		q.known = knownPage{key: key, record: q.Store.Recall(ctx, key)}
	}
}

// IsKnownFresh implements judge.Applicant. It looks the page of q up first. A redirect is always sent.
func (q *Request) IsKnownFresh(ctx context.Context, now time.Time, s *judge.HostSettings) bool {
	if q.redirect {
		return false
	}
	q.recall(ctx, s)
	known := q.known.record
	return known != nil && s.SkipFresh && revalidate.Allows(q.header) && known.IsFresh(q.target.URL, q.header, now)
}

// makeConditional makes q conditional if its page is known. req is the request as it is sent.
func (q *Request) makeConditional(req *http.Request) {
	q.Conditions = nil
	if q.known.record == nil || !revalidate.Allows(req.Header) {
		return
	}
	q.Conditions = q.known.record.Conditions(req.URL, req.Header)
	if q.Conditions != nil {
		q.Store.Conditional.Add(1)
	}
}

// isUnchanged reports whether a response says that the page of q has not changed. A site may also
// answer 304 to a request that was not conditional, or to one that the program has made
// conditional.
func (q *Request) isUnchanged(resp *http.Response) bool {
	return q.Conditions != nil && resp.StatusCode == http.StatusNotModified
}

// confirm changes resp, a response with status 304, so that Colly does not treat it as an error.
// The result has status 200, no body, and the mark that makes the plugin skip the callbacks of the
// user. Its Content-Type keeps Colly from parsing it. confirm returns a function that closes the body,
// which may use the context of the request, so no lock of the request may be held.
func (q *Request) confirm(resp *http.Response) (closeBody func()) {
	body := resp.Body
	resp.Body = http.NoBody
	resp.ContentLength = 0
	resp.Uncompressed = true
	resp.StatusCode = http.StatusOK
	resp.Status = "200 OK"
	resp.Header = q.known.record.Confirm(resp.Header)
	resp.Header["Content-Type"] = []string{"application/octet-stream"}
	resp.Header[revalidate.UnchangedMark] = []string{string(q.known.record.Encode())}
	return func() {
		if body != nil {
			body.Close()
		}
	}
}

// isFresh reports whether the page of q is fresh, so that it is not requested.
func (q *Request) isFresh(ctx context.Context) bool {
	return q.IsKnownFresh(ctx, q.now, q.verdict.Settings)
}
