package policy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/store"
)

const (
	recordVersion = 1
	// recordLife is how long a record outlives its last change: longer than any stage of an outage, in which the
	// record changes with every try.
	recordLife = 60 * day
)

// record is how facts are stored: one line of JSON, then the body as fetched, since dialects differ in what they read
// in it.
type record struct {
	Version int            `json:"version"`
	Copy    *recordCopy    `json:"copy,omitempty"`
	Failure *recordFailure `json:"failure,omitempty"`
}

type recordCopy struct {
	Class        class     `json:"class"`
	Hops         uint8     `json:"hops,omitempty"`
	Status       uint16    `json:"status"`
	Fetched      time.Time `json:"fetched"`
	MaxAge       seconds   `json:"max_age"`
	Age          seconds   `json:"age,omitempty"`
	ETag         string    `json:"etag,omitempty"`
	LastModified string    `json:"last_modified,omitempty"`
	Sum          string    `json:"sha256"` // of the body
}

type recordFailure struct {
	First    time.Time     `json:"first"`
	Last     time.Time     `json:"last"`
	Count    int           `json:"count"`
	Class    class         `json:"class"`
	Status   int           `json:"status,omitempty"`
	Wait     time.Duration `json:"wait,omitempty"` // nanoseconds
	Error    string        `json:"error"`
	Answered time.Time     `json:"answered,omitzero"`
}

// encode writes f, whose copy has a body, as a record.
func (f facts) encode() ([]byte, error) {
	r := record{Version: recordVersion}
	var body []byte
	if s := f.copy; s != nil {
		if s.reading != nil {
			body = s.reading.body
		}
		sum := sha256.Sum256(body)
		r.Copy = &recordCopy{s.class, s.hops, s.status, s.fetched().UTC(), s.maxAge, s.age, s.tag.etag, s.tag.modified,
			hex.EncodeToString(sum[:])}
	}
	if x := f.failure; x != nil {
		r.Failure = &recordFailure{x.first.UTC(), x.last.UTC(), x.count, x.class, x.status, x.wait, reason(x.err), x.answered.time()}
	}
	head, err := json.Marshal(r)
	return append(append(head, '\n'), body...), err
}

// decodeFacts reads what encode wrote. It takes nothing that encode would not have written.
func decodeFacts(b []byte) (facts, error) {
	head, body, _ := bytes.Cut(b, []byte("\n"))
	var r record
	if err := json.Unmarshal(head, &r); err != nil {
		return facts{}, err
	}
	if r.Version != recordVersion {
		return facts{}, fmt.Errorf("record of version %d", r.Version)
	}
	var f facts
	if r.Copy != nil {
		sum := sha256.Sum256(body)
		if !r.Copy.Class.final() || hex.EncodeToString(sum[:]) != r.Copy.Sum {
			return facts{}, errors.New("the copy is not as it was written")
		}
		f.copy = r.Copy.settled(body)
	}
	if r.Failure != nil {
		if r.Failure.Class >= classes || r.Failure.Class.final() || r.Failure.Count < 1 {
			return facts{}, errors.New("the failure is not as it was written")
		}
		f.failure = r.Failure.failure()
	}
	return f, nil
}

func (c *recordCopy) settled(body []byte) *settled {
	return &settled{class: c.Class, hops: c.Hops, status: c.Status, at: c.Fetched.UnixNano(), maxAge: c.MaxAge, age: c.Age,
		tag: validators{c.ETag, c.LastModified}, reading: unread(body)}
}

func (x *recordFailure) failure() *failure {
	var err error = &NoAnswerError{errors.New(x.Error)}
	if x.Status != 0 {
		err = &StatusError{x.Status}
	}
	answered := new(moment)
	if !x.Answered.IsZero() {
		answered.set(x.Answered)
	}
	return &failure{first: x.First, last: x.Last, count: x.Count, class: x.Class, status: x.Status, wait: x.Wait, err: err,
		answered: answered}
}

