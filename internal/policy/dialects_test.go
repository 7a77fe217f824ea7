package policy_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/internal/policy"
	"github.com/collyrobots/collyrobots/store"
)

// TestYandexSizes checks that a file of more than 500 KiB restricts nothing under Yandex, also if
// it comes from the store.
func TestYandexSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for size, allowed := range map[int]bool{dialect.SizeLimit: false, dialect.SizeLimit + 1: true, 2 * dialect.SizeLimit: true} {
			file := closed + strings.Repeat("#", size-len(closed))
			s := store.NewMemory()
			for _, run := range []string{"fetched", "stored"} {
				c := newCrawler(t, with(dialect.Yandex(), s), reply(200, file))
				if p := c.get(t); p.RobotsStatus != policy.Rules || allows(p, "/x") != allowed {
					t.Errorf("%d bytes, %s: %v, /x allowed %v, want %v", size, run, p.RobotsStatus, allows(p, "/x"), allowed)
				}
				if asked := c.site.asked(); (run == "stored") != (asked == 0) {
					t.Errorf("%d bytes, %s: %d requests", size, run, asked)
				}
			}
		}
	})
}

// TestSchedules checks under which options a file has a schedule, and that the last one remains
// while the file cannot be read.
func TestSchedules(t *testing.T) {
	const file = "User-agent: *\nDisallow: /x\nRequest-rate: 1/5\nVisit-time: 0600-0845\n"
	for _, test := range []struct {
		options       policy.Options
		rates, visits int
	}{
		{under(dialect.RFC9309()), 0, 0},
		{under(dialect.Seznam()), 1, 0},
		{policy.Options{Dialect: dialect.RFC9309(), HonorDelays: true}, 1, 1},
		{policy.Options{Dialect: dialect.Seznam(), HonorDelays: true}, 1, 1},
		{policy.Options{Dialect: dialect.Temoto(), HonorDelays: true}, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCrawler(t, test.options, reply(200, file))
			check := func(state string) {
				t.Helper()
				var got dialect.Schedule
				if s := c.get(t).LastSchedule(); s != nil {
					got = *s
				}
				if len(got.Rates) != test.rates || len(got.Visits) != test.visits {
					t.Errorf("%s, %s: %+v, want %d and %d lines", test.options.Dialect, state, got, test.rates, test.visits)
				}
			}
			check("read")
			if test.options.Dialect == dialect.Temoto() {
				return // it never reads the file again
			}
			c.site.answer = reply(503, "")
			time.Sleep(25 * time.Hour)
			check("unreadable")
		})
	}
}

// TestCleanParams checks that only Yandex has Clean-param.
func TestCleanParams(t *testing.T) {
	for _, d := range dialect.All() {
		synctest.Test(t, func(t *testing.T) {
			p := newCrawler(t, under(d), reply(200, "Clean-param: ref\n"+closed)).get(t)
			if got := len(p.CleanParams()); (got == 1) != (d == dialect.Yandex()) {
				t.Errorf("%s: %d lines", d, got)
			}
		})
	}
}
