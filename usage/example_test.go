package usage_test

import (
	"encoding/json"
	"fmt"
	"log"

	"github.com/collyrobots/collyrobots/usage"
)

// A site allows search, except for its drafts, and a response disallows training.
func Example() {
	rules := usage.Rules{
		usage.ContentUsageRule("search=y", usage.Source{Name: "robots.txt", Line: 3}),
		usage.ContentUsageRule("/drafts/ search=n", usage.Source{Name: "robots.txt", Line: 4}),
	}
	header := usage.ContentUsage([]string{"train-ai=n"}, usage.Source{Name: "Content-Usage"})
	page := rules.Of("/drafts/1").Combine(header)
	if page.Of(usage.Search).Preference == usage.Disallowed {
		fmt.Println("not for search")
	}
	text, err := json.Marshal(page)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", text)
	// Output:
	// not for search
	// {"search":{"preference":"disallowed","source":"robots.txt","line":4},"train-ai":{"preference":"disallowed","source":"Content-Usage"}}
}
