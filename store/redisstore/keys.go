package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/collyrobots/collyrobots/store"
)

// keys is the prefix of all keys. A hash tag with the number of a bucket follows the prefix.
// Because of the hash tag, a Redis cluster stores all keys that one script uses on the same node.
type keys string

// buckets is the number of hash tags, over which a cluster can distribute the hosts. Each bucket
// has its own epoch.
const buckets = 256

func (k keys) in(bucket int, rest string) string {
	return string(k) + "{" + strconv.Itoa(bucket) + "}:" + rest
}

func (k keys) epoch(bucket int) string { return k.in(bucket, "epoch") }

// host returns the keys for the pace of a host: its state, the epoch of its bucket, and the key to
// which a damaged state is moved.
func (k keys) host(name string) (state, epoch, aside string) {
	n := bucket(name)
	return k.in(n, "pace:"+name), k.epoch(n), k.in(n, "damaged:pace:"+name)
}

// sending returns the key of the time until which requests may be sent to a host without holding
// it.
func (k keys) sending(name string) string { return k.in(bucket(name), "sending:"+name) }

// record returns the key of a record, and the key that damaged data is moved to.
func (k keys) record(key string) (record, aside string) {
	n := bucket(key)
	return k.in(n, "record:"+key), k.in(n, "damaged:record:"+key)
}

func bucket(name string) int {
	h := fnv.New32a()
	h.Write([]byte(name))
	return int(h.Sum32() % buckets)
}

//go:embed lua/state.lua
var state string

//go:embed lua/begin.lua
var beginText string

//go:embed lua/acquire.lua
var acquireText string

//go:embed lua/release.lua
var releaseText string

//go:embed lua/swap.lua
var swapText string

var (
	begin   = redis.NewScript(state + beginText)
	acquire = redis.NewScript(state + acquireText)
	release = redis.NewScript(state + releaseText)
	swap    = redis.NewScript(swapText)
)

// problem adds the prefix of this package, and the key if it is not empty, to an error of Redis. It
// returns nil if err is nil.
func (s *Store) problem(key string, err error) error {
	if err == nil {
		return nil
	}
	if _, version, ok := strings.Cut(err.Error(), "COLLYROBOTS VERSION "); ok && isReply(err) {
		version, _, _ = strings.Cut(version, " ")
		return &store.VersionError{Path: key, Version: version}
	}
	if noAnswer(err) {
		return fmt.Errorf("redisstore: %s does not answer: %w", s.server, err)
	}
	if key == "" {
		return fmt.Errorf("redisstore: %w", err)
	}
	return fmt.Errorf("redisstore: %q: %w", key, err)
}

// isReply reports whether err is an error reply of Redis, not a network error.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// noAnswer reports whether err means that Redis did not reply although the caller was still
// waiting.
func noAnswer(err error) bool {
	return !isReply(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, redis.ErrClosed)
}

// nameOf returns the name of the client's server for error messages.
func nameOf(client redis.UniversalClient) string {
	var addrs []string
	switch c := client.(type) {
	case *redis.Client:
		addrs = append(addrs, c.Options().Addr)
	case *redis.ClusterClient:
		addrs = append(addrs, c.Options().Addrs...)
	case *redis.Ring:
		addrs = slices.Sorted(maps.Values(c.Options().Addrs))
	}
	switch {
	case len(addrs) == 0:
		return "Redis"
	case addrs[0] == "FailoverClient": // go-redis has this instead of an address
		return "Redis behind Sentinel"
	}
	return "Redis at " + strings.Join(addrs, ", ")
}

// passing reports whether a later attempt may succeed after err.
func passing(err error) bool {
	return !isReply(err) || redis.IsLoadingError(err) || redis.IsReadOnlyError(err) || redis.IsClusterDownError(err) ||
		redis.IsTryAgainError(err) || redis.IsMasterDownError(err) || redis.IsMaxClientsError(err) || redis.IsNoReplicasError(err) ||
		redis.HasErrorPrefix(err, "BUSY")
}
