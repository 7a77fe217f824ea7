package batch

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
)

// warcStart is how each record of a WARC file begins (ISO 28500:2017, section 4).
const warcStart = "WARC/"

// A warcSource reads the responses in a WARC file. Records of other types are skipped and do not
// count.
type warcSource struct {
	in     *bufio.Reader
	number int64
}

func (s *warcSource) next() ([]item, error) {
	var items []item
	for size := 0; size < chunkSize; {
		header, err := s.header()
		if err != nil {
			return items, err
		}
		length, err := strconv.ParseInt(header.Get("Content-Length"), 10, 64)
		if err != nil || length < 0 {
			return items, fmt.Errorf("WARC record with the Content-Length %q", header.Get("Content-Length"))
		}
		if !strings.EqualFold(header.Get("WARC-Type"), "response") {
			if err := s.skip(length); err != nil {
				return items, err
			}
			continue
		}
		i, err := s.response(header, length)
		if err != nil {
			return items, err
		}
		size += len(i.data) + 1
		items = append(items, i)
	}
	return items, nil
}

// response reads a response of the given length. If it is longer than maxRecord, response skips it
// and sets the fault of the item.
func (s *warcSource) response(header textproto.MIMEHeader, length int64) (i item, err error) {
	s.number++
	i.number = s.number
	i.target = strings.Trim(header.Get("WARC-Target-URI"), "<>")
	if length > maxRecord {
		i.fault = fmt.Sprintf("the record is longer than %d bytes", maxRecord)
		return i, s.skip(length)
	}
	i.data, err = s.block(length)
	return i, err
}

// header reads the header of a record. It skips the empty lines between records. At the end of the
// file, it returns io.EOF.
func (s *warcSource) header() (textproto.MIMEHeader, error) {
	var version []byte
	for len(version) == 0 {
		line, err := s.in.ReadSlice('\n')
		if err != nil && (err != io.EOF || len(bytes.TrimSpace(line)) > 0) {
			return nil, fmt.Errorf("WARC record: %w", unexpected(err))
		}
		if err != nil {
			return nil, io.EOF
		}
		version = bytes.TrimSpace(line)
	}
	if !bytes.HasPrefix(version, []byte(warcStart)) {
		return nil, fmt.Errorf("WARC record begins with %.40q, want %s", version, warcStart)
	}
	header, err := readHeader(s.in)
	if err != nil {
		return nil, fmt.Errorf("header of a WARC record: %w", unexpected(err))
	}
	return header, nil
}

// maxHeader is the maximum size of the header of a WARC record in bytes.
const maxHeader = 1 << 20

// readHeader reads header lines up to an empty line.
func readHeader(in *bufio.Reader) (textproto.MIMEHeader, error) {
	header := make(textproto.MIMEHeader)
	size := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return nil, err
		}
		size += len(line)
		if size > maxHeader {
			return nil, errors.New("too long")
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			return header, nil
		}
		if key, value, ok := strings.Cut(string(line), ":"); ok {
			header.Set(key, strings.TrimSpace(value))
		}
	}
}

// unexpected returns io.ErrUnexpectedEOF for io.EOF, and err otherwise.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (s *warcSource) skip(n int64) error {
	_, err := io.CopyN(io.Discard, s.in, n)
	return unexpected(err)
}

func (s *warcSource) block(n int64) ([]byte, error) {
	data := make([]byte, n)
	_, err := io.ReadFull(s.in, data)
	return data, unexpected(err)
}

// A response is an HTTP response in a WARC file.
type response struct {
	status int
	header http.Header
	body   []byte // decoded if the Content-Encoding is gzip
}

func parseResponse(data []byte) (response, error) {
	sent, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(data)), nil)
	if err != nil {
		return response{}, fmt.Errorf("HTTP response: %w", err)
	}
	defer sent.Body.Close()
	var in io.Reader = sent.Body
	if strings.EqualFold(sent.Header.Get("Content-Encoding"), "gzip") {
		z, err := gzip.NewReader(in)
		if err != nil {
			return response{}, fmt.Errorf("HTTP response: %w", err)
		}
		in = z
	}
	body, err := io.ReadAll(io.LimitReader(in, maxRecord+1))
	switch {
	case err != nil:
		return response{}, fmt.Errorf("HTTP response: %w", err)
	case len(body) > maxRecord:
		return response{}, fmt.Errorf("HTTP response: the body is longer than %d bytes", maxRecord)
	}
	return response{status: sent.StatusCode, header: sent.Header, body: body}, nil
}
