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

// keys is the prefix of all keys. Behind it comes a hash tag, the number of a bucket, by which a
// cluster keeps together what one script touches.
type keys string

// buckets is over how many parts of a cluster the hosts can spread. Each has an epoch of its own.
const buckets = 256

func (k keys) in(bucket int, rest string) string {
	return string(k) + "{" + strconv.Itoa(bucket) + "}:" + rest
}

func (k keys) epoch(bucket int) string { return k.in(bucket, "epoch") }

// host returns the keys of a host's pace: its state, the epoch, and where what is no state is put.
func (k keys) host(name string) (state, epoch, aside string) {
	n := bucket(name)
	return k.in(n, "pace:"+name), k.epoch(n), k.in(n, "damaged:pace:"+name)
}

// record returns the keys of a record, and where its damaged octets are put.
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

// problem returns an error of Redis, met at a key, as one of this package.
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

// isReply reports whether Redis itself has answered with err.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// noAnswer reports whether err says that no reply came, although the caller waited for one.
func noAnswer(err error) bool {
	return !isReply(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, redis.ErrClosed)
}

// nameOf returns what messages call the server of a client.
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

// passing reports whether err may be gone when the same is asked again.
func passing(err error) bool {
	return !isReply(err) || redis.IsLoadingError(err) || redis.IsReadOnlyError(err) || redis.IsClusterDownError(err) ||
		redis.IsTryAgainError(err) || redis.IsMasterDownError(err) || redis.IsMaxClientsError(err) || redis.IsNoReplicasError(err) ||
		redis.HasErrorPrefix(err, "BUSY")
}
