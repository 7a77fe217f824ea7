package robotsotel

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/collyrobots/collyrobots/metrics/figures"
	"github.com/collyrobots/collyrobots/report"
)

const (
	// maxPages is the number of pages whose spans are open at the same time.
	maxPages = 10_000
	// patience is how long a page stays open without an event. It is over if a redirect was not
	// followed, or if a program has never read a response.
	patience = 15 * time.Minute
	// maxFiles is the number of spans of robots.txt files that other spans can be linked to.
	maxFiles = 1000
	// noticeable is the shortest wait that has a span.
	noticeable = time.Millisecond
)

// Trace creates spans for the pages of a crawl with tracer from now on. Call it before the crawl
// starts. stop ends the spans that are open; call it after Plugin.Close and before the Shutdown of
// the TracerProvider. It is safe to call stop more than once.
//
// A span collyrobots.page begins when the program requests the page, and ends with the last
// response or with the reason why there is none. It is a child of the span in the context of the
// request, which is the Context of a collector, and otherwise the root of a trace. These are its
// children:
//
//   - wait: the page waits for its turn
//   - robots.txt: a request for the file, or the wait for the request of another page, to whose span
//     it has a link
//   - tdmrep: a request for the TDMRep file
//   - request: one attempt to get the page, or a redirect of it
//
// The spans are made from events, a moment after what they describe, but have its times. So they
// are not in the context of the request, and no header is sent to a site. At most 10,000 pages are
// open at the same time. Then, and if a page has no event for 15 minutes, its spans are ended with
// the attribute collyrobots.incomplete if a response is missing. Events that come too fast are
// dropped, and their spans are missing.
//
// Trace returns an error if tracer is nil.
func Trace(tracer trace.Tracer, source report.Source) (stop func(), err error) {
	if tracer == nil {
		return nil, errors.New("robotsotel: Trace: tracer is nil")
	}
	t := newTraces(tracer)
	unlisten := figures.Listen(source, t.hear)
	return func() {
		unlisten()
		t.close()
	}, nil
}

// traces makes the spans of one plugin.
type traces struct {
	tracer trace.Tracer

	// mu protects the fields below it, and the pages.
	mu     sync.Mutex
	closed bool
	pages  map[uint64]*list.Element // by Event.Page
	recent *list.List               // of *page; the one that has had no event for the longest time is the first
	files  map[string]trace.SpanContext
}

func newTraces(tracer trace.Tracer) *traces {
	return &traces{
		tracer: tracer,
		pages:  make(map[uint64]*list.Element),
		recent: list.New(),
		files:  make(map[string]trace.SpanContext),
	}
}

// A page is a page whose span, or the span of one of its requests, is open.
type page struct {
	number   uint64
	ctx      context.Context        // of span
	span     trace.Span             // collyrobots.page
	named    bool                   // span has the attributes that do not change
	ended    bool                   // span has ended
	requests map[request]trace.Span // the spans that are open
	retried  map[string]string      // the names of spans of requests for files that are sent again, by URL
	fetched  bool                   // it has requested a file since its last attempt
	last     time.Time              // when the last span of the page has ended
	heard    time.Time              // of the last event
}

// A request identifies an open request of a page, which has at most one for each kind and URL.
type request struct {
	kind report.RequestKind
	url  string
}

// hear is the plugin's listener.
func (t *traces) hear(e *report.Event) {
	if e.Page == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	switch e.Kind {
	case report.EventStarted:
		t.started(t.open(e), e)
	case report.EventAnswered:
		t.answered(t.known(e), e)
	case report.EventDenied, report.EventUnsent:
		t.unsent(t.open(e), e)
	}
	t.trim(e.Time)
}

// known returns the page of e, or nil if it is not open.
func (t *traces) known(e *report.Event) *page {
	element := t.pages[e.Page]
	if element == nil {
		return nil
	}
	t.recent.MoveToBack(element)
	p := element.Value.(*page)
	p.heard = e.Time
	return p
}

