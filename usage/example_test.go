package usage_test

import (
	"encoding/json"
	"fmt"
	"log"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/usage"
)

// A site allows search, except for its drafts, and a response disallows training.
func Example() {
	robots := usage.ParseRobotsTxt([]dialect.UsageLine{
		{Key: "Content-Usage", Value: "search=y", Line: 3},
		{Key: "Content-Usage", Value: "/drafts/ search=n", Line: 4},
	})
	header := usage.ParseContentUsage([]string{"train-ai=n"}, usage.Source{Name: "Content-Usage"})
	page := robots.Of("/drafts/1").Combine(header)
	if page.Of(usage.Search).Preference == usage.Disallowed {
		fmt.Println("not for search")
	}
	text, err := json.Marshal(page)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", text)
	// Output: not for search
	// {"search":{"preference":"disallowed","source":"robots.txt","line":4},"train-ai":{"preference":"disallowed","source":"Content-Usage"}}
}
