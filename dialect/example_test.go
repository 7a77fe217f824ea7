package dialect_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

// This example reads one file in several dialects for the crawler ExampleBot-Images.
func Example() {
	file := []byte(`User-agent: *
Disallow: /

User-agent: ExampleBot
Crawl-delay: 20
Disallow: /private/
Allow: /private/*.png$
`)
	u, _ := url.Parse("https://example.com/private/logo.png")
	for _, d := range []dialect.Dialect{dialect.RFC9309(), dialect.Google(), dialect.CocCoc(), dialect.Original1994()} {
		group := d.Parse(file).Group("ExampleBot-Images")
		decision := group.Decide(dialect.Target(u))
		delay, _ := group.CrawlDelay()
		fmt.Printf("%-12s group %-11s line %d %-23s allowed %-5v delay %v\n",
			d, group.Name(), decision.Rule.Line, decision.Rule.Pattern, decision.Allowed, delay)
	}
	// Output:
	// rfc9309      group *           line 2 /                       allowed false delay 0s
	// google       group *           line 2 /                       allowed false delay 0s
	// coccoc       group ExampleBot  line 7 /private/*.png$         allowed true  delay 10s
	// original1994 group ExampleBot  line 6 /private/               allowed false delay 0s
}

// Lint shows the author of a file how a crawler interprets it.
func ExampleDialect_Lint() {
	file := []byte("User-agent: MJ12bot\nDisalow: /tmp\nDisallow: private\n")
	for _, d := range []dialect.Dialect{dialect.RFC9309(), dialect.Google()} {
		for _, issue := range d.Lint(file) {
			fmt.Printf("%s: %s\n", d, issue)
		}
	}
	// Output:
	// rfc9309: line 1: names no product token: MJ12bot
	// rfc9309: line 2: misspelt key, line ignored: Disalow
	// rfc9309: line 3: pattern begins with neither / nor *, never matches: private
	// google: line 1: only the letters, _ and - at the beginning of the name are compared: MJ12bot
	// google: line 2: misspelt key, accepted: Disalow
	// google: line 3: pattern begins with neither / nor *, never matches: private
}

// A robots.txt names a crawler by its product token and not by its User-Agent header. It is wrong
// to pass the header to Group: no line can match it, so the crawler gets the group of *.
func ExampleTokenOf() {
	const header = "ExampleBot/1.0 (+https://example.com/bot)"
	rules := dialect.RFC9309().Parse([]byte("User-agent: *\nDisallow: /\n\nUser-agent: ExampleBot\nDisallow: /private/\n"))

	token := dialect.TokenOf(header)
	fmt.Println(token, dialect.RFC9309().CheckToken(token), rules.Group(token).Decide("/").Allowed)
	fmt.Println("wrong:", dialect.RFC9309().CheckToken(header) != nil, rules.Group(header).Decide("/").Allowed)
	// Output:
	// ExampleBot <nil> true
	// wrong: true false
}

// A Verdict shows which line of the file decided, and whether a URL is allowed by a rule or
// because no rule matches it.
func ExampleGroup_Decide() {
	group := dialect.RFC9309().Parse([]byte(`User-agent: *
Disallow: /shop/
Allow: /shop/*.html$
Disallow: /*?sort=
`)).Group("ExampleBot")
	for _, raw := range []string{
		"https://example.com/shop/cart",
		"https://example.com/shop/shoes.html",
		"https://example.com/shop/shoes.html?sort=price",
		"https://example.com/about",
	} {
		u, _ := url.Parse(raw)
		switch d := group.Decide(dialect.Target(u)); {
		case d.Rule.Line == 0:
			fmt.Printf("%s: allowed, no rule matches\n", dialect.Target(u))
		case d.Allowed:
			fmt.Printf("%s: allowed by line %d, %s\n", dialect.Target(u), d.Rule.Line, d.Rule)
		default:
			fmt.Printf("%s: denied by line %d, %s\n", dialect.Target(u), d.Rule.Line, d.Rule)
		}
	}
	// Output:
	// /shop/cart: denied by line 2, Disallow: /shop/
	// /shop/shoes.html: allowed by line 3, Allow: /shop/*.html$
	// /shop/shoes.html?sort=price: denied by line 4, Disallow: /*?sort=
	// /about: allowed, no rule matches
}

