package policy

import (
	"context"
	"net/url"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/store"
	"github.com/collyrobots/collyrobots/usage"
)

// TestUsage checks that a policy has the preferences of the group that the dialect chooses, also if
// the file comes from a store.
func TestUsage(t *testing.T) {
	const file = "User-agent: *\nContent-Usage: /x train-ai=n\nDisallow: /y\n\nUser-agent: ExampleBot\nContent-Signal: ai-train=yes\nDisallow: /z\n"
	records := store.NewMemory()
	for _, tokens := range [][]string{{"OtherBot"}, {"ExampleBot"}, {"OtherBot"}} {
		for _, d := range dialect.All() {
			c := New(Options{Dialect: d, Tokens: tokens, Store: records})
			a := dialect.Authority{Scheme: "https", Host: "a.test"}
			pol, err := c.Get(context.Background(), a, Fetch{Do: serve(file)})
			if err != nil {
				t.Fatal(err)
			}
			want := usage.Disallowed
			if tokens[0] == "ExampleBot" {
				want = usage.Allowed
			}
			terms := usage.Sources{Robots: pol.Usage(), RobotsHash: pol.Sum()}.Terms(&url.URL{Path: "/x"})
			got := terms.Preferences.TrainAI
			if got.Preference != want || got.Hash != pol.Sum() || got.Hash == "" {
				t.Errorf("%v, %v: got %+v, want %v", d, tokens, got, want)
			}
			c.Close()
		}
	}
	if (&Policy{RobotsStatus: NoRobots}).Usage() != nil {
		t.Error("a site without robots.txt has preferences")
	}
}
