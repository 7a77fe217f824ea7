package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/nlnwa/gowarc/v3"

	"github.com/collyrobots/collyrobots/report"
)

// maxBody is how many bytes of a body are kept.
const maxBody = 16 << 20

// An archive is an http.RoundTripper that writes WARC records of what it sends and gets.
type archive struct {
	next http.RoundTripper
	file *gowarc.WarcFileWriter

	mu        sync.Mutex
	responses map[string]string // the ID of the last response record of each URL
	err       error             // the first error of a record
}

// newArchive returns an archive that writes to dir and sends requests with next.
func newArchive(dir string, next http.RoundTripper) *archive {
	names := &gowarc.PatternNameGenerator{Directory: dir, Prefix: "collyrobots-"}
	info := func(b gowarc.WarcRecordBuilder) error {
		_, err := fmt.Fprintf(b, "software: collyrobots examples/more/archive\r\nformat: WARC File Format 1.1\r\nhttp-header-user-agent: %s\r\nrobots: obey\r\n", agent)
		return err
	}
	return &archive{
		next: next,
		file: gowarc.NewWarcFileWriter(gowarc.WithFileNameGenerator(names), gowarc.WithCompression(true), gowarc.WithMaxConcurrentWriters(1),
			gowarc.WithAddWarcConcurrentToHeader(true), gowarc.WithWarcInfoFunc(info)),
		responses: make(map[string]string),
	}
}

// RoundTrip implements http.RoundTripper. It reads the body of the response before it returns.
func (a *archive) RoundTrip(req *http.Request) (*http.Response, error) {
	var sent bytes.Buffer
	copied := req.Clone(req.Context())
	err := copied.Write(&sent)
	if err != nil {
		return nil, err
	}
	began := time.Now().UTC()
	resp, err := a.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	isCut := len(body) > maxBody
	body = body[:min(len(body), maxBody)]
	resp.Body = io.NopCloser(bytes.NewReader(body))
	a.keep(a.writeExchange(req.URL.String(), began, sent.Bytes(), headOf(resp), body, isCut))
	return resp, nil
}

// headOf returns the status line and the header of a response. net/http has removed the chunks of a body.
func headOf(resp *http.Response) []byte {
	var head bytes.Buffer
	fmt.Fprintf(&head, "HTTP/1.1 %s\r\n", resp.Status)
	resp.Header.Write(&head)
	head.WriteString("\r\n")
	return head.Bytes()
}

// writeExchange writes the records of a request and its response.
func (a *archive) writeExchange(url string, at time.Time, sent, head, body []byte, isCut bool) error {
	b := newRecord(gowarc.Response, "application/http; msgtype=response")
	if isCut {
		b.AddWarcHeader(gowarc.WarcTruncated, "length")
	}
	response, err := built(url, at, b, append(head, body...))
	if err != nil {
		return err
	}
	request, err := built(url, at, newRecord(gowarc.Request, "application/http; msgtype=request"), sent)
	if err != nil {
		return errors.Join(err, response.Close())
	}
	a.mu.Lock()
	a.responses[url] = response.WarcHeader().Get(gowarc.WarcRecordID)
	a.mu.Unlock()
	return a.write(response, request)
}

// newRecord returns the builder of a record, which computes the digests.
func newRecord(kind gowarc.RecordType, contentType string) gowarc.WarcRecordBuilder {
	b := gowarc.NewRecordBuilder(kind, gowarc.WithAddMissingDigest(true), gowarc.WithDefaultDigestAlgorithm("sha256"), gowarc.WithDefaultDigestEncoding(gowarc.Base16))
	b.AddWarcHeader(gowarc.ContentType, contentType)
	return b
}

// A describedDecision is the content of a metadata record.
type describedDecision struct {
	Decision report.Decision `json:"decision"`
	Robots   string          `json:"robots_record,omitempty"` // the ID of the record with the robots.txt
}

// writeDecision writes a metadata record with the decision about a page. It refers to the response, if
// there is one.
func (a *archive) writeDecision(d report.Decision) error {
	a.mu.Lock()
	response := a.responses[d.URL]
	content := describedDecision{Decision: d, Robots: a.responses[d.RobotsURL]}
	a.mu.Unlock()
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	b := newRecord(gowarc.Metadata, "application/json")
	if response != "" {
		b.AddWarcHeader(gowarc.WarcRefersTo, response)
	}
	record, err := built(d.URL, time.Now().UTC(), b, text)
	if err != nil {
		return err
	}
	return a.write(record)
}

// write writes records that belong together, and closes them.
func (a *archive) write(records ...gowarc.WarcRecord) error {
	var faults []error
	for _, written := range a.file.Write(records...) {
		faults = append(faults, written.Err)
	}
	for _, record := range records {
		faults = append(faults, record.Close())
	}
	return errors.Join(faults...)
}

// built returns the record of a builder.
func built(url string, at time.Time, b gowarc.WarcRecordBuilder, content []byte) (gowarc.WarcRecord, error) {
	b.AddWarcHeader(gowarc.WarcTargetURI, url)
	b.AddWarcHeaderTime(gowarc.WarcDate, at)
	_, err := b.Write(content)
	if err != nil {
		return nil, err
	}
	record, _, err := b.Build()
	return record, err
}

// keep keeps the first error of a record.
func (a *archive) keep(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.err = err
	}
}

// fault returns the first error of a record, or nil.
func (a *archive) fault() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// close completes the last file.
func (a *archive) close() error { return a.file.Close() }
