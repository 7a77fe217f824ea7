package scale

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"github.com/collyrobots/collyrobots"
)

// byHost returns the shares of each of n processes under ShardByHost. The caller must not change
// them.
func byHost(web Web, n int) [][]share {
	made, _ := sharded.LoadOrStore(sharding{web, n}, sync.OnceValue(func() [][]share { return shard(web, n) }))
	return made.(func() [][]share)()
}

// sharded contains the results of byHost. Without it, a simulation would spend most of its time on
// them.
var sharded sync.Map

type sharding struct {
	Web
	n int
}

// shard computes the result of byHost.
func shard(web Web, n int) [][]share {
	of := make([]uint8, web.Hosts) // the process of each host
	pages := make([]int32, web.Hosts)
	var running sync.WaitGroup
	part := web.Hosts/runtime.GOMAXPROCS(0) + 1
	for from := 0; from < web.Hosts; from += part {
		running.Go(func() {
			for host := from; host < min(from+part, web.Hosts); host++ {
				i := 0
				if n > 1 {
					i = shardOf(web, host, n)
				}
				of[host] = uint8(i)
				pages[host] = int32(web.pages(host))
			}
		})
	}
	running.Wait()
	sizes := make([]int, n)
	for _, i := range of {
		sizes[i]++
	}
	shares := make([][]share, n)
	for i, size := range sizes {
		shares[i] = make([]share, 0, size)
	}
	for host, i := range of {
		shares[i] = append(shares[i], share{int32(host), pages[host]})
	}
	return shares
}

func shardOf(web Web, host, n int) int {
	i, err := collyrobots.ShardOf("https://"+web.name(host)+"/", n)
	if err != nil {
		panic(err)
	}
	return i
}

// byPage returns the shares of each of n processes if any process may get any page, as with one
// queue for all. Each process begins at another host.
func byPage(web Web, n int) [][]share {
	r := rand.New(rand.NewPCG(web.Seed, 4))
	shares := make([][]share, n)
	pages := make([]int32, n)
	for host := range web.Hosts {
		clear(pages)
		for range web.pages(host) {
			pages[r.IntN(n)]++
		}
		for i, count := range pages {
			if count > 0 {
				shares[i] = append(shares[i], share{int32(host), count})
			}
		}
	}
	for i, s := range shares {
		at := len(s) * i / n
		shares[i] = slices.Concat(s[at:], s[:at])
	}
	return shares
}

// A balance says how evenly hosts and pages are divided among processes: the largest number that
// one process has, divided by the mean.
type balance struct{ hosts, pages float64 }

func balanceOf(shares [][]share) balance {
	var hosts, pages, mostHosts, mostPages int
	for _, s := range shares {
		sum := 0
		for _, x := range s {
			sum += int(x.pages)
		}
		hosts += len(s)
		pages += sum
		mostHosts = max(mostHosts, len(s))
		mostPages = max(mostPages, sum)
	}
	n := float64(len(shares))
	return balance{hosts: float64(mostHosts) * n / float64(hosts), pages: float64(mostPages) * n / float64(pages)}
}

func (b balance) String() string {
	return fmt.Sprintf("%+.1f %% of hosts, %+.1f %% of pages", 100*(b.hosts-1), 100*(b.pages-1))
}