// reason is the text of err that failure makes the same error of again.
func reason(err error) string {
	if none := (*NoAnswerError)(nil); errors.As(err, &none) {
		err = none.Err
	}
	return err.Error()
}

// storeKey is the key of the record for the file at robots.
func storeKey(robots string) string { return "robots:" + strings.TrimSuffix(robots, robotsPath) }

// recall returns what is known of the file at robots: by the cache, and by the store, where others may have written since.
func (c *Cache) recall(ctx context.Context, robots string, old *Policy) facts {
	var f facts
	if old != nil {
		f = old.facts
	}
	if c.options.Store == nil {
		return f
	}
	raw, err := c.options.Store.Get(ctx, storeKey(robots))
	if err != nil {
		c.storeFailed(ctx, "reading", robots, err)
		return f
	}
	return f.merge(c.decode(robots, raw))
}

// remember adds o to what is known of the file at robots, in the store too, and returns the sum. A store that fails is reported; the
// crawl goes on with what the process knows.
func (c *Cache) remember(ctx context.Context, robots string, known facts, o outcome) facts {
	if c.options.Store == nil {
		return known.after(o)
	}
	sum := known.after(o)
	update := func(old []byte) ([]byte, error) {
		stored := c.decode(robots, old)
		sum = stored.merge(known).after(o)
		return sum.withBody(stored).encode()
	}
	err := c.options.Store.Update(ctx, storeKey(robots), recordLife, update)
	if corrupt := (*store.CorruptError)(nil); errors.As(err, &corrupt) {
		c.storeFailed(ctx, "updating", robots, err)
		err = c.options.Store.Update(ctx, storeKey(robots), recordLife, update)
	}
	if err != nil {
		c.storeFailed(ctx, "updating", robots, err)
	}
	return sum
}

func (c *Cache) decode(robots string, raw []byte) facts {
	if raw == nil {
		return facts{}
	}
	f, err := decodeFacts(raw)
	if err != nil {
		c.storeFailed(c.ctx, "decoding", robots, err)
	}
	return f
}

func (c *Cache) storeFailed(ctx context.Context, doing, robots string, err error) {
	if ctx.Err() == nil {
		c.log.Error("robots.txt record lost", "doing", doing, "robots", robots, "err", err)
	}
}

// withBody returns f with the body of its copy, which one that has been read no longer has: the stored one has it. A
// copy whose body is gone is not worth storing.
func (f facts) withBody(stored facts) facts {
	if f.copy == nil || f.copy.reading == nil || f.copy.reading.size == 0 {
		return f
	}
	if stored.copy == nil || sha256.Sum256(stored.copy.reading.body) != f.copy.reading.sum {
		f.copy = nil
		return f
	}
	s := *f.copy
	s.reading = stored.copy.reading
	f.copy = &s
	return f
}

// merge joins what two know of one authority: the newer copy, and the failures since then, from the earliest.
func (f facts) merge(g facts) facts {
	if f.copy == nil || g.copy != nil && g.copy.at > f.copy.at {
		f.copy, g.copy = g.copy, f.copy
	}
	f.failure = f.failure.merge(g.failure)
	if f.failure == nil || f.copy == nil || f.failure.first.After(f.copy.fetched()) {
		return f
	}
	if !f.failure.last.After(f.copy.fetched()) {
		return facts{copy: f.copy}
	}
	// The copy came in between: only the last failure is known to be later.
	run := *f.failure
	run.first, run.count = run.last, 1
	f.failure = &run
	return f
}

func (x *failure) merge(y *failure) *failure {
	switch {
	case x == nil:
		return y
	case y == nil || x == y:
		return x
	case y.last.After(x.last):
		x, y = y, x
	}
	run := *x
	if y.first.Before(x.first) {
		run.first = y.first
	}
	run.count = max(x.count, y.count)
	if y.answered.time().After(x.answered.time()) {
		run.answered = y.answered
	}
	return &run
}
