package frontier

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/collyrobots/collyrobots/store/urlstore"
)

// An Option sets one property of a Frontier. If an option is given twice, the later one applies.
// The zero Option is not valid.
type Option struct {
	set   func(*settings)
	fault error // an *OptionError that Open returns, or nil
}

// settings are the values of all options.
type settings struct {
	window  int
	budget  budget
	order   func(*urlstore.Page) uint64 // the lowest comes first
	recrawl time.Duration               // 0 if pages are not added again
	log     *slog.Logger
}

// defaultWindow is the number of pages that may be out unless Window sets another one.
const defaultWindow = 1024

// configure applies opts and returns all of their faults.
func configure(opts []Option) (settings, error) {
	s := settings{
		window: defaultWindow,
		order:  func(*urlstore.Page) uint64 { return 0 },
		log:    slog.Default(),
	}
	var faults []error
	for i, o := range opts {
		if o.set == nil {
			reason := fmt.Sprintf("number %d is the zero Option", i+1)
			faults = append(faults, &OptionError{Option: "Option", Reason: reason})
			continue
		}
		o.set(&s)
		faults = append(faults, o.fault)
	}
	return s, errors.Join(faults...)
}

// option returns an Option, which Open rejects if bad is true.
func option(name string, set func(*settings), bad bool, reason string, args ...any) Option {
	o := Option{set: set}
	if bad {
		o.fault = &OptionError{Option: name, Reason: fmt.Sprintf(reason, args...)}
	}
	return o
}

// Window sets how many pages may be out at a time. An eighth of them, at least one, may be pages of
// the same host if the host has no delay. The default is 1,024. After a kill, at most this number
// of pages is handed out again although their callbacks had run.
func Window(n int) Option {
	return option("Window", func(s *settings) { s.window = n },
		n < 1, "%d is not a positive number", n)
}

// ByDepth hands out the pages of a host by depth: those that are the fewest links away from the
// first page come first. Pages of the same depth are taken in the order of discovery. By default,
// and for all hosts together, depth does not count.
//
// The order of a page is decided when it is added. Pages that an earlier run has added keep theirs.
func ByDepth() Option {
	return Option{set: func(s *settings) {
		s.order = func(p *urlstore.Page) uint64 { return uint64(max(p.Depth, 0)) }
	}}
}

// ByPriority hands out the pages of a host by priority: those with the highest value of f come
// first. Pages with the same value are taken in the order of discovery. Add calls f once for each
// page, with Host and Key set, from the goroutine that calls Add. f must not change the page.
//
// The order of a page is decided when it is added. Pages that an earlier run has added keep theirs.
func ByPriority(f func(*urlstore.Page) int) Option {
	set := func(s *settings) {
		s.order = func(p *urlstore.Page) uint64 { return highestFirst(f(p)) }
	}
	return option("ByPriority", set, f == nil, "the function is nil")
}

// highestFirst maps a priority to a number. The higher the priority, the lower the number.
func highestFirst(priority int) uint64 {
	const signBit = 1 << 63
	return ^(uint64(int64(priority)) ^ signBit)
}

// MaxRecordedPerHost sets how many of the recorded pages of one host are fetched, in all runs
// together. Pages that are denied do not count. Further pages are left out: they stay recorded, and
// a later Open with a larger budget continues with them. The default is no limit.
func MaxRecordedPerHost(n int) Option {
	return option("MaxRecordedPerHost", func(s *settings) { s.budget.host = n },
		n < 1, "%d is not a positive number", n)
}

// MaxTotal sets how many pages are fetched, in all runs together. Pages that are denied do not
// count. Further pages are left out, as with MaxRecordedPerHost. The default is no limit.
func MaxTotal(n int) Option {
	return option("MaxTotal", func(s *settings) { s.budget.total = n },
		n < 1, "%d is not a positive number", n)
}

// MaxDepth sets the largest Depth of pages that are fetched. Deeper pages are left out, as with
// MaxRecordedPerHost. The default is no limit.
func MaxDepth(n int) Option {
	return option("MaxDepth", func(s *settings) { s.budget.depth = n },
		n < 1, "%d is not a positive number", n)
}

// Recrawl lets Add accept a page again whose last attempt ended at least this long ago, whether it
// is done, was denied or has failed. The times are rounded to seconds. By default, a page is added
// only once.
func Recrawl(after time.Duration) Option {
	return option("Recrawl", func(s *settings) { s.recrawl = after },
		after <= 0, "%v is not a positive duration", after)
}

// Logger sets the logger for events that no call returns: lost records, a full disk, and messages
// of the storage engine. The default is slog.Default(). Its handler is called in another goroutine,
// and Close waits for it. So it may be slow, and may call all methods except Close. While 1,000
// messages wait for a slow handler, others are dropped, and a message says how many.
func Logger(l *slog.Logger) Option {
	return option("Logger", func(s *settings) { s.log = l }, l == nil, "the logger is nil")
}
