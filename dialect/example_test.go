package dialect_test

import (
	"fmt"
	"net/url"

	"github.com/collyrobots/collyrobots/dialect"
)

// One file, read in each dialect by the crawler ExampleBot-Images.
func Example() {
	file := []byte(`User-agent: *
Disallow: /

User-agent: ExampleBot
Crawl-delay: 20
Disallow: /private/
Allow: /private/*.png$
`)
	u, _ := url.Parse("https://example.com/private/logo.png")
	for _, d := range dialect.All() {
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
	// temoto       group ExampleBot  line 0                         allowed true  delay 0s
}

// The file's author wants to know what a crawler makes of it.
func ExampleDialect_Lint() {
	file := []byte("User-agent: MJ12bot\nDisalow: /tmp\nDisallow: private\n")
	for _, d := range []dialect.Dialect{dialect.RFC9309(), dialect.Google()} {
		for _, issue := range d.Lint(file) {
			fmt.Printf("%s: %s\n", d, issue)
		}
	}
	// Output:
	// rfc9309: line 1: no product token, group is for nobody: MJ12bot
	// rfc9309: line 2: misspelt key, line ignored: Disalow
	// rfc9309: line 3: pattern begins with neither / nor *, never matches: private
	// google: line 1: only the beginning of the name, letters, _ and -, is compared: MJ12bot
	// google: line 2: misspelt key, accepted: Disalow
	// google: line 3: pattern begins with neither / nor *, never matches: private
}
