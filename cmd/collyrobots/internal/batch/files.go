package batch

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/maypok86/otter/v2"

	"github.com/collyrobots/collyrobots/dialect"
)

// files parses robots.txt files and keeps the groups that it has parsed, up to cacheSize.
type files struct {
	dialect dialect.Dialect
	cache   *otter.Cache[fileKey, *group]
}

// A fileKey identifies the group of a crawler in a file. Either path or hash is set.
type fileKey struct {
	path  string
	hash  [sha256.Size]byte
	agent string
}

// A group has the rules of a file for one crawler.
type group struct {
	*dialect.Group
	hash   string // the SHA-256 of the whole file in hexadecimal digits
	weight uint32
}

func newFiles(d dialect.Dialect) *files {
	return &files{
		dialect: d,
		cache: otter.Must(&otter.Options[fileKey, *group]{
			MaximumWeight: cacheSize,
			Weigher:       func(_ fileKey, g *group) uint32 { return g.weight },
			Executor:      func(f func()) { f() },
		}),
	}
}

// ofBody returns the group of a crawler in a file.
func (f *files) ofBody(body []byte, agent string) *group {
	key := fileKey{hash: sha256.Sum256(body), agent: agent}
	g, ok := f.cache.GetIfPresent(key)
	if !ok {
		g = f.parse(body, key.hash, agent)
		f.cache.Set(key, g)
	}
	return g
}

// ofPath returns the group of a crawler in the file with a path. It reads a file again only if the
// cache has dropped it.
func (f *files) ofPath(path, agent string) (*group, error) {
	key := fileKey{path: path, agent: agent}
	if g, ok := f.cache.GetIfPresent(key); ok {
		return g, nil
	}
	body, err := readFile(path)
	if err != nil {
		return nil, err
	}
	g := f.parse(body, sha256.Sum256(body), agent)
	f.cache.Set(key, g)
	return g, nil
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	body, err := io.ReadAll(io.LimitReader(file, maxRecord+1))
	if err == nil && len(body) > maxRecord {
		err = fmt.Errorf("%s is longer than %d bytes", path, maxRecord)
	}
	return body, err
}

func (f *files) parse(body []byte, hash [sha256.Size]byte, agent string) *group {
	// A group is rarely larger than three times its file: patterns as written and in normal form,
	// and the index.
	const fixed = 1 << 10
	return &group{
		Group:  f.dialect.Parse(body).Group(agent),
		hash:   hex.EncodeToString(hash[:]),
		weight: uint32(3*min(len(body), maxRecord) + fixed + len(agent)),
	}
}
