package tiles

import (
	"crypto/sha256"

	"golang.org/x/mod/sumdb/tlog"
)

// A tree is a Merkle tree (RFC 6962, section 2.1). It has only the right edge: for each level, the
// hashes of the tile that is not full. A hash of level l stands for Width^l entries.
type tree struct {
	size  uint64
	edges [][]tlog.Hash
}

// A fullTile is a tile that got its last hash.
type fullTile struct {
	level  int
	n      uint64
	hashes []tlog.Hash
}

// add adds the hash of an entry. It returns the tiles that are full now, the lowest level first.
func (t *tree) add(hash tlog.Hash) (full []fullTile) {
	t.size++
	n := t.size
	for level := 0; ; level++ {
		if level == len(t.edges) {
			t.edges = append(t.edges, nil)
		}
		t.edges[level] = append(t.edges[level], hash)
		n /= Width
		hashes := t.edges[level]
		if len(hashes) < Width {
			return full
		}
		full = append(full, fullTile{level: level, n: n - 1, hashes: hashes})
		t.edges[level] = nil
		hash = rootOf(hashes)
	}
}

// root returns the root of the tree. The root of the empty tree is the hash of the empty text.
func (t *tree) root() tlog.Hash {
	var right []tlog.Hash // the root of the levels below, if they have hashes
	for _, edge := range t.edges {
		all := append(edge[:len(edge):len(edge)], right...)
		if len(all) > 0 {
			right = []tlog.Hash{rootOf(all)}
		}
	}
	if right == nil {
		return sha256.Sum256(nil)
	}
	return right[0]
}

// rootOf returns the root of the tree with these nodes. There must be at least one. The last node
// may stand for fewer entries than the others.
func rootOf(nodes []tlog.Hash) tlog.Hash {
	if len(nodes) == 1 {
		return nodes[0]
	}
	split := 1
	for 2*split < len(nodes) {
		split *= 2
	}
	return tlog.NodeHash(rootOf(nodes[:split]), rootOf(nodes[split:]))
}

// EmptyRoot is the root of the tree without entries.
var EmptyRoot = new(tree).root()
