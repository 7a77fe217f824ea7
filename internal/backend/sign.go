package backend

import "net/http"

// This file signs requests.

// prepareSignature makes the transfer sign req, which its transport rt is about to get, if the
// terms ask for that. req is a copy of the request of the caller, whose header does not change.
//
// An http.Transport may wait for a connection, and may send a request again. Both take time, and a
// signature is valid for a short time. The address of the server may also turn out to be private.
// So the request is signed when there is a connection on which it may be written, by signLate. An
// http.Transport reads the header only after that. Any other transport gets a signed request.
func (t *transfer) prepareSignature(rt http.RoundTripper, req *http.Request) {
	if t.sign == nil {
		return
	}
	req.Header = req.Header.Clone()
	if req.Header == nil {
		req.Header = make(http.Header)
	}
	_, late := rt.(*http.Transport)
	if !late {
		t.sign(req)
		return
	}
	t.attempts.Lock()
	defer t.attempts.Unlock()
	t.unsigned = req
}

// signLate signs the request before it is written on a connection. attempts is held.
func (t *transfer) signLate() {
	if t.unsigned != nil {
		t.sign(t.unsigned)
	}
}

// A signedTransport is the transport of an http.Client whose requests a transfer signs. http.Client
// may copy the header of a request before its transport gets it.
type signedTransport struct {
	transfer *transfer
	next     http.RoundTripper
}

// signedBy returns rt, or a transport that signs requests for t and sends them with rt, if the
// terms ask for signatures.
func signedBy(t *transfer, rt http.RoundTripper) http.RoundTripper {
	if t.sign == nil {
		return rt
	}
	if rt == nil {
		rt = http.DefaultTransport
	}
	return signedTransport{transfer: t, next: rt}
}

// RoundTrip implements http.RoundTripper.
func (s signedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	signed := req.WithContext(req.Context())
	s.transfer.prepareSignature(s.next, signed)
	return s.next.RoundTrip(signed)
}