// Each dialect interprets the Crawl-delay of a file in its own way. WrittenDelay is for crawlers
// that obey the delay even if the dialect does not support it.
func ExampleGroup_CrawlDelay() {
	file := []byte("User-agent: *\nCrawl-delay: 30\nDisallow: /private/\n")
	for _, d := range []dialect.Dialect{dialect.RFC9309(), dialect.Google(), dialect.CocCoc(), dialect.Original1994()} {
		group := d.Parse(file).Group("ExampleBot")
		delay, ok := group.CrawlDelay()
		written, _ := group.WrittenDelay()
		fmt.Println(d, delay, ok, written)
	}
	// Output:
	// rfc9309 30s true 30s
	// google 0s false 30s
	// coccoc 10s true 30s
	// original1994 0s false 30s
}

// URLs with the same robots.txt have equal authorities, even if their spelling differs.
func ExampleAuthorityOf() {
	pages := make(map[dialect.Authority]int)
	for _, raw := range []string{
		"https://example.com/a", "HTTPS://EXAMPLE.COM:443/b", "https://example.com./c",
		"http://example.com/a", "https://www.bücher.example/",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			fmt.Println(err)
			continue
		}
		authority, err := dialect.AuthorityOf(u)
		if err != nil {
			fmt.Println(err)
			continue
		}
		pages[authority]++
		if pages[authority] == 1 {
			fmt.Println(authority.RobotsURL())
		}
	}
	fmt.Println(pages[dialect.Authority{Scheme: "https", Host: "example.com"}], "pages of https://example.com")
	// Output:
	// https://example.com/robots.txt
	// http://example.com/robots.txt
	// https://www.xn--bcher-kva.example/robots.txt
	// 3 pages of https://example.com
}

// A configuration in JSON contains the name of a dialect.
func ExampleDialect_UnmarshalText() {
	var config struct{ Dialect dialect.Dialect }
	err := json.Unmarshal([]byte(`{"Dialect": "coccoc"}`), &config)
	fmt.Println(config.Dialect == dialect.CocCoc(), err)

	err = json.Unmarshal([]byte(`{"Dialect": "bing"}`), &config)
	fmt.Println(err != nil)
	// Output:
	// true <nil>
	// true
}

// A session parameter makes several URLs of one page. Yandex lets the owner of a site list such
// parameters.
func ExampleCleanParams_Clean() {
	rules := dialect.Yandex().Parse([]byte("Clean-param: sid&ref /catalog\n"))
	for _, s := range []string{"https://example.com/catalog?id=7&sid=1", "https://example.com/catalog?ref=home&id=7", "https://example.com/news?sid=1"} {
		u, _ := url.Parse(s)
		fmt.Println(rules.CleanParams().Clean(u))
	}
	// Output:
	// https://example.com/catalog?id=7
	// https://example.com/catalog?id=7
	// https://example.com/news?sid=1
}

// The owner of this site wants fewer requests by day than by night.
func ExampleSchedule_At() {
	file := []byte("User-agent: *\nRequest-rate: 10/1m 0600-1459\nRequest-rate: 1/1s 1500-0559\n")
	schedule := dialect.Seznam().Parse(file).Group("SeznamBot").Schedule()
	for _, hour := range []int{5, 6, 15} {
		t := time.Date(2026, 11, 22, hour, 0, 0, 0, time.UTC)
		rate, open, until := schedule.At(t)
		fmt.Println(t.Format("15:04"), rate.Delay, open, "until", until.Format("15:04"))
	}
	// Output:
	// 05:00 1s true until 06:00
	// 06:00 6s true until 15:00
	// 15:00 1s true until 06:00
}
