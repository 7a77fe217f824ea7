package gate

import "net/http"

// A responder sees the end of an exchange of a collector or a client. All responders of a plugin are
// in Gate.responders.
type responder interface {
	// answered is called with each response. If again is true, the request is sent once more, and
	// the responders after this one do not see the response. In that case the responder must have
	// ended the ticket of q. log logs something when the lock of the exchange is no longer held; it
	// may be nil.
	answered(q *Request, resp *http.Response) (again bool, log func())
	// failed is called when the exchange has failed, also while its body was read.
	failed(q *Request, err error) (log func())
}

// A signedRetries is the responder of the option SignRequests, for sites that ask for a signature or
// a nonce.
type signedRetries struct{}

func (signedRetries) answered(q *Request, resp *http.Response) (again bool, log func()) {
	return q.SignsAgain(resp), nil
}

func (signedRetries) failed(*Request, error) (log func()) { return nil }
