package serve

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/input"
	"github.com/collyrobots/collyrobots/robotstags"
	"github.com/collyrobots/collyrobots/usage"
)

// turns has the turns that crawlers have got and not answered.
type turns struct {
	expire time.Duration
	places chan struct{} // has an element for each open turn, and for each request that waits for one

	// mu protects open.
	mu   sync.Mutex
	open map[string]openTurn
}

// An openTurn is a turn with the timer that ends it.
type openTurn struct {
	*collyrobots.Turn
	timer *time.Timer
}

func newTurns(limit int, expire time.Duration) *turns {
	return &turns{expire: expire, places: make(chan struct{}, limit), open: make(map[string]openTurn)}
}

// enter takes a place for a request that waits for a turn. It returns false if there is none.
func (t *turns) enter() bool {
	select {
	case t.places <- struct{}{}:
		return true
	default:
		return false
	}
}

// leave gives a place back.
func (t *turns) leave() { <-t.places }

// errExpired is the error of a turn that was not answered.
var errExpired = errors.New("the crawler has not answered the turn")

// add keeps a turn, which has a place, until it is answered or expires. It returns the ID of the
// turn.
func (t *turns) add(turn *collyrobots.Turn) (id string) {
	id = rand.Text()
	t.mu.Lock()
	defer t.mu.Unlock()
	timer := time.AfterFunc(t.expire, func() { t.end(id, func(turn *collyrobots.Turn) { turn.Failed(errExpired) }) })
	t.open[id] = openTurn{Turn: turn, timer: timer}
	return id
}

// end removes an open turn, calls answer with it, and gives its place back. It returns false if no
// open turn has the ID.
func (t *turns) end(id string, answer func(*collyrobots.Turn)) bool {
	t.mu.Lock()
	turn, ok := t.open[id]
	delete(t.open, id)
	t.mu.Unlock()
	if !ok {
		return false
	}
	turn.timer.Stop()
	answer(turn.Turn)
	t.leave()
	return true
}

// drain waits until no turn is open and no request waits for one, or until the time has passed. It
// keeps all places, so that no request can wait for a turn afterwards.
func (t *turns) drain(most time.Duration) {
	timeout := time.After(most)
	for range cap(t.places) {
		select {
		case t.places <- struct{}{}:
		case <-timeout:
			return
		}
	}
}

// A turnRequest is the body of a request for a turn.
type turnRequest struct {
	URL     string   `json:"url"`
	Agent   string   `json:"agent"`
	Purpose values   `json:"purpose"` // what the page is for; nil if that is not known
	Wait    *float64 `json:"wait"`    // the longest wait in seconds; nil if there is no limit
}

// maxWait is the longest wait that a request may ask for, in seconds.
const maxWait = 7 * 24 * 3600

// request returns the request of the crawler, as Plugin.Acquire needs it. Its context has the purpose.
func (q *turnRequest) request(ctx context.Context) (*http.Request, error) {
	purpose, err := purposeOf(q.Purpose)
	err = errors.Join(checkURL("url", q.URL), checkAgent(q.Agent), err)
	if err != nil {
		return nil, err
	}
	if q.Wait != nil && !(*q.Wait > 0 && *q.Wait <= maxWait) {
		return nil, fmt.Errorf("wait is %v; it must be a number of seconds above 0 and at most %d", *q.Wait, maxWait)
	}
	u, err := input.WebURL(q.URL)
	if err != nil {
		return nil, err
	}
	ctx = collyrobots.WithPurpose(ctx, purpose)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", q.Agent)
	return req, nil
}

// purposeOf returns the purpose that a request names.
func purposeOf(names []string) (usage.Purpose, error) {
	purpose, err := input.Purpose(strings.Join(names, ","))
	if err != nil {
		return 0, fmt.Errorf("purpose %w", err)
	}
	return purpose, nil
}

