package redisstore

import (
	_ "embed"
	"errors"
	"fmt"
	"hash/fnv"
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

// problem makes an error of Redis, met at a key, one of this package.
func problem(key string, err error) error {
	if err == nil {
		return nil
	}
	if _, version, ok := strings.Cut(err.Error(), "COLLYROBOTS VERSION "); ok && isReply(err) {
		version, _, _ = strings.Cut(version, " ")
		return &store.VersionError{Path: key, Version: version}
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

// passing reports whether err may be gone when the same is asked again.
func passing(err error) bool {
	return !isReply(err) || redis.IsLoadingError(err) || redis.IsReadOnlyError(err) || redis.IsClusterDownError(err) ||
		redis.IsTryAgainError(err) || redis.IsMasterDownError(err) || redis.IsMaxClientsError(err) || redis.IsNoReplicasError(err) ||
		redis.HasErrorPrefix(err, "BUSY")
}
