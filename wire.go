package collyrobots

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// hopPatience bounds how long a redirect hop waits for its host: it holds a LimitRule slot meanwhile.
const hopPatience = time.Minute

// ErrHopWait is why a redirect was not followed: its host could not be asked within a minute.
var ErrHopWait = errors.New("collyrobots: a redirect would wait too long for its host's crawl delay")

// A wire is the plugin at the collectors' transports, where redirect hops pass that no hook of Colly sees.
type wire struct{ *Plugin }

// Before judges and paces what has not been: redirect hops, what an OnRequestHeaders callback rewrote, and the requests of
// clones that are not attached.
func (p wire) Before(client *http.Client, req *http.Request) error {
	if !governed(req.URL) || req.Response == nil && p.pace.of(req.URL).launched(req.URL) {
		return nil
	}
	if req.Response == nil {
		p.warn("a request reached the transport that the plugin had not seen: a clone or collector without Attach, or an OnRequestHeaders callback that changes the URL", "url", req.URL.String())
	}
	ctx, cancel := context.WithTimeoutCause(req.Context(), hopPatience, ErrHopWait)
	defer cancel()
	do := func(req *http.Request) (*http.Response, error) { return p.exchange(client, req, 0) }
	v, err := p.judge(ctx, req.URL, req.UserAgent(), do)
	if err != nil {
		return err
	}
	p.feeder.offer(v.policy)
	if err := v.refusal(req.URL); err != nil {
		if !p.config.dryRun {
			return err
		}
		p.note(req.URL, err)
	}
	if v.host.busyFor(hopPatience) {
		return ErrHopWait
	}
	return v.host.send(ctx, nil, req.URL)
}

// Again paces what net/http sends a second time.
func (p wire) Again(req *http.Request) error {
	if !governed(req.URL) {
		return nil
	}
	host := p.pace.of(req.URL)
	host.ended(req.URL)
	return host.send(req.Context(), nil, req.URL)
}

// Answered lets the host slow the crawl down, and its authority count as one that answers. Nobody reads the body of a redirect,
// but the user's redirect handler may well visit the same host before it is closed.
func (p wire) Answered(req *http.Request, resp *http.Response) {
	if !governed(req.URL) {
		return
	}
	host := p.pace.of(req.URL)
	p.answered(host, req.URL, resp)
	p.readers.answered(req.URL)
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		host.ended(req.URL)
	}
}

// Ended gives the host its place on the wire back.
func (p wire) Ended(req *http.Request) {
	if governed(req.URL) {
		p.pace.of(req.URL).ended(req.URL)
	}
}
