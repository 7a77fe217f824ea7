// Package batch decides about many URLs. It reads records with a robots.txt and URLs, and writes
// one line of JSON for each decision, in the order of the records. It uses all processors and a
// bounded amount of memory.
package batch

import (
	"errors"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/collyrobots/collyrobots/dialect"
)

// Options are the settings of [Run].
type Options struct {
	Dialect dialect.Dialect
	Agents  []string // the product tokens for records without an agent
	URLs    []string // the URLs or paths for records without URLs
	Workers int      // how many goroutines decide; 0 means one for each processor
}

// Summary has the numbers of a run.
type Summary struct {
	Records   int64 // records that were read, including bad ones
	Decisions int64
	Errors    int64 // error lines
}

const (
	maxRecord = 16 << 20  // bytes of a record; a larger one becomes an error line
	chunkSize = 256 << 10 // bytes of records in a job, unless one record is larger
	pieceSize = 256 << 10 // bytes of output that a worker sends to the writer at once
	cacheSize = 256 << 20 // bytes of the cache of parsed files, approximately
)

// Run reads records from r until it ends and writes the decisions to w. It returns an error if r
// or w fails. For a record that cannot be read, it writes a line with the error and continues.
func Run(r io.Reader, w io.Writer, o Options) (Summary, error) {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	source, err := open(r)
	if err != nil {
		return Summary{}, err
	}
	b := &run{options: o, files: newFiles(o.Dialect), statuses: newStatuses(o.Dialect), stop: make(chan struct{})}
	return b.run(source, w)
}

// A run is one call of Run. A reader divides the records into jobs, workers decide, and the
// caller's goroutine writes the output of the jobs in their order.
type run struct {
	options   Options
	files     *files
	statuses  *statuses
	stop      chan struct{} // closed if the output fails
	records   atomic.Int64
	decisions atomic.Int64
	faults    atomic.Int64
}

// A job is a part of the input.
type job struct {
	items []item
	out   chan []byte // the output in pieces; the worker closes it
}

// An item is one record of the input.
type item struct {
	number int64  // the number of the record, starting at 1
	data   []byte // a line of JSON, or an HTTP response if it comes from a WARC file
	target string // if set, the URL of the robots.txt in a WARC file
	fault  string // if set, the record could not be read
}

func (b *run) run(source source, w io.Writer) (Summary, error) {
	todo := make(chan *job)                       // for the workers
	written := make(chan *job, b.options.Workers) // for the writer, in the order of the input
	var readFault error
	var all sync.WaitGroup
	all.Go(func() {
		defer close(todo)
		defer close(written)
		readFault = b.read(source, todo, written)
	})
	for range b.options.Workers {
		all.Go(func() {
			worker := newWorker(b)
			for j := range todo {
				worker.do(j)
			}
		})
	}
	writeFault := b.write(w, written)
	all.Wait()
	summary := Summary{
		Records:   b.records.Load(),
		Decisions: b.decisions.Load(),
		Errors:    b.faults.Load(),
	}
	return summary, errors.Join(writeFault, readFault)
}

// read reads the records and sends jobs until the input ends or the output fails.
func (b *run) read(source source, todo, written chan<- *job) error {
	for {
		items, err := source.next()
		if len(items) > 0 {
			b.records.Add(int64(len(items)))
			j := &job{items: items, out: make(chan []byte, 2)}
			select {
			case written <- j:
			case <-b.stop:
				return nil
			}
			select {
			case todo <- j:
			case <-b.stop:
				close(j.out)
				return nil
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// write writes the output of the jobs. If w fails, it closes b.stop, so that the other goroutines
// end, and discards the rest of the output.
func (b *run) write(w io.Writer, written <-chan *job) error {
	var fault error
	for j := range written {
		for piece := range j.out {
			if fault == nil {
				_, fault = w.Write(piece)
				if fault != nil {
					close(b.stop)
				}
			}
			pieces.Put(&piece)
		}
	}
	return fault
}

// pieces holds buffers for pieces of output.
var pieces = sync.Pool{New: func() any { return new([]byte) }}
