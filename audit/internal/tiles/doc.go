// Package tiles keeps a log of entries in a folder in the formats of C2SP, so that other tools can
// read it: tlog-tiles for the entries and the Merkle tree (https://c2sp.org/tlog-tiles), and
// tlog-checkpoint for the signed size and root of the tree (https://c2sp.org/tlog-checkpoint).
//
// The folder also has a file of the package's own, named pending. It has the entries after the last
// full bundle. An entry bundle or a tile is written to a temporary file, which is then renamed, so
// after a crash each of them is complete or missing. A missing tile is computed again.
package tiles

import (
	"fmt"
	"path/filepath"
)

// Width is the number of entries in a full entry bundle, and of hashes in a full tile.
const Width = 256

// MaxEntry is the largest number of bytes in an entry.
const MaxEntry = 1<<16 - 1

// entriesLevel is the name of the folder of the entry bundles, which takes the place of a level.
const entriesLevel = "entries"

// tilePath returns the path of a tile within the folder. level is a number or entriesLevel. width is
// the number of its hashes or entries.
func tilePath(level any, n uint64, width int) string {
	name := fmt.Sprintf("%03d", n%1000)
	for n /= 1000; n > 0; n /= 1000 {
		name = fmt.Sprintf("x%03d/%s", n%1000, name)
	}
	if width < Width {
		name = fmt.Sprintf("%s.p/%d", name, width)
	}
	return filepath.Join("tile", fmt.Sprint(level), filepath.FromSlash(name))
}
