package audit_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"
)

// This file reads WARC 1.1 as strictly as ISO 28500:2017 describes it. It shares no code with
// package audit.

// A warcRecord is one record of a WARC file.
type warcRecord struct {
	fields map[string]string
	names  []string // of the fields, in order
	block  []byte
}

func (r warcRecord) kind() string { return r.fields["WARC-Type"] }

var (
	warcName   = regexp.MustCompile(`^[A-Za-z][A-Za-z-]*$`)
	warcID     = regexp.MustCompile(`^<urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}>$`)
	warcTime   = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$`)
	warcDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	warcLength = regexp.MustCompile(`^(0|[1-9]\d*)$`)
	warcTarget = regexp.MustCompile(`^(ni:///sha-256;[A-Za-z0-9_-]{43}|` + uriPattern + `)$`)
)

// uriPattern is the grammar of RFC 3986, appendix A, for URIs with an authority.
const (
	plainBytes = `[A-Za-z0-9\-._~!$&'()*+,;=]`
	escape     = `%[0-9A-Fa-f]{2}`
	uriPattern = `[A-Za-z][A-Za-z0-9+.-]*://` +
		`((` + plainBytes + `|:|` + escape + `)*@)?` +
		`(\[[0-9A-Fa-f:.]+(%25(` + plainBytes + `|` + escape + `)+)?\]|(` + plainBytes + `|` + escape + `)+)` +
		`(:\d*)?` +
		`(/(` + plainBytes + `|[:@/]|` + escape + `)*)?` +
		`(\?(` + plainBytes + `|[:@/?]|` + escape + `)*)?` +
		`(#(` + plainBytes + `|[:@/?]|` + escape + `)*)?`
)

// warcFields has the fields that records of each type must have, and those that they may have.
var warcFields = map[string]struct{ must, may string }{
	"warcinfo": {"Content-Type", ""},
	"resource": {"Content-Type WARC-Target-URI WARC-Payload-Digest", "WARC-Truncated"},
	"revisit":  {"WARC-Target-URI WARC-Payload-Digest WARC-Profile WARC-Refers-To WARC-Refers-To-Date", "WARC-Refers-To-Target-URI"},
	"metadata": {"Content-Type", "WARC-Target-URI WARC-Refers-To"},
}

// readWARC reads all records of a WARC file. It returns an error if they are not as the standard
// demands.
func readWARC(file []byte) (records []warcRecord, err error) {
	known := make(map[string]warcRecord)
	for len(file) > 0 {
		r, rest, err := cutWARC(file)
		if err == nil {
			err = r.check(known)
		}
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", len(records), err)
		}
		if len(records) == 0 && r.kind() != "warcinfo" {
			return nil, errors.New("the first record is no warcinfo")
		}
		known[r.fields["WARC-Record-ID"]] = r
		records = append(records, r)
		file = rest
	}
	return records, nil
}

// cutWARC reads the first record of a file.
func cutWARC(file []byte) (r warcRecord, rest []byte, err error) {
	header, rest, ok := bytes.Cut(file, []byte("\r\n\r\n"))
	lines := strings.Split(string(header), "\r\n")
	if !ok || lines[0] != "WARC/1.1" {
		return r, nil, fmt.Errorf("it begins with %.40q", header)
	}
	r.fields = make(map[string]string)
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ": ")
		if !ok || !warcName.MatchString(name) || value == "" || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return r, nil, fmt.Errorf("the line %q is malformed", line)
		}
		if r.fields[name] != "" {
			return r, nil, fmt.Errorf("the field %s is repeated", name)
		}
		r.fields[name] = value
		r.names = append(r.names, name)
	}
	if !warcLength.MatchString(r.fields["Content-Length"]) {
		return r, nil, fmt.Errorf("Content-Length is %q", r.fields["Content-Length"])
	}
	size, err := strconv.Atoi(r.fields["Content-Length"])
	if err != nil || size+4 > len(rest) || string(rest[size:size+4]) != "\r\n\r\n" {
		return r, nil, fmt.Errorf("the block does not end after %d bytes: %v", size, err)
	}
	r.block = rest[:size]
	return r, rest[size+4:], nil
}

