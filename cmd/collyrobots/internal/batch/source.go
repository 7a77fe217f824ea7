package batch

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// A source reads records. next returns the next items, or an error, or both. It returns no items if
// it has skipped white space. At the end of the input the error is io.EOF. The caller owns the
// items.
type source interface {
	next() ([]item, error)
}

// open returns the source for an input, which is JSON lines or WARC, each possibly compressed by
// gzip.
func open(r io.Reader) (source, error) {
	in := bufio.NewReaderSize(r, chunkSize)
	start, err := in.Peek(2)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if bytes.Equal(start, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		in = bufio.NewReaderSize(z, chunkSize)
	}
	start, err = in.Peek(len(warcStart))
	switch {
	case err != nil && err != io.EOF:
		return nil, err
	case string(start) == warcStart:
		return &warcSource{in: in}, nil
	}
	return &lineSource{in: in}, nil
}

// A lineSource reads lines. It skips lines of white space, which count as records.
type lineSource struct {
	in     *bufio.Reader
	number int64
}

func (s *lineSource) next() ([]item, error) {
	var items []item
	chunk := make([]byte, 0, chunkSize)
	for len(chunk) < chunkSize-chunkSize/8 {
		start := len(chunk)
		var long bool
		var err error
		chunk, long, err = s.appendLine(chunk)
		line := bytes.TrimSpace(chunk[start:])
		isBlank := len(line) == 0 && !long
		if isBlank && err != nil {
			return items, err
		}
		s.number++
		if !isBlank {
			items = append(items, newItem(s.number, line, long))
		}
		if err != nil {
			return items, err
		}
	}
	return items, nil
}

func newItem(number int64, line []byte, long bool) item {
	if long {
		return item{number: number, fault: fmt.Sprintf("the line is longer than %d bytes", maxRecord)}
	}
	return item{number: number, data: line}
}

// appendLine appends the next line to chunk. If the line is longer than maxRecord, appendLine skips
// it and returns true.
func (s *lineSource) appendLine(chunk []byte) (result []byte, long bool, err error) {
	start := len(chunk)
	for {
		part, err := s.in.ReadSlice('\n')
		if len(chunk)-start+len(part) > maxRecord {
			chunk = chunk[:start]
			long = true
		}
		if !long {
			chunk = append(chunk, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return chunk, long, err
		}
	}
}
