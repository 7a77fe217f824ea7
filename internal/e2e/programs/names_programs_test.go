package programs

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"

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

// sameButDelay returns options for n hosts that differ only in their delay.
func sameButDelay(n int) []collyrobots.Option {
	var options []collyrobots.Option
	for i := range n {
		host := fmt.Sprintf("h%d.test", i)
		options = append(options, collyrobots.ForHosts(host, collyrobots.MinDelay(time.Duration(i+1)*time.Second)))
	}
	return options
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
	{name: "has clones of a base collector with names of their own", sites: library, closed: groupsOfCustomers(customers), run: func(p *kit.Run) {
		base := p.Collector()
		for i := range customers {
			c := got(p, base.Clone())
			c.UserAgent = spacedName(i)
			p.Attach(c)
			visitEach(c, "http://a.test/1", "http://a.test/closed/1", "http://a.test/3")
		}
	}},
	{name: "has two names and 20 hosts that differ only in their delay", sites: hosts(20),
		options: func(*kit.Run) []collyrobots.Option { return sameButDelay(20) },
		closed:  "User-agent: CustomerAA\nDisallow: /1\nDisallow: /closed\n\nUser-agent: CustomerAB\nDisallow: /2\nDisallow: /closed\n",
		run: func(p *kit.Run) {
			for i := range 20 {
				for name := range 2 {
					c := got(p, p.Collector(colly.UserAgent(spacedName(name))))
					p.Attach(c)
					visitEach(c, fmt.Sprintf("http://h%d.test/1", i), fmt.Sprintf("http://h%d.test/2", i), fmt.Sprintf("http://h%d.test/closed/1", i))
				}
			}
		}},
	{name: "has 40 names and 10 patterns of hosts with dialects", sites: hosts(10),
		options: func(*kit.Run) []collyrobots.Option {
			var options []collyrobots.Option
			for i := range 10 {
				options = append(options, collyrobots.ForHosts(fmt.Sprintf("h%d.test", i), collyrobots.Dialect(dialect.RFC9309()), collyrobots.MaxDelay(time.Duration(100+i)*time.Second)))
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
	{name: "changes its name for each request", sites: library, closed: groupsOfCustomers(customers), run: func(p *kit.Run) {
		c := got(p, p.Collector(colly.AllowURLRevisit()))
		n := 0
		c.OnRequest(func(r *colly.Request) {
			r.Headers.Set("User-Agent", spacedName(n%customers)+"/2.0")
			n++
		})
		p.Attach(c)
		for i := range customers {
			visitEach(c, fmt.Sprint("http://a.test/", i%5+1), "http://a.test/closed/1")
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
	{name: "has a name for each host", sites: library, closed: "User-agent: OneBot\nDisallow: /closed\nDisallow: /1\n\nUser-agent: TwoBot\nDisallow: /closed\n\nUser-agent: *\nDisallow:\n",
		options: func(*kit.Run) []collyrobots.Option {
			return []collyrobots.Option{
				collyrobots.ForHosts("a.test", collyrobots.ProductToken("OneBot")),
				collyrobots.ForHosts("b.test", collyrobots.ProductToken("TwoBot", "OneBot")),
			}
		},
		run: func(p *kit.Run) {
			c := got(p, p.Collector())
			p.Attach(c)
			visitEach(c, someOf("a.test")...)
			visitEach(c, someOf("b.test")...)
		}},
	{name: "has names that begin with each other", sites: library, closed: groupsOf("Bot0", "Bot1", "Bot2") + "\nUser-agent: Bot-Image\nDisallow: /2\nDisallow: /closed\n", run: func(p *kit.Run) {
		for _, name := range []string{"Bot", "Bot/2", "bot-image/1.0", "BOT-IMAGE", "Bot-Images", "Bo"} {
			c := got(p, p.Collector(colly.UserAgent(name)))
			p.Attach(c)
			visitEach(c, "http://a.test/1", "http://a.test/2", "http://a.test/closed/1")
		}
		c := got(p, p.Collector(colly.UserAgent("Bot-Image/3")))
		p.Attach(c)
		c.Visit("http://b.test/1")
	}},
	{name: "has queues for jobs with names of their own", sites: library, unordered: true, closed: groupsOfCustomers(customers), run: func(p *kit.Run) {
		for i := range 40 {
			c := got(p, p.Collector(colly.UserAgent(spacedName(i)), colly.AllowURLRevisit()))
			p.Attach(c)
			q, err := queue.New(2, &queue.InMemoryQueueStorage{MaxSize: 10})
			kit.Must(p.T, err)
			for _, u := range []string{"http://a.test/1", "http://a.test/2", "http://a.test/closed/1"} {
				kit.Must(p.T, q.AddURL(u))
			}
			p.Say("%v", q.Run(c))
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
	{name: "comes back to old customers after new ones", sites: library, closed: groupsOfCustomers(customers), run: func(p *kit.Run) {
		for range 2 {
			for i := range customers {
				c := got(p, p.Collector(colly.UserAgent(spacedName(i))))
				p.Attach(c)
				visitEach(c, "http://a.test/1", "http://a.test/closed/1", "http://a.test/2")
			}
			time.Sleep(25 * time.Hour) // robots.txt is read again
		}
	}},
}