// check checks the fields of a record. known has the records before it by their identifiers.
func (r warcRecord) check(known map[string]warcRecord) error {
	fields, ok := warcFields[r.kind()]
	if !ok {
		return fmt.Errorf("the type %q is unknown", r.kind())
	}
	must := append(strings.Fields(fields.must), "WARC-Type", "WARC-Record-ID", "WARC-Date", "WARC-Block-Digest", "Content-Length")
	if r.kind() == "revisit" && len(r.block) > 0 {
		return errors.New("a revisit has a block")
	}
	for _, name := range must {
		if r.fields[name] == "" {
			return fmt.Errorf("a %s has no %s", r.kind(), name)
		}
	}
	for _, name := range r.names {
		if !slices.Contains(append(must, strings.Fields(fields.may)...), name) {
			return fmt.Errorf("a %s has a %s", r.kind(), name)
		}
	}
	for name, want := range map[string]*regexp.Regexp{
		"WARC-Record-ID": warcID, "WARC-Refers-To": warcID, "WARC-Date": warcTime, "WARC-Refers-To-Date": warcTime,
		"WARC-Target-URI": warcTarget, "WARC-Refers-To-Target-URI": warcTarget, "WARC-Block-Digest": warcDigest, "WARC-Payload-Digest": warcDigest,
	} {
		if value := r.fields[name]; value != "" && !want.MatchString(value) {
			return fmt.Errorf("%s is %q", name, value)
		}
	}
	if _, twice := known[r.fields["WARC-Record-ID"]]; twice {
		return fmt.Errorf("two records have the identifier %s", r.fields["WARC-Record-ID"])
	}
	sum := sha256.Sum256(r.block)
	if r.fields["WARC-Block-Digest"] != "sha256:"+hex.EncodeToString(sum[:]) {
		return errors.New("the block does not have its digest")
	}
	if r.kind() == "resource" && r.fields["WARC-Payload-Digest"] != r.fields["WARC-Block-Digest"] {
		return errors.New("the payload does not have its digest")
	}
	return r.checkReference(known)
}

// checkReference checks the record that a record refers to.
func (r warcRecord) checkReference(known map[string]warcRecord) error {
	id := r.fields["WARC-Refers-To"]
	if id == "" {
		return nil
	}
	other, ok := known[id]
	if !ok {
		return fmt.Errorf("no record before it has the identifier %s", id)
	}
	if r.kind() == "metadata" {
		return nil
	}
	if other.kind() != "resource" || other.fields["WARC-Payload-Digest"] != r.fields["WARC-Payload-Digest"] ||
		other.fields["WARC-Date"] != r.fields["WARC-Refers-To-Date"] ||
		r.fields["WARC-Refers-To-Target-URI"] != "" && other.fields["WARC-Target-URI"] != r.fields["WARC-Refers-To-Target-URI"] {
		return fmt.Errorf("it does not repeat %v", other.fields)
	}
	return nil
}

// warcEntries returns the entries in the records of one log. It checks the order of their indexes.
func warcEntries(records []warcRecord) (entries [][]byte, err error) {
	last := -1
	for _, r := range records {
		if r.kind() != "metadata" {
			continue
		}
		first, rest, _ := strings.Cut(string(r.block), "\r\n")
		entry, ok := strings.CutPrefix(rest, "entry: ")
		index, err := strconv.Atoi(strings.TrimPrefix(first, "index: "))
		if err != nil || !ok || !strings.HasSuffix(entry, "}\r\n") || index <= last {
			return nil, fmt.Errorf("the block is %q, and the last index %d", r.block, last)
		}
		last = index
		entries = append(entries, []byte(strings.TrimSuffix(entry, "\r\n")))
	}
	return entries, nil
}

// provesWARC reports whether the entries in the records of one log have the root of the checkpoint in
// its warcinfo.
func provesWARC(records []warcRecord) bool {
	encoded := warcInfoField(records[0], "checkpoint")
	checkpoint, err := base64.StdEncoding.DecodeString(encoded)
	lines := strings.Split(string(checkpoint), "\n")
	entries, also := warcEntries(records)
	if err != nil || also != nil || len(lines) < 4 {
		return false
	}
	size, err := strconv.Atoi(lines[1])
	if err != nil || size > len(entries) {
		return false
	}
	hashes := make([]tlog.Hash, size)
	for i := range hashes {
		hashes[i] = tlog.RecordHash(entries[i])
	}
	return treeRoot(hashes).String() == lines[2]
}

// treeRoot returns the root of a Merkle tree (RFC 6962, section 2.1).
func treeRoot(hashes []tlog.Hash) tlog.Hash {
	if len(hashes) == 1 {
		return hashes[0]
	}
	half := 1
	for half*2 < len(hashes) {
		half *= 2
	}
	return tlog.NodeHash(treeRoot(hashes[:half]), treeRoot(hashes[half:]))
}

// warcInfoField returns a field of the block of a warcinfo record, or "".
func warcInfoField(info warcRecord, name string) string {
	for line := range strings.SplitSeq(string(info.block), "\r\n") {
		if value, ok := strings.CutPrefix(line, name+": "); ok {
			return value
		}
	}
	return ""
}