// open returns the page of e. If it is not open, open starts its span.
func (t *traces) open(e *report.Event) *page {
	p := t.known(e)
	if p != nil {
		return p
	}
	ctx := e.Context
	if ctx == nil {
		ctx = context.Background()
	}
	began := e.Time.Add(-e.Connect - e.Waited)
	p = &page{number: e.Page, requests: make(map[request]trace.Span), last: began, heard: e.Time}
	p.ctx, p.span = t.tracer.Start(ctx, "collyrobots.page", trace.WithTimestamp(began))
	t.pages[e.Page] = t.recent.PushBack(p)
	return p
}

// started starts the span of a request that was sent.
func (t *traces) started(p *page, e *report.Event) {
	name := p.nameOf(e)
	if name == "request" {
		p.describe(e)
		t.sharedFile(p, e)
	}
	span := t.request(p, name, e)
	p.requests[request{e.RequestKind, e.URL}] = span
	if name == "robots.txt" {
		t.remember(e.URL, span)
	}
}

// request adds a span for the wait before a request, and starts the span of the request.
func (t *traces) request(p *page, name string, e *report.Event) trace.Span {
	p.fetched = name != "request"
	ready := e.Time.Add(-e.Connect)
	t.wait(p, e, ready)
	return t.child(p, name, ready, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("url.full", e.URL),
		attribute.String("collyrobots.host", e.Host),
		attribute.String("collyrobots.request_kind", string(e.RequestKind)),
	))
}

// nameOf returns the name of the span of a request.
func (p *page) nameOf(e *report.Event) string {
	switch e.RequestKind {
	case report.RequestRobots:
		return "robots.txt"
	case report.RequestTDM:
		return "tdmrep"
	case report.RequestRetry:
		return cmp.Or(p.retried[e.URL], "request")
	}
	return "request"
}

// describe adds the attributes of the page to its span.
func (p *page) describe(e *report.Event) {
	if !p.named { // a redirect may lead to another host
		p.named = true
		p.span.SetAttributes(attribute.String("url.full", e.URL), attribute.String("collyrobots.host", e.Host))
	}
	switch {
	case e.Decision != nil:
		p.span.SetAttributes(attribute.String("collyrobots.reason", string(e.Decision.Reason)))
	case e.Kind == report.EventDenied:
		p.span.SetAttributes(attribute.String("collyrobots.reason", figures.Other))
	}
}

// sharedFile adds a span for the time in which p has waited for a file that another page has
// requested, with a link to that request.
func (t *traces) sharedFile(p *page, e *report.Event) {
	if e.RobotsWait < noticeable || p.fetched {
		return
	}
	options := []trace.SpanStartOption{trace.WithAttributes(
		attribute.String("collyrobots.host", e.Host),
		attribute.Bool("collyrobots.shared", true),
	)}
	if e.Decision != nil {
		if file, ok := t.files[e.Decision.RobotsURL]; ok {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: file}))
		}
	}
	end := p.last.Add(e.RobotsWait)
	t.child(p, "robots.txt", p.last, options...).End(trace.WithTimestamp(end))
	p.last = end
}

// wait adds a span for the time in which p has waited for its turn until end, if that is
// noticeable.
func (t *traces) wait(p *page, e *report.Event, end time.Time) {
	if len(p.requests) > 0 || end.Sub(p.last) < noticeable {
		return
	}
	attributes := []attribute.KeyValue{attribute.String("collyrobots.host", e.Host)}
	if e.Group != "" {
		attributes = append(attributes, attribute.String("collyrobots.group", e.Group))
	}
	if e.Delay > 0 {
		attributes = append(attributes,
			attribute.Float64("collyrobots.delay", e.Delay.Seconds()),
			attribute.String("collyrobots.source", string(e.Source)))
	}
	if e.Line > 0 {
		attributes = append(attributes, attribute.Int("collyrobots.line", e.Line))
	}
	t.child(p, "wait", p.last, trace.WithAttributes(attributes...)).End(trace.WithTimestamp(end))
	p.last = end
}

// remember keeps the span of a request for a robots.txt, for the links of other pages.
func (t *traces) remember(url string, span trace.Span) {
	if len(t.files) >= maxFiles {
		clear(t.files)
	}
	t.files[url] = span.SpanContext()
}

// child starts a span of p.
func (t *traces) child(p *page, name string, start time.Time, options ...trace.SpanStartOption) trace.Span {
	_, span := t.tracer.Start(p.ctx, name, append(options, trace.WithTimestamp(start))...)
	return span
}

