package report

import (
	"errors"
	"fmt"
	"time"
)

// ErrClosed is the error of requests and calls after Plugin.Close.
var ErrClosed = errors.New("collyrobots: the plugin is closed")

// A PrivateNetworkError reports that a public site has led the crawler to an address that is not
// public, for example a private, loopback or link-local address. The request was not sent. For a
// redirect, or a page that a sitemap lists, the error is wrapped in the error of OnError and Visit.
// For robots.txt and sitemaps it is in the log. See the option PrivateNetworks.
type PrivateNetworkError struct {
	URL     string // the URL that was not requested, without its password
	Address string // the address that the request would have gone to
	From    string // the host that led there; "" if the program requests URL itself
}

// Error returns a text with the URL, its address and the host that led there.
func (e *PrivateNetworkError) Error() string {
	if e.From == "" {
		return fmt.Sprintf("collyrobots: %s has a private address (%s)", e.URL, e.Address)
	}
	return fmt.Sprintf("collyrobots: %s leads to %s, a private address (%s); use PrivateNetworks(AllowAll) to allow it", e.From, e.URL, e.Address)
}

// A ShardError reports that a request was not sent under ShardByHost, because its host belongs to
// another process. The program can pass the URL on to that process.
type ShardError struct {
	URL   string // without its password
	Shard int    // the shard of the host
	Of    int    // the number of shards
}

// Error returns the URL and the shard of its host.
func (e *ShardError) Error() string {
	return fmt.Sprintf("collyrobots: the host of %s belongs to shard %d of %d", e.URL, e.Shard, e.Of)
}

// A PaceError reports that a request was not sent under SharedPace because the Pacer failed. The
// time of the last request of another process to the host is then not known. Later requests ask the
// Pacer again.
type PaceError struct {
	Host  string
	Since time.Time // the time of the first failure, for any host, after the last success
	Err   error     // the error of the Pacer
}

// Error returns the host, the time of the first failure, and the error of the Pacer.
func (e *PaceError) Error() string {
	return fmt.Sprintf("collyrobots: no shared pace for %s since %s: %v", e.Host, e.Since.Format(time.RFC3339), e.Err)
}

// Unwrap returns Err.
func (e *PaceError) Unwrap() error { return e.Err }
