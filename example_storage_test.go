package collyrobots_test

import (
	"fmt"
	"log"
	"sync"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/storage"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
)

// A onceStorage is a storage whose IsVisited tests and sets in one step. It returns false only once
// for each page. Note that Collector.HasVisited also calls IsVisited.
type onceStorage struct {
	storage.Storage
	mu sync.Mutex
}

func (s *onceStorage) IsVisited(id uint64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	visited, err := s.Storage.IsVisited(id)
	if visited || err != nil {
		return visited, err
	}
	return false, s.Storage.Visited(id)
}

// Colly asks its storage whether a page was visited, and marks the page as visited in a second
// call. Between these calls, another goroutine of an Async collector may ask for the same page.
// Pages with many links are therefore sometimes fetched twice, with the plugin and without it. A
// storage that does both in one call prevents that.
func ExampleNewCollector_eachPageOnce() {
	links := make([]string, 50)
	for i := range links {
		links[i] = fmt.Sprint("/", i)
	}
	site := robotstest.Site{"*": robotstest.Page(links...), "/robots.txt": "User-agent: *\nDisallow: /7\n"}
	web, err := robotstest.Open(robotstest.Sites{"linked.test": site}) // each page links to all pages
	if err != nil {
		log.Fatal(err)
	}
	defer web.Close()

	c := collyrobots.NewCollector(colly.Async(), colly.UserAgent("ExampleBot/1.0"))
	c.WithTransport(web.Transport())
	if err := c.SetStorage(&onceStorage{Storage: &storage.InMemoryStorage{}}); err != nil {
		log.Fatal(err)
	}
	robots, err := c.WithRobots()
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()
	c.OnHTML("a[href]", func(e *colly.HTMLElement) { e.Request.Visit(e.Attr("href")) })
	c.Visit("http://linked.test/0")
	c.Wait()

	asked := make(map[string]int)
	for _, r := range web.Log("linked.test") {
		asked[r.URI]++
	}
	fmt.Println(len(web.Log("linked.test")), "requests for", len(asked), "URLs")
	// Output: 50 requests for 50 URLs
}

// A crowd is a storage whose visitors all call IsVisited before the first of them calls Visited.
type crowd struct {
	storage.InMemoryStorage
	asking sync.WaitGroup
}

func (s *crowd) IsVisited(id uint64) (bool, error) {
	visited, err := s.InMemoryStorage.IsVisited(id)
	s.asking.Done()
	s.asking.Wait()
	return visited, err
}

// A slowStorage waits between the two calls of Colly, so that other goroutines call IsVisited
// there.
type slowStorage struct{ storage.InMemoryStorage }

func (s *slowStorage) Visited(id uint64) error {
	time.Sleep(200 * time.Millisecond)
	return s.InMemoryStorage.Visited(id)
}

// TestStorageThatTestsAndSetsInOneStep checks that the storage of the Example prevents the second
// fetch.
func TestStorageThatTestsAndSetsInOneStep(t *testing.T) {
	const visitors = 5
	all := new(crowd)
	all.asking.Add(visitors)
	for name, tc := range map[string]struct {
		storage storage.Storage
		pages   int
	}{
		"Colly's own": {all, visitors},
		"at once":     {&onceStorage{Storage: &slowStorage{}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(1, noDenys)})
			c := start(t, web, nil)
			must(t, c.SetStorage(tc.storage))
			var all sync.WaitGroup
			for range visitors {
				all.Go(func() { c.Visit("http://a.test/0") })
			}
			all.Wait()
			if len(c.pages) != tc.pages {
				t.Errorf("got %d pages, want %d", len(c.pages), tc.pages)
			}
		})
	}
}
