package robotstags_test

import (
	"fmt"
	"net/http"

	"github.com/collyrobots/collyrobots/robotstags"
)

// A program that uses http.Client reads the rules of a response itself.
func ExampleFromHeader() {
	header := http.Header{"X-Robots-Tag": {"noarchive, max-snippet: 20", "examplebot: noindex", "otherbot: nofollow"}}
	tags := robotstags.FromHeader(header, "ExampleBot")
	for _, rule := range tags {
		fmt.Println(rule)
	}
	fmt.Println(tags.NoIndex(), tags.NoFollow())
	// Output:
	// noarchive
	// max-snippet: 20
	// noindex
	// true false
}

func ExampleFromHTML() {
	page := `<!DOCTYPE html><title>A</title><meta name="robots" content="none"><body><p>text</p>`
	tags := robotstags.FromHTML([]byte(page))
	fmt.Println(tags.NoIndex(), tags.NoFollow(), tags.Has(robotstags.NoArchive))
	// Output: true true false
}