// answered ends the span of a request, and that of its page if the page does not go on. p may be
// nil.
func (t *traces) answered(p *page, e *report.Event) {
	if p == nil {
		return
	}
	key := request{e.RequestKind, e.URL}
	span := p.requests[key]
	if span == nil {
		return // the event of the start was dropped
	}
	delete(p.requests, key)
	if e.Status != 0 {
		span.SetAttributes(
			attribute.Int("http.response.status_code", e.Status),
			attribute.Int64("http.response.body.size", e.Bytes))
	}
	setStatus(span, e)
	span.End(trace.WithTimestamp(e.Time))
	p.last = e.Time
	name := p.nameOf(e)
	switch {
	case name != "request":
		p.answeredFile(name, e)
		t.removeEnded(p)
	case !e.More:
		t.end(p, e)
	}
}

// answeredFile records the end of a request for a file, which may be sent again.
func (p *page) answeredFile(name string, e *report.Event) {
	if !e.More {
		return
	}
	if p.retried == nil {
		p.retried = make(map[string]string)
	}
	p.retried[e.URL] = name
}

// unsent adds the spans of a request that was not sent. If it is not a request for a file, it ends
// the span of its page, unless the page goes on because of a dry run.
func (t *traces) unsent(p *page, e *report.Event) {
	name := p.nameOf(e)
	if name == "request" {
		p.describe(e)
		t.sharedFile(p, e)
	}
	if e.Connect > 0 || name != "request" { // it has reached the transport
		span := t.request(p, name, e)
		setStatus(span, e)
		span.End(trace.WithTimestamp(e.Time))
	} else {
		t.wait(p, e, e.Time)
	}
	p.last = e.Time
	if name != "request" {
		return
	}
	if e.Kind == report.EventDenied {
		p.span.SetAttributes(attribute.Bool("collyrobots.denied", true), attribute.String("collyrobots.decision", decisionOf(e)))
	}
	if !e.More {
		t.end(p, e)
	}
}

// decisionOf returns the reason of a denial as text.
func decisionOf(e *report.Event) string {
	if e.Decision != nil {
		return e.Decision.String()
	}
	return textOf(e.Err)
}

// end ends the span of p, whose last event is e.
func (t *traces) end(p *page, e *report.Event) {
	if p.ended {
		return
	}
	setStatus(p.span, e)
	p.span.End(trace.WithTimestamp(e.Time))
	p.ended = true
	t.removeEnded(p)
}

// setStatus sets the status of a span that ends with e. A denial is not an error.
func setStatus(span trace.Span, e *report.Event) {
	switch {
	case e.Kind == report.EventDenied:
	case e.Err != nil:
		span.SetStatus(codes.Error, textOf(e.Err))
	case e.Status >= 400:
		span.SetStatus(codes.Error, "")
	}
}

// textOf returns the text of an error as OpenTelemetry can send it.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return strings.ToValidUTF8(err.Error(), "\ufffd")
}

// removeEnded removes p if it has no open span.
func (t *traces) removeEnded(p *page) {
	if p.ended && len(p.requests) == 0 {
		t.remove(p)
	}
}

func (t *traces) remove(p *page) {
	t.recent.Remove(t.pages[p.number])
	delete(t.pages, p.number)
}

// trim gives pages up that have had no event for a long time, and the oldest ones if there are too
// many.
func (t *traces) trim(now time.Time) {
	for front := t.recent.Front(); front != nil; front = t.recent.Front() {
		p := front.Value.(*page)
		if len(t.pages) <= maxPages && now.Sub(p.heard) < patience {
			return
		}
		t.giveUp(p)
	}
}

// giveUp ends the spans of p.
func (t *traces) giveUp(p *page) {
	if len(p.requests) > 0 {
		p.span.SetAttributes(attribute.Bool("collyrobots.incomplete", true))
	}
	for _, span := range p.requests {
		span.SetAttributes(attribute.Bool("collyrobots.incomplete", true))
		span.End(trace.WithTimestamp(p.heard))
	}
	if !p.ended {
		p.span.End(trace.WithTimestamp(p.heard))
	}
	t.remove(p)
}

// close ends all spans.
func (t *traces) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for front := t.recent.Front(); front != nil; front = t.recent.Front() {
		t.giveUp(front.Value.(*page))
	}
}
