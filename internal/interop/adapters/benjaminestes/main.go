// Command benjaminestes answers the cases of the conformance suite with
// github.com/benjaminestes/robots.
package main

import (
	"bytes"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/benjaminestes/robots"

	"github.com/collyrobots/collyrobots/conformance"
)

func main() {
	answers := os.Stdout
	os.Stdout = os.Stderr // the parser prints the faults of a file
	if err := conformance.Serve(os.Stdin, answers, answer); err != nil {
		log.Fatal(err)
	}
}

func answer(q conformance.Question) (a conformance.Answer) {
	defer func() {
		if fault := recover(); fault != nil { // the parser panics if the file is empty
			a = conformance.Answer{Error: fmt.Sprint(fault)}
		}
	}()
	file, err := robots.From(http.StatusOK, bytes.NewReader(q.File()))
	if err != nil {
		return conformance.Answer{Error: err.Error()}
	}
	allowed := file.Test(q.Agent, q.URL)
	sitemaps := file.Sitemaps()
	return conformance.Answer{Allowed: &allowed, Sitemaps: &sitemaps}
}
