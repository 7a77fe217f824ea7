package frontier

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// checksumsFile is a file in the folder of the engine. It has the checksums of the files in which
// the engine takes damage for their end: the newest logs of changes and the list of tables. So Open
// notices damage by which the engine would lose records without an error. The first line is the
// checksum of the second one.
const checksumsFile = "checksums"

// checksums are the contents of the file checksumsFile. The file is written after each sync, and by Open and Close. What it
// says has reached the disk before, so a kill or a power failure does not contradict it.
type checksums struct {
	Closed  bool       `json:"closed"` // Close has written it, so all of the files must exist
	Waiting int        `json:"waiting"`
	Done    int        `json:"done"`
	Denied  int        `json:"denied"`
	Failed  int        `json:"failed"`
	LeftOut int        `json:"leftOut"`
	Files   []checksum `json:"files"`
}

// A checksum is the checksum of a file of the engine, or of its beginning.
type checksum struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	CRC   uint32 `json:"crc32c"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// add adds bytes that were written.
func (f *checksum) add(written []byte) {
	f.Bytes += int64(len(written))
	f.CRC = crc32.Update(f.CRC, castagnoli, written)
}

// counts returns the numbers of pages.
func (c checksums) counts() counts {
	return counts{waiting: c.Waiting, done: c.Done, denied: c.Denied, failed: c.Failed, leftOut: c.LeftOut}
}

// checksums returns the checksums of the files, with the numbers of pages. logs is the number of
// logs that the engine needs.
func (d *disk) checksums(logs int, n counts) checksums {
	return checksums{
		Waiting: n.waiting,
		Done:    n.done,
		Denied:  n.denied,
		Failed:  n.failed,
		LeftOut: n.leftOut,
		Files:   d.files.sums(logs),
	}
}

// write replaces the file checksumsFile in a folder.
func (c checksums) write(dir string) error {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, checksumsFile), func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%08x\n%s\n", crc32.Checksum(line, castagnoli), line)
		return err
	})
}

// readChecksums reads the file checksumsFile in a folder. If the file is missing or damaged, it
// returns the zero value, and nothing can be compared.
func readChecksums(dir string, log *slog.Logger) (checksums, error) {
	name := filepath.Join(dir, checksumsFile)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return checksums{}, nil
	}
	if err != nil {
		return checksums{}, err
	}
	sum, line, _ := strings.Cut(strings.TrimSuffix(string(text), "\n"), "\n")
	if sum != fmt.Sprintf("%08x", crc32.Checksum([]byte(line), castagnoli)) {
		log.Warn("checksums of the frontier are damaged, its files cannot be compared with them", "error", name)
		return checksums{}, nil
	}
	var c checksums
	err = json.Unmarshal([]byte(line), &c)
	return c, err
}

// compare returns the names of the files that are not as they were written.
func (c checksums) compare(dir string) (changed []string, err error) {
	for _, want := range c.Files {
		got, err := beginning(filepath.Join(dir, want.Name), want.Bytes)
		missing := errors.Is(err, fs.ErrNotExist)
		switch {
		case missing && !c.Closed: // the engine may have removed it since
			continue
		case err != nil && !missing:
			return nil, err
		case missing, got.Bytes != want.Bytes, got.CRC != want.CRC:
			changed = append(changed, filepath.Join(pagesFolder, want.Name))
		}
	}
	return changed, nil
}

// beginning reads the first n bytes of a file, or fewer if there are no more.
func beginning(name string, n int64) (checksum, error) {
	f, err := os.Open(name)
	if err != nil {
		return checksum{}, err
	}
	hash := crc32.New(castagnoli)
	read, err := io.Copy(hash, io.LimitReader(f, n))
	return checksum{Bytes: read, CRC: hash.Sum32()}, errors.Join(err, f.Close())
}

// check compares the files of the engine with their checksums. The engine must not be open.
func (d *disk) check(log *slog.Logger) error {
	c, err := readChecksums(d.dir, log)
	if err != nil {
		return err
	}
	changed, err := c.compare(d.dir)
	if err != nil {
		return err
	}
	if len(changed) > 0 {
		return d.damage(c, changed)
	}
	if !c.Closed {
		return nil
	}
	c.Closed = false // from now on, the engine removes files
	return c.write(d.dir)
}

// damage returns the error of Open for files that have changed. It changes nothing in the folder.
func (d *disk) damage(c checksums, changed []string) error {
	noted := c.counts()
	state := fmt.Sprintf("%d pages waited and %d were done", noted.waiting, noted.done)
	next := remedy
	found, err := d.readCounts()
	if err != nil {
		state += fmt.Sprintf(", and the engine cannot read the folder any more (%v)", err)
	} else {
		state += fmt.Sprintf(", now %d wait and %d are done", found.waiting, found.done)
		next += ", or remove " + filepath.Join(pagesFolder, checksumsFile) + " to continue with what can be read"
	}
	missing := noted.missing(found)
	if err == nil && missing > 0 && c.Closed { // after a kill, pages may have moved on since the checksums were written
		state += fmt.Sprintf(", so at least %d records are missing", missing)
	}
	return fmt.Errorf("%w: %s is not as it was written: %s; %s", ErrDamaged, strings.Join(changed, " and "), state, next)
}

// remedy says what the user can do about a damaged folder.
const remedy = "restore the folder from a copy, or remove it to begin again"

// readCounts counts the pages in the folder without changing it.
func (d *disk) readCounts() (total counts, err error) {
	options := d.options(slog.New(slog.DiscardHandler))
	options.ReadOnly = true
	d.db, err = openEngine(d.dir, options)
	if err != nil {
		return counts{}, err
	}
	defer func() { err = errors.Join(err, d.db.Close()) }()
	s, err := d.scan([]byte{hostKey}, []byte{hostKey})
	if err != nil {
		return counts{}, err
	}
	for s.next() {
		r, err := decodeHost(s.Value())
		if err != nil {
			continue
		}
		total = total.plus(r.counts)
	}
	return total, errors.Join(s.Error(), s.Close())
}

// missing returns how many changes at least are between c and earlier counts.
func (c counts) missing(earlier counts) int {
	n := 0
	for _, s := range []state{waiting, done, denied, failed, leftOut} {
		n += max(*c.of(s)-*earlier.of(s), 0)
	}
	return n
}