// checkURL returns an error if the value of a field is not the URL of a web page.
func checkURL(field, text string) error {
	if text == "" {
		return fmt.Errorf("%s is missing", field)
	}
	_, err := input.WebURL(text)
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

// checkAgent returns an error if a text cannot be a User-Agent header.
func checkAgent(text string) error {
	switch {
	case text == "":
		return errors.New("agent is missing: it is the User-Agent header of the crawler")
	case len(text) > 1000:
		return errors.New("agent has more than 1000 bytes")
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return errors.New("agent has a control character")
	}
	return nil
}

// A grant is the body of the response to a request for a turn.
type grant struct {
	Turn     string               `json:"turn"`
	Expires  time.Time            `json:"expires"`
	Decision collyrobots.Decision `json:"decision"`
}

// The causes of the end of a wait.
var (
	errWaited  = errors.New("the turn did not come within the time of wait")
	errStopped = errors.New("the service is stopping")
)

// takeTurn serves POST /v1/turns.
func (s *service) takeTurn(w http.ResponseWriter, r *http.Request) {
	q := new(turnRequest)
	if fault := read(w, r, q); fault != nil {
		fail(w, fault.status, fault.text)
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.running, func() { cancel(errStopped) })()
	req, err := q.request(ctx)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	if q.Wait != nil {
		timer := time.AfterFunc(time.Duration(*q.Wait*float64(time.Second)), func() { cancel(errWaited) })
		defer timer.Stop()
	}
	if s.running.Err() != nil {
		s.refuse(w, q, errStopped)
		return
	}
	if !s.turns.enter() {
		retryAfter(w, time.Second)
		fail(w, http.StatusTooManyRequests, fmt.Sprintf("%d turns are open or waited for; -max-turns sets the limit", cap(s.turns.places)))
		return
	}
	turn, err := s.robots.Acquire(req.Context(), req)
	if err == nil && r.Context().Err() != nil { // the client has gone away
		turn.Failed(collyrobots.ErrNotSent)
		err = r.Context().Err()
	}
	if err != nil {
		s.turns.leave()
		s.refuse(w, q, err)
		return
	}
	expires := time.Now().Add(s.turns.expire)
	respond(w, http.StatusCreated, grant{Turn: s.turns.add(turn), Expires: expires, Decision: turn.Decision()})
}

// refuse responds to a request for a turn that was not granted because of err.
func (s *service) refuse(w http.ResponseWriter, q *turnRequest, err error) {
	var denied *collyrobots.DeniedError
	var private *collyrobots.PrivateNetworkError
	switch {
	case errors.As(err, &denied):
		respond(w, http.StatusForbidden, problem{Error: plain(err), Decision: &denied.Decision})
		return
	case errors.As(err, &private):
		fail(w, http.StatusForbidden, plain(err)+"; -allow-private allows it")
		return
	case errors.Is(err, errWaited):
		err = s.whyLate(err)
		retryAfter(w, s.waitFor(q))
	default:
		retryAfter(w, 5*time.Second)
	}
	fail(w, http.StatusServiceUnavailable, plain(err))
}

// plain returns the text of an error without the prefix of the library.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "collyrobots: ") }

// whyLate returns the error of a turn that did not come in time. It names Redis if that is the reason.
func (s *service) whyLate(err error) error {
	if s.ping == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	away := s.ping(ctx)
	if away == nil {
		return err
	}
	return fmt.Errorf("%w, because Redis does not answer: %w", err, away)
}

// waitFor returns how long the host of a request lets the next one wait, as far as that is known. It
// does not wait for a robots.txt that is not known.
func (s *service) waitFor(q *turnRequest) time.Duration {
	ctx, cancel := context.WithTimeout(collyrobots.WithUserAgent(context.Background(), q.Agent), 100*time.Millisecond)
	defer cancel()
	d, err := s.robots.Check(ctx, q.URL)
	if err != nil {
		return 0
	}
	return max(d.Delay, time.Until(d.NotBefore), time.Until(d.Opens))
}

// An answer is the body of a request that answers a turn.
type answer struct {
	Status  int               `json:"status"`
	Headers map[string]values `json:"headers"`
	Error   string            `json:"error"`
}

// values are the values of a header, or several names. In JSON, a single one may be a string.
type values []string

// UnmarshalJSON implements json.Unmarshaler.
func (v *values) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*v = values{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(v))
}

// The values of the field error that have a meaning. See Turn.Failed.
const (
	notSent = "not_sent" // the request was not sent
	reset   = "reset"    // the site has reset the connection
)

// fault returns the first fault of an answer, or nil. Some sites answer with a status that HTTP does
// not define, such as 999.
func (a *answer) fault() *fault {
	text := ""
	switch {
	case a.Status == 0 && a.Error == "":
		text = "status is missing: send the status of the response, or error if there was none"
	case a.Status != 0 && (a.Status < 100 || a.Status > 999):
		text = fmt.Sprintf("status is %d; it must have three digits", a.Status)
	case len(a.Error) > 1000:
		text = "error has more than 1000 bytes"
	default:
		return nil
	}
	return &fault{status: http.StatusBadRequest, text: text}
}

// header returns the headers of the response.
func (a *answer) header() http.Header {
	header := make(http.Header)
	for name, values := range a.Headers {
		for _, value := range values {
			header.Add(name, value)
		}
	}
	return header
}

// A said is what a site says about a page that was fetched.
type said struct {
	RobotsTags robotstags.Tags `json:"robots_tags,omitempty"` // the rules in the headers
	Usage      usage.Terms     `json:"usage"`                 // of the files of the site and of the headers
}

// give passes an answer on to its turn. It returns what the site says about the page if the answer has
// headers, and otherwise nil.
func (a *answer) give(turn *collyrobots.Turn) (page *said) {
	if a.Status != 0 {
		header := a.header()
		turn.Answered(a.Status, header)
		if len(header) > 0 {
			page = &said{RobotsTags: robotstags.FromHeader(header, turn.Decision().Token), Usage: turn.Usage()}
		}
	}
	a.end(turn)
	return page
}

// end ends a turn.
func (a *answer) end(turn *collyrobots.Turn) {
	switch a.Error {
	case "":
		turn.End()
	case notSent:
		turn.Failed(collyrobots.ErrNotSent)
	case reset:
		turn.Failed(syscall.ECONNRESET)
	default:
		turn.Failed(errors.New(a.Error))
	}
}

// answerTurn serves POST /v1/turns/{id}. An answer with a fault also ends the turn, because the
// crawler has sent its request.
func (s *service) answerTurn(w http.ResponseWriter, r *http.Request) {
	a := new(answer)
	fault := read(w, r, a)
	if fault == nil {
		fault = a.fault()
	}
	if fault != nil {
		s.turns.end(r.PathValue("id"), func(turn *collyrobots.Turn) { turn.Failed(fault) })
		fail(w, fault.status, fault.text)
		return
	}
	var page *said
	if !s.turns.end(r.PathValue("id"), func(turn *collyrobots.Turn) { page = a.give(turn) }) {
		fail(w, http.StatusNotFound, "no open turn has this ID: it was answered before, it has expired, or the service was started again")
		return
	}
	if page != nil {
		respond(w, http.StatusOK, page)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
