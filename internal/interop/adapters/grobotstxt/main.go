// Command grobotstxt answers the cases of the conformance suite with
// github.com/jimsmart/grobotstxt, which is a translation of Google's parser to Go.
package main

import (
	"log"
	"os"

	"github.com/jimsmart/grobotstxt"

	"github.com/collyrobots/collyrobots/conformance"
)

func main() {
	if err := conformance.Serve(os.Stdin, os.Stdout, answer); err != nil {
		log.Fatal(err)
	}
}

func answer(q conformance.Question) conformance.Answer {
	file := string(q.File())
	allowed := grobotstxt.AgentAllowed(file, q.Agent, q.URL)
	sitemaps := grobotstxt.Sitemaps(file)
	return conformance.Answer{Allowed: &allowed, Sitemaps: &sitemaps}
}
