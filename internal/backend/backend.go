// Package backend sends requests and asks a [Controller] about each of them: about the requests of
// Colly collectors, also those that follow a redirect, and about the requests of any http.Client
// (NewSeam).
//
// Colly has no hook for redirects, and no getter for its client, its transport or its redirect
// handler. A plugin that must see every request on the wire has to look inside the collector. This
// is the only package that does. It reads unexported fields by reflection, and returns
// [ErrUnsupported] if the collector has others than it knows.
//
// The package never writes to the user's client. It replaces the client in the collector's backend
// by a copy with another transport and another redirect check. Both belong to a [Seam], which asks
// the Controller and then does what the user's client would do. Changes that the user makes later
// take effect, both those to the user's client and those that go through the collector's setters.
//
// A request of a collector passes through the package in this order:
//
//  1. handle.go: [Open] has found the client of the collector.
//  2. install.go: [Handle.Install] has put a Seam in its place. The plugin calls [Handle.Watch]
//     before each request, which puts the Seam back if one of Colly's setters has replaced it. If
//     Colly has set a proxy, proxy.go restores the user's transport.
//  3. roundtrip.go: net/http calls [Seam.RoundTrip], which finds the Controller of the request
//     (mark.go) and calls Controller.Before. The result is a [Trip] (controller.go).
//  4. transfer.go: the request is sent as a transfer. It calls the Trip when the transport attempts
//     to send the request (attempt.go), when there is a response, and when the body was read or the
//     time is up (timeout.go).
//  5. seam.go: the Seam sends the request with the transport and the timeout of the user, and calls
//     the user's redirect check. A redirect is a new request and starts again at step 3.
//  6. followed.go: a transport may have followed redirects by itself. The Controller is asked about
//     them after the fact.
package backend
