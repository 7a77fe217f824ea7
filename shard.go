package collyrobots

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/url"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/redact"
)

// ShardOf returns which of n processes keeps the host of a URL under ShardByHost, counted from 0.
// It is an error if n is less than one or the URL is not an http or https URL.
//
// All processes must find the same, whatever they are written in. So: take the host as it is sent,
// in lower-case ASCII ("xn--..." for others, an IPv6 address in brackets), without scheme and port.
// key is the first eight octets of its SHA-256, as a big-endian number without sign. Then jump
// (Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm", 2014): with b = -1 and j
// = 0, as long as j < n, let b = j, key = key*2862933555777941757 + 1 modulo 2^64, and j the
// integer part of (b + 1) * (2^31 / ((key >> 33) + 1)) in 64-bit floating point. The last b is the
// shard: of 100, example.com is shard 2's. If n grows by one, each host stays or becomes the new
// process's.
func ShardOf(rawURL string, n int) (int, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return 0, fmt.Errorf("collyrobots: ShardOf: %w", redact.ParseError(err))
	}
	if !hasRobots(u) {
		return 0, fmt.Errorf("collyrobots: ShardOf: %q is not an http or https URL", u.Redacted())
	}
	if n < 1 {
		return 0, fmt.Errorf("collyrobots: ShardOf: %d shards", n)
	}
	a, err := dialect.AuthorityOf(u)
	if err != nil {
		return 0, fmt.Errorf("collyrobots: ShardOf: %w", err)
	}
	return shardOf(a.Host, n), nil
}

// shardOf returns the shard of a host, with its port or without.
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

// A shard is which hosts are this process's: those of shard i of n. The zero shard is all.
type shard struct{ n, i int }

// owns returns nil if u, which is on host, is this process's, else a *ShardError.
func (s shard) owns(host string, u *url.URL) error {
	if s.n < 2 {
		return nil
	}
	if at := shardOf(host, s.n); at != s.i {
		return &ShardError{u.Redacted(), at, s.n}
	}
	return nil
}
