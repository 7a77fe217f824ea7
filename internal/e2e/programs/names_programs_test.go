package programs

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// customers is the number of names in the programs of namesPrograms.
const customers = 60

// groupsOf returns a robots.txt with a group for each crawler. The crawler with index i may not
// request page i%5+1, and no crawler may request pages below /closed.
func groupsOf(names ...string) string {
	var b strings.Builder
	for i, name := range names {
		fmt.Fprintf(&b, "User-agent: %s\nDisallow: /%d\nDisallow: /closed\nCrawl-delay: 1\n\n", name, i%5+1)
	}
	b.WriteString("User-agent: *\nDisallow: /\n")
	return b.String()
}

// spacedName returns a name that no other one of them begins with: product tokens are letters.
func spacedName(i int) string { return "Customer" + string(rune('A'+i/26)) + string(rune('A'+i%26)) }

// groupsOfCustomers is groupsOf for n names of spacedName.
func groupsOfCustomers(n int) string {
	var names []string
	for i := range n {
		names = append(names, spacedName(i))
	}
	return groupsOf(names...)
}

// hosts returns n sites with the pages of a library.
func hosts(n int) func() robotstest.Sites {
	return func() robotstest.Sites {
		sites := robotstest.Sites{}
		for i := range n {
			sites[fmt.Sprintf("h%d.test", i)] = library()["a.test"]
		}
		return sites
	}
}

// namesPrograms have several crawler names, and options for single hosts.
var namesPrograms = []program{
	{name: "has a user agent for each customer", sites: library, closed: groupsOfCustomers(customers), run: func(p *kit.Run) {
		for i := range customers {
			c := got(p, p.Collector(colly.UserAgent(spacedName(i)+"/1.0")))
			p.Attach(c)
			visitEach(c, "http://a.test/1", "http://a.test/closed/1", "http://a.test/2", "http://b.test/3")
		}
	}},
	{name: "has a user agent for each customer, in parallel", sites: library, unordered: true, closed: groupsOfCustomers(customers), run: func(p *kit.Run) {
		var group sync.WaitGroup
		for i := range customers {
			c := got(p, p.Collector(colly.UserAgent(spacedName(i)), colly.Async()))
			p.Attach(c)
			group.Go(func() {
				visitEach(c, "http://a.test/1", "http://a.test/closed/1", "http://a.test/2", "http://b.test/3")
				c.Wait()
			})
		}
		group.Wait()
	}},
	{name: "has 40 names and 10 patterns of hosts with dialects", sites: hosts(10),
		options: func(*kit.Run) []collyrobots.Option {
			var options []collyrobots.Option
			for i := range 10 {
				options = append(options, collyrobots.ForHosts(fmt.Sprintf("h%d.test", i), collyrobots.Dialect(dialect.RFC9309()), collyrobots.MaxCrawlDelay(time.Duration(100+i)*time.Second)))
			}
			return options
		},
		closed: groupsOfCustomers(40),
		run: func(p *kit.Run) {
			for i := range 40 {
				c := got(p, p.Collector(colly.UserAgent(spacedName(i))))
				p.Attach(c)
				host := fmt.Sprintf("http://h%d.test", i%10)
				visitEach(c, host+"/1", host+"/2", host+"/closed/1")
			}
		}},
	{name: "changes the name of its collector during the crawl", sites: library, closed: groupsOfCustomers(customers), run: func(p *kit.Run) {
		c := got(p, p.Collector(colly.AllowURLRevisit()))
		p.Attach(c)
		for i := range customers {
			c.UserAgent = spacedName(i)
			visitEach(c, "http://b.test/1", "http://b.test/closed/2")
		}
	}},
	{name: "has a client and an agent for each job", sites: library, closed: groupsOfCustomers(customers), run: func(p *kit.Run) {
		client := &http.Client{Transport: wrap(p, p.Web.Transport())}
		for i := range customers {
			for _, page := range []string{"http://a.test/1", "http://a.test/2", "http://a.test/closed/1"} {
				p.Say("%s", get(p, client, page, spacedName(i)+"/1.0"))
			}
		}
	}},
}
