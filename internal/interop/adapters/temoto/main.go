// Command temoto answers the cases of the conformance suite with github.com/temoto/robotstxt.
package main

import (
	"log"
	"net/url"
	"os"

	"github.com/temoto/robotstxt"

	"github.com/collyrobots/collyrobots/conformance"
)

func main() {
	if err := conformance.Serve(os.Stdin, os.Stdout, answer); err != nil {
		log.Fatal(err)
	}
}

func answer(q conformance.Question) conformance.Answer {
	u, err := url.Parse(q.URL)
	if err != nil {
		return conformance.Answer{Error: err.Error()}
	}
	robots, err := robotstxt.FromBytes(q.File())
	if err != nil {
		return conformance.Answer{Error: err.Error()}
	}
	group := robots.FindGroup(q.Agent)
	allowed := group.Test(u.RequestURI())
	delay := group.CrawlDelay.Seconds()
	return conformance.Answer{Allowed: &allowed, Delay: &delay, Sitemaps: &robots.Sitemaps}
}
