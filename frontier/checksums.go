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
	Closed bool       `json:"closed"` // Close has written it, so all of the files must exist
	Files  []checksum `json:"files"`
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
		return damage(changed)
	}
	if !c.Closed {
		return nil
	}
	c.Closed = false // from now on, the engine removes files
	return c.write(d.dir)
}

// damage returns the error of Open for files that have changed.
func damage(changed []string) error {
	return fmt.Errorf("%w: %s is not as it was written; %s, or remove %s to continue with what can be read",
		ErrDamaged, strings.Join(changed, " and "), remedy, filepath.Join(pagesFolder, checksumsFile))
}

// remedy says what the user can do about a damaged folder.
const remedy = "restore the folder from a copy, or remove it to begin again"
