package frontier_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// BenchmarkPage measures a page from Add to End. The pages belong to 1,000 hosts and wait in the
// frontier, 100 of each host.
func BenchmarkPage(b *testing.B) {
	const hosts, ahead = 1000, 100_000
	f, err := frontier.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	add := func(i int) {
		p := &urlstore.Page{
			URL:     fmt.Sprintf("https://host%d.example.com/section/page-%d.html", i%hosts, i),
			Depth:   3,
			From:    "www.example.com",
			Request: make([]byte, 200),
		}
		if added, err := f.Add(p); !added || err != nil {
			b.Fatal(added, err)
		}
	}
	for i := range hosts {
		add(i)
		f.Pace(fmt.Sprintf("host%d.example.com", i), time.Now(), false)
	}
	for i := hosts; i < ahead; i++ {
		add(i)
	}
	i := ahead
	for b.Loop() {
		add(i)
		i++
		p, err := f.Next(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err := f.End(p, urlstore.Done); err != nil {
			b.Fatal(err)
		}
	}
}
