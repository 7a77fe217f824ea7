package frontier

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"
)

// checkManifests returns an error if the list of the engine's tables is damaged. The engine itself
// would treat the damage as the end of the list, and remove the tables that come after it.
func checkManifests(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	if err != nil {
		return err
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if at, damaged := damageOfManifest(content); damaged {
			return fmt.Errorf("%w: %s at byte %d", ErrDamaged, filepath.Base(name), at)
		}
	}
	return nil
}

// damageOfManifest returns where the damage in a list of tables begins, if there is any. The last
// record may be incomplete, because the system may have crashed.
func damageOfManifest(content []byte) (at int64, damaged bool) {
	const header = 7 // checksum, length and type of a chunk
	r := record.NewReader(bytes.NewReader(content), 0)
	for {
		at = r.Offset()
		next, err := r.Next()
		if err == nil {
			_, err = io.Copy(io.Discard, next)
		}
		if err == nil {
			continue
		}
		rest := content[min(int(at), len(content)):]
		if len(bytes.Trim(rest, "\x00")) == 0 || len(rest) < header {
			return 0, false
		}
		length := int(binary.LittleEndian.Uint16(rest[4:]))
		return at, header+length <= len(rest)
	}
}

// repairLogs cuts the engine's logs of changes off where they are damaged, because the engine opens
// no folder with a damaged log. The changes after the damage in that log are lost, as if the
// process had been killed before them. A copy of the log remains in a file that ends in ".damaged".
// repairLogs reports whether it has repaired anything.
func repairLogs(dir string, log *slog.Logger) (repaired bool) {
	logs, err := wal.Scan(wal.Dir{FS: vfs.Default, Dirname: dir})
	if err != nil {
		return false
	}
	for i, l := range logs {
		at, damaged := damageOf(l, i == len(logs)-1)
		if !damaged || l.NumSegments() != 1 {
			continue
		}
		_, path := l.SegmentLocation(0)
		lost, err := cutOff(path, at)
		if err != nil {
			log.Error("damaged log of changes could not be repaired", "record", path, "error", err)
			continue
		}
		log.Error("log of changes is damaged, the changes after the damage are lost", "record", path, "count", lost)
		repaired = true
	}
	return repaired
}

// damageOf returns where the damage in a log begins, if there is any. The end of the last log may
// be missing.
func damageOf(l wal.LogicalLog, last bool) (at int64, damaged bool) {
	r := l.OpenForRead()
	defer r.Close()
	for {
		_, offset, err := r.NextRecord()
		switch {
		case err == nil:
			continue
		case errors.Is(err, io.EOF):
			return 0, false
		case errors.Is(err, record.ErrUnexpectedEOF) && last:
			return 0, false
		}
		return offset.Physical, true
	}
}

// cutOff copies a file, and then removes its bytes from an offset. It returns their number.
func cutOff(path string, at int64) (removed int64, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(path+".damaged", content, 0o600); err != nil {
		return 0, fmt.Errorf("no copy could be written: %w", err)
	}
	return info.Size() - at, os.Truncate(path, at)
}
