// Command samclarke answers the cases of the conformance suite with github.com/samclarke/robotstxt.
package main

import (
	"log"
	"os"

	"github.com/samclarke/robotstxt"

	"github.com/collyrobots/collyrobots/conformance"
)

func main() {
	if err := conformance.Serve(os.Stdin, os.Stdout, answer); err != nil {
		log.Fatal(err)
	}
}

func answer(q conformance.Question) conformance.Answer {
	file, err := robotstxt.Parse(string(q.File()), q.URL) // reads only the scheme and the host of the URL
	if err != nil {
		return conformance.Answer{Error: err.Error()}
	}
	allowed, err := file.IsAllowed(q.Agent, q.URL)
	if err != nil {
		return conformance.Answer{Error: err.Error()}
	}
	delay := file.CrawlDelay(q.Agent).Seconds()
	sitemaps := file.Sitemaps()
	return conformance.Answer{Allowed: &allowed, Delay: &delay, Sitemaps: &sitemaps}
}
