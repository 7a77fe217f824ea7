package policy

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// A Doer performs exactly one HTTP exchange and follows no redirect. It must end soon after the
// request's context ends. What it does before it sends, such as waiting for the host's delay,
// belongs in [Wait]. If a redirect led to the request, its Response field is the redirect.
//
// The cache closes the body after the result of the fetch is available to others. The Doer may
// close it when it is called for the next redirect.
type Doer func(req *http.Request) (*http.Response, error)

// Fetch says how to fetch a robots.txt. The requests have the values of the context of Get, but do
// not end with it.
type Fetch struct {
	Do        Doer
	UserAgent string

	// Text says that the caller needs the text of the file: Get also fetches the file if the policy is
	// fresh but the store does not have its text.
	Text bool

	// Limit is the time limit of the fetch. If it is 0 or longer than FetchLimit, FetchLimit
	// applies.
	Limit time.Duration

	// Way identifies how the file is requested. An unanswered fetch is repeated in another way.
	Way Way

	// Proxy returns the proxy of the last request, or "". If the requests alternate between
	// proxies, nothing is concluded from an unanswered one. Proxy may be nil.
	Proxy func() string

	// Header is sent with each request. If a redirect leads to another host, the request to that
	// host does not have the credentials for a proxy.
	Header http.Header

	// AsPage returns the header of a request for a URL with the credentials, such as the cookies,
	// of the page that robots.txt is fetched for. It replaces Header if the site refuses a request
	// without them. It is never used for the target of a redirect to another host. AsPage returns
	// nil if there are no credentials. It may be nil.
	AsPage func(u *url.URL) http.Header
}

// A Way identifies how a file is requested. Its values must be comparable.
type Way struct {
	Client any    // the client, its proxy and its time limit
	Caller any    // the user of the client
	Proxy  string // a name of the proxy that all requests use; "" if there is none, or perhaps several
}

// FetchLimit is the maximum time of one fetch: of all exchanges and bodies, but without the time in
// [Wait]. A shorter Limit of a [Fetch] begins again after a request through a proxy has used it up.
const FetchLimit = 30 * time.Second

func (f Fetch) limit() time.Duration {
	if f.Limit > 0 {
		return min(f.Limit, FetchLimit)
	}
	return FetchLimit
}

// fetch requests a's robots.txt. If known has a copy, and the dialect permits conditional requests,
// it asks whether that copy is still valid, unless the text is needed. before describes the last fetches in the same way if
// they were unanswered; otherwise it is nil. The caller must call done after it has made the
// outcome available to others: until then the Doer does not release the server.
func (c *Cache) fetch(ctx context.Context, a dialect.Authority, known facts, before *unanswered, how Fetch) (o outcome, done func()) {
	host, name := Server(a)
	robots, err := url.Parse(dialect.Authority{Scheme: a.Scheme, Host: host}.RobotsURL())
	if err != nil {
		return failed(noResponse, err), func() {}
	}
	f := fetcher{
		Fetch:           how,
		table:           c.access,
		parent:          ctx,
		name:            name,
		withCredentials: c.access.withCredentials,
	}
	if before == nil {
		f.tries = moreTries
	} else {
		f.route = before.route
	}
	f.route.only = how.Way.Proxy != ""
	if c.access.conditional && !how.Text && known.copy != nil && known.copy.validators != nil {
		f.known = known
	}
	f.startClock()
	o = f.fetch(robots)
	if o.unanswered() {
		o.failure.unanswered = c.access.unanswered(how.Way, f.route, before, f.used())
	}
	if o.copy != nil && c.options.Private != nil {
		o.copy.private = c.options.Private(a)
	}
	return o, f.close
}

type wantedKey struct{}

// A wanted is the value of wantedKey.
type wanted struct {
	look     func() error
	byOthers bool // other caches of this process may fetch the file
}

// Wanted returns the function that a [Doer] calls after it has won the server from other processes
// and before it sends. The function looks into the store, where another process may have put the
// file by now. If the function returns an error, the Doer sends nothing and returns the error.
// Wanted returns nil if there is no store. ctx is the context of the Doer's request.
func Wanted(ctx context.Context) func() error {
	w, _ := ctx.Value(wantedKey{}).(wanted)
	return w.look
}

// Overtaken returns an error if another cache of this process has fetched the file while the [Doer]
// waited for the server. The Doer then sends nothing and returns the error. ctx is the context of
// the Doer's request.
func Overtaken(ctx context.Context) error {
	w, _ := ctx.Value(wantedKey{}).(wanted)
	if !w.byOthers {
		return nil
	}
	return w.look()
}
