package dialect_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

func TestGroupRules(t *testing.T) {
	const file = "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: x\nAllow: /a\nDisallow:\nDisallow: /shop*\nAllow: /index.htm\n"
	for name, want := range map[string]string{
		"rfc9309":      "[8 Allow: /index.htm 7 Disallow: /shop* 3 Allow: /a/b 5 Allow: /a 2 Disallow: /a 6 Disallow: ]",
		"google":       "[8 Allow: /index.htm 7 Disallow: /shop* 3 Allow: /a/b 5 Allow: /a 8 Allow: /index.htm 2 Disallow: /a 6 Disallow: ]",
		"original1994": "[7 Disallow: /shop* 2 Disallow: /a 6 Disallow: ]",
		"temoto":       "[]",
		"yandex":       "[8 Allow: /index.htm 7 Disallow: /shop* 3 Allow: /a/b 5 Allow: /a 2 Disallow: /a 6 Disallow: ]",
	} {
		d, _ := dialect.ByName(name)
		var got []string
		for _, r := range d.Parse([]byte(file)).Group("x").Rules() {
			got = append(got, fmt.Sprintf("%d %s", r.Line, r))
		}
		if text := fmt.Sprint(got); text != want {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
	}
}

// TestGroupRulesDecide checks, on generated files, that the rule that decides is the first in the
// list of those that match the URL.
func TestGroupRulesDecide(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 1))
	decided := 0
	for range 400 {
		file := generateFile(r, 40)
		for _, d := range published {
			group := d.Parse([]byte(file)).Group("FooBot")
			rules := group.Rules()
			for range 4 {
				target := generatePath(r, 5)
				rule := group.Decide(target).Rule
				if rule.Line == 0 {
					continue
				}
				decided++
				first := slices.IndexFunc(rules, func(r dialect.Rule) bool {
					return r == rule || !hasForms(rules, r) && matchesAlone(d, r, target)
				})
				if first < 0 || rules[first] != rule {
					t.Fatalf("%s: %q %q: the rule %+v decides, but the list is %+v", d, file, target, rule, rules)
				}
			}
		}
	}
	if decided < 1000 {
		t.Errorf("%d decisions by a rule, want at least 1000", decided)
	}
}

// hasForms reports whether a rule is in the list several times.
func hasForms(rules []dialect.Rule, r dialect.Rule) bool {
	i := slices.Index(rules, r)
	return slices.Contains(rules[i+1:], r)
}

// matchesAlone reports whether a rule decides about a target if it is the only rule of a file.
func matchesAlone(d dialect.Dialect, r dialect.Rule, target string) bool {
	file := strings.Join([]string{"User-agent: *", r.String(), ""}, "\n")
	return d.Parse([]byte(file)).Group().Decide(target).Rule.Line > 0
}
