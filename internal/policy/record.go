package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
)

const recordVersion = 1

// record is the stored form of facts. It is one line of JSON, followed by the body as it was
// fetched, because each dialect reads the body differently.
type record struct {
	Version int            `json:"version"`
	Copy    *recordCopy    `json:"copy,omitempty"`
	Failure *recordFailure `json:"failure,omitempty"`
}

type recordCopy struct {
	Class        class     `json:"class"`
	Redirects    uint8     `json:"hops,omitempty"`
	Status       uint16    `json:"status"`
	Fetched      time.Time `json:"fetched"`
	MaxAge       seconds   `json:"max_age"`
	Age          seconds   `json:"age,omitempty"`
	ETag         string    `json:"etag,omitempty"`
	LastModified string    `json:"last_modified,omitempty"`
	Coding       coding    `json:"coding,omitempty"`
	Long         bool      `json:"long,omitempty"` // the body is longer than dialect.SizeLimit, and complete
	Private      bool      `json:"private,omitempty"`
	Walled       bool      `json:"walled,omitempty"`
	Sum          string    `json:"sha256"` // of the body
}

type recordFailure struct {
	First    time.Time     `json:"first"`
	Last     time.Time     `json:"last"`
	Count    int32         `json:"count"`
	Class    class         `json:"class"`
	Status   int           `json:"status,omitempty"`
	Wait     time.Duration `json:"wait,omitempty"` // nanoseconds
	Error    string        `json:"error"`
	Proxy    string        `json:"proxy,omitempty"` // StatusError.Proxy
	Way      string        `json:"way,omitempty"`   // Way.Proxy
	Walled   bool          `json:"walled,omitempty"`
	Answered time.Time     `json:"answered,omitzero"`
}

// encode returns the record of f, which must have the body of its copy.
func (f facts) encode() ([]byte, error) {
	r := record{Version: recordVersion}
	if f.copy != nil {
		r.Copy = f.copy.record(f.body)
	}
	if f.failure != nil {
		r.Failure = f.failure.record()
	}
	head, err := json.Marshal(r)
	return append(append(head, '\n'), f.body...), err
}

func (s *goodCopy) record(body []byte) *recordCopy {
	r := &recordCopy{
		Class:     s.class,
		Redirects: s.redirects,
		Status:    s.status,
		Fetched:   s.fetched.time().UTC(),
		MaxAge:    s.maxAge,
		Age:       s.age,
		Coding:    s.coding,
		Long:      len(body) > dialect.SizeLimit && !s.short,
		Private:   s.private,
		Walled:    s.walled,
		Sum:       hexSum(body),
	}
	if v := s.validators; v != nil {
		r.ETag = v.etag
		r.LastModified = v.modified
	}
	return r
}

func (x *failure) record() *recordFailure {
	status := (*StatusError)(nil)
	proxy := ""
	if errors.As(x.err, &status) {
		proxy = status.Proxy
	}
	way := ""
	if proxy != "" && x.unanswered != nil {
		way = x.unanswered.way.Proxy
	}
	return &recordFailure{
		Proxy:    proxy,
		Way:      way,
		Walled:   x.walled,
		First:    x.first.time().UTC(),
		Last:     x.last.time().UTC(),
		Count:    x.count,
		Class:    x.class,
		Status:   x.status,
		Wait:     x.wait,
		Error:    reason(x.err),
		Answered: x.answered.get().time().UTC(),
	}
}

// reason returns the text of err, without the beginning that the decoded error will have again.
func reason(err error) string {
	if none := (*NoResponseError)(nil); errors.As(err, &none) {
		return none.Err.Error()
	}
	return err.Error()
}

// decode returns the facts of a record. It returns an error for a record that encode would not
// write.
func decode(b []byte) (facts, error) {
	head, body, _ := bytes.Cut(b, []byte("\n"))
	var r record
	if err := json.Unmarshal(head, &r); err != nil {
		return facts{}, err
	}
	if r.Version != recordVersion {
		return facts{}, fmt.Errorf("unknown record version %d", r.Version)
	}
	var f facts
	if r.Copy != nil {
		if !r.Copy.Class.definite() || r.Copy.Coding > decoded || hexSum(body) != r.Copy.Sum {
			return facts{}, errors.New("the copy does not match its checksum, or has an invalid value")
		}
		f.copy = r.Copy.copy(body)
		f.body = body
	}
	if r.Failure != nil {
		if r.Failure.Class >= classes || r.Failure.Class.definite() || r.Failure.Count < 1 {
			return facts{}, errors.New("the failure has an invalid value")
		}
		f.failure = r.Failure.failure()
	}
	return f, nil
}

func hexSum(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

func (r *recordCopy) copy(body []byte) *goodCopy {
	return &goodCopy{
		class:      r.Class,
		redirects:  r.Redirects,
		status:     r.Status,
		fetched:    instantOf(r.Fetched),
		maxAge:     r.MaxAge,
		age:        r.Age,
		coding:     r.Coding,
		short:      len(body) > dialect.SizeLimit && !r.Long,
		private:    r.Private,
		walled:     r.Walled,
		validators: newValidators(r.ETag, r.LastModified),
	}
}

func (r *recordFailure) failure() *failure {
	var err error = &NoResponseError{errors.New(r.Error)}
	noAnswer := &unanswered{} // in the way of another process, or of an earlier run
	if r.Status != 0 {
		err = &StatusError{Status: r.Status, Proxy: r.Proxy}
		if r.Proxy == "" {
			noAnswer = nil
		} else {
			noAnswer.way.Proxy = r.Way
			noAnswer.route.only = r.Way != ""
		}
	}
	answered := new(moment)
	answered.set(instantOf(r.Answered))
	return &failure{
		first:      instantOf(r.First),
		last:       instantOf(r.Last),
		wait:       r.Wait,
		err:        err,
		answered:   answered,
		status:     r.Status,
		count:      r.Count,
		class:      r.Class,
		walled:     r.Walled,
		unanswered: noAnswer,
	}
}
