package collyrobots

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/url"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/redact"
	"github.com/collyrobots/collyrobots/internal/weburl"
)

// ShardOf returns the number of the process that requests the host of a URL under ShardByHost. The
// n processes are numbered from 0. ShardOf returns an error if n is less than one, or if the URL is
// not an http or https URL. If n grows by one, each host keeps its shard or moves to the new one.
//
// A program in another language can compute the same shard. The host is in lower-case ASCII,
// without scheme and port. An international name has its "xn--" form, and an IPv6 address has
// brackets. The key is the first eight bytes of the host's SHA-256, as a big-endian unsigned
// number. The shard is the jump consistent hash of the key (Lamping and Veach, "A Fast, Minimal
// Memory, Consistent Hash Algorithm", 2014):
//
//	b = -1; j = 0
//	while j < n:
//		b = j
//		key = (key * 2862933555777941757 + 1) mod 2^64
//		j = floor((b + 1) * (2^31 / ((key >> 33) + 1)))   in 64-bit floating point
//	return b
//
// For example, example.com belongs to shard 2 of 100.
func ShardOf(rawURL string, n int) (int, error) {
	u, err := weburl.Parse(rawURL)
	if err != nil {
		return 0, fmt.Errorf("collyrobots: ShardOf: %w", redact.ParseError(err))
	}
	if !isWeb(u) {
		return 0, fmt.Errorf("collyrobots: ShardOf: %q is not an http or https URL", u.Redacted())
	}
	if n < 1 {
		return 0, fmt.Errorf("collyrobots: ShardOf: got %d shards, want at least 1", n)
	}
	a, err := dialect.AuthorityOf(u)
	if err != nil {
		return 0, fmt.Errorf("collyrobots: ShardOf: %w", err)
	}
	return shardOf(a.Host, n), nil
}

// shardOf returns the shard of a host, which may have a port.
func shardOf(host string, n int) int {
	sum := sha256.Sum256([]byte(nameOf(host)))
	key := binary.BigEndian.Uint64(sum[:])
	shard := -1
	for next := 0; next < n; {
		shard = next
		key = key*2862933555777941757 + 1
		next = int(float64(shard+1) * (float64(1<<31) / float64(key>>33+1)))
	}
	return shard
}

// A shard selects the hosts of this process: those of shard i of n. The zero shard selects all
// hosts.
type shard struct{ n, i int }

// owns returns nil if host, the host of u, belongs to this process. Otherwise it returns a
// *ShardError.
func (s shard) owns(host string, u *url.URL) error {
	if s.n < 2 {
		return nil
	}
	if at := shardOf(host, s.n); at != s.i {
		return &ShardError{URL: u.Redacted(), Shard: at, Of: s.n}
	}
	return nil
}
