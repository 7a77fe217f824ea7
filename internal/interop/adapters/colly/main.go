// Command colly runs the fetch cases of the conformance suite with Colly and its built-in check of
// robots.txt, without collyrobots.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots/conformance"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var q conformance.FetchQuestion
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			log.Fatal(err)
		}
		c := colly.NewCollector(colly.UserAgent(q.Agent))
		c.IgnoreRobotsTxt = false
		for _, u := range q.Fetch {
			c.Visit(u) // the log of the server has the requests
		}
		fmt.Println("{}")
	}
}
