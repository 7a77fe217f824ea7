package main

import (
	"bytes"
	"encoding/json"
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
	response := newRecord(gowarc.Response)
	response.AddWarcHeader(gowarc.ContentType, "application/http; msgtype=response")
	if isCut {
		response.AddWarcHeader(gowarc.WarcTruncated, "length")
	}
	request := newRecord(gowarc.Request)
	request.AddWarcHeader(gowarc.ContentType, "application/http; msgtype=request")
	id, err := a.write(url, at, response, append(head, body...), request, sent)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.responses[url] = id
	return err
}

// newRecord returns the builder of a record, which computes the digests.
func newRecord(kind gowarc.RecordType) gowarc.WarcRecordBuilder {
	return gowarc.NewRecordBuilder(kind, gowarc.WithAddMissingDigest(true), gowarc.WithDefaultDigestAlgorithm("sha256"), gowarc.WithDefaultDigestEncoding(gowarc.Base16))
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
	b := newRecord(gowarc.Metadata)
	b.AddWarcHeader(gowarc.ContentType, "application/json")
	if response != "" {
		b.AddWarcHeader(gowarc.WarcRefersTo, response)
	}
	_, err = a.write(d.URL, time.Now().UTC(), b, text, nil, nil)
	return err
}

// write writes a record and, unless it is nil, a second one with the same URL and time. It returns the ID
// of the first one.
func (a *archive) write(url string, at time.Time, first gowarc.WarcRecordBuilder, content []byte, second gowarc.WarcRecordBuilder, more []byte) (id string, err error) {
	record, err := built(url, at, first, content)
	if err != nil {
		return "", err
	}
	defer record.Close()
	records := []gowarc.WarcRecord{record}
	if second != nil {
		other, err := built(url, at, second, more)
		if err != nil {
			return "", err
		}
		defer other.Close()
		records = append(records, other)
	}
	for _, written := range a.file.Write(records...) {
		if written.Err != nil {
			return "", written.Err
		}
	}
	return record.WarcHeader().Get(gowarc.WarcRecordID), nil
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
