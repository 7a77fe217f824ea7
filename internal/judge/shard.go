package judge

import (
	"crypto/sha256"
	"encoding/binary"
	"net/url"

	"github.com/collyrobots/collyrobots/internal/hostname"
	"github.com/collyrobots/collyrobots/report"
)

// ShardOf returns the shard of a host, which may have a port.
func ShardOf(host string, n int) int {
	sum := sha256.Sum256([]byte(hostname.WithoutPort(host)))
	key := binary.BigEndian.Uint64(sum[:])
	shard := -1
	for next := 0; next < n; {
		shard = next
		key = key*2862933555777941757 + 1
		next = int(float64(shard+1) * (float64(1<<31) / float64(key>>33+1)))
	}
	return shard
}

// A Shard selects the hosts of this process: those of shard i of n. The zero shard selects all
// hosts.
type Shard struct{ Of, Index int }

// Owns returns nil if host, the host of u, belongs to this process. Otherwise it returns a
// *ShardError.
func (s Shard) Owns(host string, u *url.URL) error {
	if s.Of < 2 {
		return nil
	}
	if at := ShardOf(host, s.Of); at != s.Index {
		return &report.ShardError{URL: u.Redacted(), Shard: at, Of: s.Of}
	}
	return nil
}
