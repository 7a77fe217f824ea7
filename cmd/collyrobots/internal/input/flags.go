package input

import (
	"flag"
	"fmt"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/usage"
)

// Names returns the names in a list that are separated by commas, blanks or both.
func Names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// Purpose parses a list of uses that are separated by commas.
func Purpose(list string) (purpose usage.Purpose, err error) {
	byName := make(map[string]usage.Purpose)
	for _, p := range []usage.Purpose{usage.Search, usage.AIUse, usage.TrainAI} {
		byName[p.String()] = p
	}
	for _, name := range Names(list) {
		if byName[name] == 0 {
			return 0, fmt.Errorf("%s: use search, ai-use or train-ai", term.Safe(name))
		}
		purpose |= byName[name]
	}
	return purpose, nil
}

// Pace has the flags of a crawl that crawl, plan and serve have: the dialect, and the pace.
type Pace struct {
	Dialect dialect.Dialect
	Delay   time.Duration // the minimum delay between two requests to one host
	Jitter  float64       // gaps are longer than the delay by a random share of it, up to this
	MaxRate float64       // the requests per second to all hosts together; 0 means no limit
	By      collyrobots.Grouping

	hours, zone string
}

// Define defines the flags.
func (p *Pace) Define(flags *flag.FlagSet) {
	flags.TextVar(&p.Dialect, "dialect", dialect.RFC9309(), "read robots.txt in this `dialect`: "+term.List(dialect.All()))
	flags.DurationVar(&p.Delay, "delay", 250*time.Millisecond, "minimum delay between two requests to one host; hosts may ask for a longer one")
	flags.Float64Var(&p.Jitter, "jitter", 0, "make each gap between requests longer than the delay by a random `share` of it, up to this one")
	flags.Float64Var(&p.MaxRate, "max-rate", 0, "send at most this `number` of requests per second to all hosts together; 0 means no limit")
	flags.Func("pace-by", "use one pace for each `unit`: host, domain or address (default host)", p.setBy)
	flags.StringVar(&p.hours, "hours", "", "send requests only in these `hours` of the day, such as 22:00-06:00")
	flags.StringVar(&p.zone, "zone", "Local", "the time `zone` of -hours, such as Europe/Berlin")
}

func (p *Pace) setBy(value string) error {
	for _, g := range []collyrobots.Grouping{collyrobots.ByHost, collyrobots.ByDomain, collyrobots.ByAddress} {
		if g.String() == value {
			p.By = g
			return nil
		}
	}
	return fmt.Errorf("use host, domain or address")
}

// Options returns the options that the flags stand for. New checks their values.
func (p *Pace) Options() ([]collyrobots.Option, error) {
	h, err := p.Hours()
	if err != nil {
		return nil, err
	}
	options := []collyrobots.Option{
		collyrobots.Dialect(p.Dialect),
		collyrobots.MinDelay(p.Delay),
		collyrobots.Jitter(p.Jitter),
		collyrobots.MaxRate(rate.Limit(p.MaxRate), 1),
		collyrobots.PaceBy(p.By),
	}
	if h != (Hours{}) {
		options = append(options, collyrobots.CrawlHours(h.From, h.To, h.Zone))
	}
	return options, nil
}

// Hours has the arguments of the option CrawlHours. The zero value has none.
type Hours struct {
	From, To string // the option checks that they are times of day
	Zone     *time.Location
}

// Hours parses the values of -hours and -zone. If there is no -hours, it returns the zero Hours.
func (p *Pace) Hours() (Hours, error) {
	if p.hours == "" {
		return Hours{}, nil
	}
	from, to, ok := strings.Cut(p.hours, "-")
	if !ok {
		return Hours{}, fmt.Errorf("-hours %s: want a window such as 22:00-06:00", term.Safe(p.hours))
	}
	loc, err := time.LoadLocation(p.zone)
	if err != nil {
		return Hours{}, fmt.Errorf("-zone %s: %w", term.Safe(p.zone), err)
	}
	return Hours{From: from, To: to, Zone: loc}, nil
}
