package hostqueue

import (
	_ "embed"
	"strings"

	"github.com/redis/go-redis/v9"
)

// keys is the prefix of all keys of a crawl. The keys that one script uses have the same hash tag,
// so a Redis cluster stores them on the same node.
type keys string

func (k keys) of(name string) string { return string(k) + "{all}:" + name }

// crawl is a string, the identity of the crawl.
func (k keys) crawl() string { return k.of("crawl") }

// listed is a sorted set of the hosts with pages that are not done, by the time in milliseconds
// when they are due. Its members are described at member.
func (k keys) listed() string { return k.of("listed") }

// known is a set of the names of all hosts that were ever listed.
func (k keys) known() string { return k.of("known") }

// processes is a sorted set of the processes in Run, by the time when they count as ended.
func (k keys) processes() string { return k.of("processes") }

// A hostKeys has the keys of one host.
type hostKeys struct {
	state   string // a hash, see below
	pages   string // a list of the pages that wait, as texts of pages
	retries string // a sorted set of the pages that wait for a retry, by the time in milliseconds
	failed  string // a list of the pages that have failed, see failureText
	seen    string // a set of the keys of all known pages
}

// The state of a host has these fields:
//
//   - turn: how often all pages of the host were done, 0 if it is missing
//   - listed: the turn that the host was listed for
//   - holder: a random text that identifies the goroutine that crawls the host
//   - page: the page in progress
//   - done, denied, failed, dropped: numbers of pages

func (k keys) host(name string) hostKeys {
	host := string(k) + "{host:" + name + "}:"
	return hostKeys{
		state:   host + "state",
		pages:   host + "pages",
		retries: host + "retries",
		failed:  host + "failed",
		seen:    host + "seen",
	}
}

// all returns all keys.
func (k hostKeys) all() []string { return []string{k.state, k.pages, k.retries, k.failed, k.seen} }

// A member identifies a listed host. It contains the turn of the host, so a process that removes a
// host because all of its pages are done does not remove it if another process has listed it again
// in the meantime.
type member string

func newMember(host, turn string) member { return member(turn + " " + host) }

func (m member) split() (host, turn string) {
	turn, host, _ = strings.Cut(string(m), " ")
	return host, turn
}

//go:embed lua/add.lua
var addText string

//go:embed lua/list.lua
var listText string

//go:embed lua/take.lua
var takeText string

//go:embed lua/move.lua
var moveText string

//go:embed lua/begin.lua
var beginText string

//go:embed lua/next.lua
var nextText string

var (
	addScript   = redis.NewScript(addText)
	listScript  = redis.NewScript(listText)
	takeScript  = redis.NewScript(takeText)
	moveScript  = redis.NewScript(moveText)
	beginScript = redis.NewScript(beginText)
	nextScript  = redis.NewScript(nextText)
)
