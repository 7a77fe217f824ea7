package tiles

import (
	"fmt"
	"iter"
	"path/filepath"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// An Item is an entry that Scan has read.
type Item struct {
	Index uint64
	Entry []byte // nil if it cannot be trusted
	// Signed says that the checkpoint covers the entry.
	Signed bool
}

// Scan reads all entries of a log in order and compares every file with the others. signed is the
// size and root of the checkpoint, and earlier has those of earlier checkpoints. It calls fault with
// a description of each contradiction; after one, the entry or the bundle is passed on without its
// text. Entries after the checkpoint follow at the end. Scan has one bundle in memory.
func (r Reader) Scan(signed tlog.Tree, earlier []tlog.Tree, fault func(index uint64, text string)) iter.Seq[Item] {
	return func(yield func(Item) bool) {
		s := scan{r: r, signed: signed, earlier: earlier, fault: fault}
		for n := uint64(0); n*Width < uint64(signed.N); n++ {
			if s.isGone(n) {
				fault(n*Width, fmt.Sprintf("the entries %d to %d of the checkpoint are missing", n*Width, signed.N-1))
				return
			}
			if !s.bundle(n, int(min(Width, uint64(signed.N)-n*Width)), yield) {
				return
			}
		}
		s.edges()
		if root := s.tree.root(); root != signed.Hash {
			fault(uint64(signed.N), fmt.Sprintf("the entries have the root %v, and the checkpoint has %v", root, signed.Hash))
		}
		s.copies()
		s.rest(yield)
	}
}

// A scan is the state of one call of Scan.
type scan struct {
	r       Reader
	signed  tlog.Tree
	earlier []tlog.Tree
	fault   func(index uint64, text string)
	tree    tree
}

// goneBundles is the number of missing bundles in a row after which a scan ends.
const goneBundles = 100

// isGone reports whether neither the bundle n nor its tile exists, nor those of the next ones. A
// hostile checkpoint may have any size, so a scan must not look for all of them.
func (s *scan) isGone(n uint64) bool {
	for end := n + goneBundles; n < end && n*Width < uint64(s.signed.N); n++ {
		for _, level := range []any{entriesLevel, 0} {
			full := tilePath(level, n, Width)
			if s.r.has(full) || s.r.has(filepath.Dir(tilePath(level, n, 1))) {
				return false
			}
		}
	}
	return true
}

// bundle reads a bundle that the checkpoint covers.
func (s *scan) bundle(n uint64, width int, yield func(Item) bool) (goOn bool) {
	first := n * Width
	entries, err := s.r.anyBundle(n, width)
	if err != nil {
		s.fault(first, err.Error())
		entries = make([][]byte, width)
	}
	damaged := err != nil
	hashes, err := s.r.anyTile(0, n, width)
	if err != nil {
		s.fault(first, err.Error())
		hashes = hashesOf(entries)
	}
	for i, entry := range entries {
		index := first + uint64(i)
		item := Item{Index: index, Entry: entry, Signed: true}
		if !damaged && tlog.RecordHash(entry) != hashes[i] {
			s.fault(index, "the entry does not have its hash in the tree, so it was changed, moved or inserted")
			item.Entry = nil
		}
		s.add(hashes[i])
		if !yield(item) {
			return false
		}
	}
	return true
}

// add adds a hash to the tree, and compares the tiles above the entries that are full now with
// their files.
func (s *scan) add(hash tlog.Hash) {
	for _, tile := range s.tree.add(hash) {
		if tile.level > 0 {
			s.compare(tile)
		}
	}
	for _, c := range s.earlier {
		if uint64(c.N) == s.tree.size && c.Hash != s.tree.root() {
			s.fault(s.tree.size-1, fmt.Sprintf("the first %d entries are not those of an earlier checkpoint", c.N))
		}
	}
}

// edges compares the tiles that are not full with their files.
func (s *scan) edges() {
	n := s.tree.size / Width
	for level, edge := range s.tree.edges {
		if level > 0 && len(edge) > 0 {
			s.compare(fullTile{level: level, n: n, hashes: edge})
		}
		n /= Width
	}
}

// compare compares a tile with its file.
func (s *scan) compare(tile fullTile) {
	stored, err := s.r.anyTile(tile.level, tile.n, len(tile.hashes))
	if err != nil {
		s.fault(s.tree.size-1, err.Error())
		return
	}
	for i, hash := range stored {
		if hash != tile.hashes[i] {
			below := tilePath(tile.level-1, tile.n*Width+uint64(i), Width)
			s.fault(s.tree.size-1, fmt.Sprintf("%s does not have its hash in %s", below, tilePath(tile.level, tile.n, Width)))
		}
	}
}

// copies compares the files with copies of the last hashes and entries: the pending file, from which
// Open continues, and the partial tiles and bundles of earlier checkpoints, which a reader with such a
// checkpoint uses.
func (s *scan) copies() {
	n := s.tree.size / Width
	if len(s.tree.edges) == 0 {
		return
	}
	entries, err := s.r.Pending(n)
	if err == nil { // otherwise rest reports it
		s.compareEntries(n, entries, pendingPath(n))
	}
	for _, width := range s.r.partial(entriesLevel, n) {
		if width == len(s.tree.edges[0]) {
			continue // bundle has compared it
		}
		entries, err := s.r.bundle(n, width)
		name := tilePath(entriesLevel, n, width)
		if err != nil && s.r.has(name) { // otherwise the bundle has become full since then
			s.fault(s.tree.size-1, err.Error())
		}
		s.compareEntries(n, entries, name)
	}
	for level, edge := range s.tree.edges {
		for _, width := range s.r.partial(level, n) {
			if width == len(edge) {
				continue // bundle or edges has compared it
			}
			s.compareHashes(level, n, width, edge)
		}
		n /= Width
	}
}

// compareEntries compares the entries in a file, which are the first ones of the last bundle, with
// their hashes.
func (s *scan) compareEntries(n uint64, entries [][]byte, name string) {
	hashes := s.tree.edges[0]
	for i, entry := range entries[:min(len(entries), len(hashes))] {
		if tlog.RecordHash(entry) != hashes[i] {
			s.fault(n*Width+uint64(i), fmt.Sprintf("the entry in %s does not have its hash in the tree, so it was changed, moved or inserted", name))
		}
	}
}

// compareHashes compares the first hashes of a partial tile with those of the tree.
func (s *scan) compareHashes(level int, n uint64, width int, edge []tlog.Hash) {
	name := tilePath(level, n, width)
	stored, err := s.r.Tile(level, n, width)
	if err != nil && s.r.has(name) {
		s.fault(s.tree.size-1, err.Error())
	}
	both := min(len(stored), len(edge))
	if !slices.Equal(stored[:both], edge[:both]) {
		s.fault(s.tree.size-1, fmt.Sprintf("%s has another hash than the tree", name))
	}
}

// rest reads the entries after the checkpoint: full bundles, and then the pending file.
func (s *scan) rest(yield func(Item) bool) {
	n := uint64(s.signed.N) / Width
	for ; s.r.has(tilePath(entriesLevel, n, Width)); n++ {
		entries, err := s.r.bundle(n, Width)
		if err != nil {
			s.fault(n*Width, err.Error())
			return
		}
		if !s.unsigned(n, entries, yield) {
			return
		}
	}
	entries, err := s.r.Pending(n)
	if err != nil {
		s.fault(n*Width, err.Error())
		return
	}
	s.unsigned(n, entries, yield)
}

func (s *scan) unsigned(n uint64, entries [][]byte, yield func(Item) bool) (goOn bool) {
	for i, entry := range entries {
		index := n*Width + uint64(i)
		if index >= uint64(s.signed.N) && !yield(Item{Index: index, Entry: entry}) {
			return false
		}
	}
	return true
}
