package exchange

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/collyrobots/collyrobots/internal/backend"
	"github.com/collyrobots/collyrobots/internal/reporter"
	"github.com/collyrobots/collyrobots/internal/weburl"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/webbotauth"
)

// maxAskedHosts is the maximum number of hosts in signatures.hosts.
const maxAskedHosts = 10_000

// A signatures signs the requests of one plugin. A nil *signatures signs none.
type signatures struct {
	signer    *webbotauth.Signer
	report    *reporter.Reporter
	whenAsked bool // only the requests to hosts that have asked for it are signed

	signed atomic.Int64 // report.SignatureStats.Signed
	failed atomic.Int64 // report.SignatureStats.Failed
	asks   atomic.Int64 // report.SignatureStats.Asked

	// mu protects hosts.
	mu    sync.Mutex
	hosts map[string]string // the hosts that have asked, and the nonce for the next request; "" if there is none
}

// newSignatures returns the signatures of a plugin.
func newSignatures(signer *webbotauth.Signer, r *reporter.Reporter) *signatures {
	return &signatures{
		signer:    signer,
		report:    r,
		whenAsked: signer.WhenAsked,
		hosts:     make(map[string]string),
	}
}

// sign signs a request to a host, and reports whether it has done so. It does not sign ftp
// requests, which have no headers.
func (s *signatures) sign(host string, req *http.Request) bool {
	if !weburl.IsWeb(req.URL) {
		return false
	}
	nonce, signs := s.next(host)
	if !signs {
		return false
	}
	err := s.signer.SignNonce(req, nonce)
	if err != nil {
		s.failed.Add(1)
		s.report.Warn("a request cannot be signed and is sent without a signature", "url", req.URL.Redacted(), "error", err)
		return false
	}
	s.signed.Add(1)
	return true
}

// next reports whether the next request to a host is signed, and returns the nonce that the host
// has asked for, if any. The nonce is used once.
func (s *signatures) next(host string) (nonce string, signs bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	nonce, asked := s.hosts[host]
	switch {
	case asked && s.whenAsked:
		s.hosts[host] = ""
	case asked:
		delete(s.hosts, host)
	}
	return nonce, asked || !s.whenAsked
}

// ask records that a host has asked for signatures.
func (s *signatures) ask(host, nonce string) {
	s.asks.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.hosts[host]
	if !known && len(s.hosts) >= maxAskedHosts {
		for other := range s.hosts {
			delete(s.hosts, other)
			break
		}
	}
	s.hosts[host] = nonce
}

// statistics returns the counts so far, or nil if no request is signed.
func (s *signatures) statistics() *report.SignatureStats {
	if s == nil {
		return nil
	}
	stats := &report.SignatureStats{
		Signed: int(s.signed.Load()),
		Failed: int(s.failed.Load()),
		Asked:  int(s.asks.Load()),
	}
	if s.whenAsked {
		s.mu.Lock()
		defer s.mu.Unlock()
		stats.Hosts = len(s.hosts)
	}
	return stats
}

// signature returns a function that signs the request of x, or nil if no request is signed.
func (x *Exchange) signature() func(*http.Request) {
	s := x.Wire.signatures
	if s == nil {
		return nil
	}
	return func(req *http.Request) {
		x.signed = s.sign(x.Host.Name(), req)
		x.Trace.setSigned(x.signed)
	}
}

// SignsAgain records whether a response asks for a signature. It reports whether the request is
// sent again with a signature, which happens at most once. If it returns true, x has given its turn
// back.
func (x *Exchange) SignsAgain(resp *http.Response) bool {
	s := x.Wire.signatures
	if s == nil {
		return false
	}
	nonce, asked := s.signer.Asked(resp)
	if !asked {
		return false
	}
	s.ask(x.Host.Name(), nonce)
	rejected := x.signed && nonce == ""
	if x.noSecondSign || rejected || resp.StatusCode != http.StatusForbidden || !backend.Repeatable(resp.Request) {
		return false
	}
	if x.Host.BusyFor(time.Now(), Patience) {
		return false
	}
	x.noSecondSign = true
	x.EndAttempt(nil)
	return true
}
