package boltstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"

	bolt "go.etcd.io/bbolt"
)

// bbolt uses the page numbers and lengths in a file without a check. In a damaged file, these can
// form a cycle, so that bbolt recurses until the stack overflows, or they can make it allocate
// until memory is exhausted. This file checks the structure of a bbolt file before bbolt opens it.
//
// A file is a sequence of pages of equal size. Numbers are in the byte order of the machine.
//
//	page     number (8 bytes), type (2), count of elements (2), number of overflow pages (4)
//	meta     in pages 0 and 1: where the root and the freelist are, with a checksum
//	freelist the numbers of unused pages
//	branch   count elements of 16 bytes: position and length of a key, number of the child page
//	leaf     count elements of 16 bytes: flags, position, length of a key, length of its value
//
// Keys and values follow the elements of their page without a gap. A bucket is a value in the tree
// of the root. It consists of the number of the bucket's own root page (8 bytes) and a sequence
// number (8 bytes). If that page number is 0, the root page is a leaf page that follows within the
// value.

const (
	headerSize  = 16
	elementSize = 16
	metaEnd     = 80 // the offset in a meta page where its checksum ends

	branchPage   = 1
	leafPage     = 2
	freelistPage = 16
	bucketFlag   = 1

	magic       = 0xED0CDAED
	version     = 2
	noFreelist  = ^uint64(0)
	longCount   = 0xFFFF // if a freelist has this count, its first 8 bytes hold the real one
	maxDepth    = 64     // of a tree; a sound one is not so deep, as each page has at least two children
	minPageSize = 1 << 10
	maxPageSize = 1 << 24
)

var (
	errDamaged = errors.New("not a sound bbolt file")
	errForeign = errors.New("not a boltstore file")
)

// checkPath checks the file at path. It returns nil if the file does not exist or is empty.
func checkPath(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: not a regular file", errForeign)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return check(f, info.Size())
}

// check returns an error that wraps errForeign if another program has written the file, and one
// that wraps errDamaged if bbolt cannot use the file. All other errors come from reading the file.
func check(file io.ReaderAt, size int64) error {
	if size == 0 {
		return nil
	}
	m, err := newestMeta(file, size)
	if err != nil {
		return err
	}
	c := &checker{
		window: window{file: file, size: size, block: m.pageSize},
		meta:   m,
		used:   make([]uint64, m.pages/64+1),
	}
	if err := c.claim(0, 2); err != nil {
		return err
	}
	if m.freelist != noFreelist {
		if err := c.checkFreelist(); err != nil {
			return err
		}
	}
	return c.checkBuckets()
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errDamaged, fmt.Sprintf(format, args...))
}

// A meta is the content of a meta page. All other pages are found from there.
type meta struct {
	pageSize int64
	root     uint64 // the page of the root bucket
	freelist uint64 // the page of the freelist, or noFreelist
	pages    uint64 // the number of pages, used and free
	txid     uint64
}

// newestMeta returns the valid meta page with the highest transaction number. The first meta page
// is at the beginning of the file. The offset of the second one is the page size, which is unknown
// if the first one is damaged; so newestMeta tries all possible sizes.
func newestMeta(file io.ReaderAt, size int64) (meta, error) {
	var newest meta
	isBolt := false
	for at := int64(0); at < size && at <= maxPageSize; at = max(2*at, minPageSize) {
		m, hasMagic, err := readMeta(file, size, at)
		if err != nil {
			return meta{}, err
		}
		isBolt = isBolt || hasMagic
		if m.pageSize == 0 || at != 0 && at != m.pageSize {
			continue
		}
		if newest.pageSize == 0 || m.txid > newest.txid && m.pageSize == newest.pageSize {
			newest = m
		}
	}
	switch {
	case newest.pageSize != 0 && newest.pages > uint64(size/newest.pageSize):
		return meta{}, damaged("the file has %d bytes instead of %d pages of %d bytes", size, newest.pages, newest.pageSize)
	case newest.pageSize != 0:
		return newest, nil
	case isBolt:
		return meta{}, damaged("both meta pages are damaged")
	}
	zeroes, err := allZero(file, size)
	switch {
	case err != nil:
		return meta{}, err
	case zeroes:
		return meta{}, damaged("the file contains only zeroes")
	}
	return meta{}, fmt.Errorf("%w: not a bbolt file", errForeign)
}

// readMeta reads the meta page at an offset. If the page is not valid, the result has a pageSize of
// 0.
func readMeta(file io.ReaderAt, size, at int64) (m meta, hasMagic bool, err error) {
	raw := make([]byte, min(metaEnd, size-at))
	if _, err := file.ReadAt(raw, at); err != nil && err != io.EOF {
		return meta{}, false, err
	}
	if len(raw) < headerSize+4 || binary.NativeEndian.Uint32(raw[headerSize:]) != magic {
		return meta{}, false, nil
	}
	if len(raw) < metaEnd {
		return meta{}, true, nil
	}
	raw = raw[headerSize:]
	sum := fnv.New64a()
	sum.Write(raw[:56])
	pageSize := int64(binary.NativeEndian.Uint32(raw[8:]))
	if binary.NativeEndian.Uint32(raw[4:]) != version || binary.NativeEndian.Uint64(raw[56:]) != sum.Sum64() ||
		pageSize < minPageSize || pageSize > maxPageSize || pageSize&(pageSize-1) != 0 {
		return meta{}, true, nil
	}
	return meta{
		pageSize: pageSize,
		root:     binary.NativeEndian.Uint64(raw[16:]),
		freelist: binary.NativeEndian.Uint64(raw[32:]),
		pages:    binary.NativeEndian.Uint64(raw[40:]),
		txid:     binary.NativeEndian.Uint64(raw[48:]),
	}, true, nil
}

func allZero(file io.ReaderAt, size int64) (bool, error) {
	r := io.NewSectionReader(file, 0, size)
	block := make([]byte, 64<<10)
	for {
		n, err := r.Read(block)
		if len(bytes.Trim(block[:n], "\x00")) > 0 {
			return false, nil
		}
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// A checker checks one file.
type checker struct {
	window
	meta meta
	used []uint64 // has a bit for each page, set if the page has been visited

	last   []byte // the key that was visited last in the bucket
	isLeaf bool   // whether last was on a leaf page
}

// A page is a page with its overflow pages, or a page within a value.
type page struct {
	number uint64 // for error messages
	kind   uint16
	count  int64
	at     int64 // its offset in the file
	length int64
}

// An element is an element of a branch page or a leaf page. Its key is valid until the next read.
type element struct {
	key   []byte
	flags uint32 // only on a leaf page
	child uint64 // only on a branch page
	value page   // only on a leaf page: the offset and length of the value
}

// claim marks count pages from number on as visited. It returns an error if one of them has been
// visited before, because a page has only one use, or if it is beyond the end of the file.
func (c *checker) claim(number, count uint64) error {
	if number >= c.meta.pages || count > c.meta.pages-number {
		return damaged("page %d with %d overflow pages is beyond the %d pages of the file", number, count-1, c.meta.pages)
	}
	for n := number; n < number+count; n++ {
		if c.used[n/64]&(1<<(n%64)) != 0 {
			return damaged("page %d is used twice", n)
		}
		c.used[n/64] |= 1 << (n % 64)
	}
	return nil
}

// open reads the header of a page and claims the page with its overflow pages.
func (c *checker) open(number uint64) (page, error) {
	if number >= c.meta.pages {
		return page{}, damaged("page %d is beyond the %d pages of the file", number, c.meta.pages)
	}
	p := page{number: number, at: int64(number) * c.meta.pageSize}
	raw, err := c.read(p.at, headerSize)
	if err != nil {
		return page{}, err
	}
	if n := binary.NativeEndian.Uint64(raw); n != number {
		return page{}, damaged("the header of page %d has the number %d", number, n)
	}
	pages := 1 + uint64(binary.NativeEndian.Uint32(raw[12:]))
	p.kind = binary.NativeEndian.Uint16(raw[8:])
	p.count = int64(binary.NativeEndian.Uint16(raw[10:]))
	p.length = int64(pages) * c.meta.pageSize
	return p, c.claim(number, pages)
}

// openInline reads the header of a page within a value. Its number must be 0: otherwise, bbolt
// would treat it as the page of the file with that number.
func (c *checker) openInline(value page) (page, error) {
	value.at += headerSize
	value.length -= headerSize
	if value.length < headerSize {
		return page{}, damaged("page %d has a bucket of %d bytes", value.number, value.length)
	}
	raw, err := c.read(value.at, headerSize)
	if err != nil {
		return page{}, err
	}
	number := binary.NativeEndian.Uint64(raw)
	overflow := binary.NativeEndian.Uint32(raw[12:])
	value.kind = binary.NativeEndian.Uint16(raw[8:])
	value.count = int64(binary.NativeEndian.Uint16(raw[10:]))
	if number != 0 || overflow != 0 || value.kind != leafPage {
		return page{}, damaged("page %d has a bucket whose inline page has the number %d and the type %#x", value.number, number, value.kind)
	}
	return value, nil
}

// checkFreelist claims the pages of the freelist and the pages that it lists.
func (c *checker) checkFreelist() error {
	p, err := c.open(c.meta.freelist)
	if err != nil {
		return err
	}
	if p.kind != freelistPage {
		return damaged("the freelist, page %d, has the type %#x", p.number, p.kind)
	}
	at := p.at + headerSize
	count := uint64(p.count)
	if count == longCount {
		raw, err := c.read(at, 8)
		if err != nil {
			return err
		}
		count = binary.NativeEndian.Uint64(raw)
		at += 8
	}
	if most := uint64(p.at+p.length-at) / 8; count > most {
		return damaged("the freelist, page %d, lists %d pages but has room for %d", p.number, count, most)
	}
	for end := at + 8*int64(count); at < end; at += 8 {
		raw, err := c.read(at, 8)
		if err != nil {
			return err
		}
		if err := c.claim(binary.NativeEndian.Uint64(raw), 1); err != nil {
			return err
		}
	}
	return nil
}

// checkBuckets checks the tree of the root and the trees of its buckets. The root must contain both
// buckets of this package or no bucket.
func (c *checker) checkBuckets() error {
	var own []page
	var other []string
	err := c.walk(c.meta.root, func(e element) error {
		if e.flags != bucketFlag {
			return damaged("page %d has an element that is not a bucket (flags %#x)", e.value.number, e.flags)
		}
		if bytes.Equal(e.key, records) || bytes.Equal(e.key, aside) {
			own = append(own, e.value)
			return nil
		}
		if len(other) < 2 {
			other = append(other, string(e.key))
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(other) == 1 && len(own) == 1:
		return damaged("a bucket has the unknown name %q", other[0])
	case len(other) > 0:
		return fmt.Errorf("%w: the bbolt file has a bucket %q", errForeign, other[0])
	case len(own) == 1:
		return damaged("a bucket is missing")
	}
	for _, b := range own {
		if err := c.checkBucket(b); err != nil {
			return err
		}
	}
	return nil
}

// checkBucket checks the tree of one bucket of this package. Each key in it must be a hash.
func (c *checker) checkBucket(b page) error {
	if b.length < headerSize {
		return damaged("page %d has a bucket of %d bytes", b.number, b.length)
	}
	raw, err := c.read(b.at, 8)
	if err != nil {
		return err
	}
	visit := func(e element) error {
		if e.flags != 0 || len(e.key) != sha256.Size {
			return damaged("page %d has an element with the flags %#x and a key of %d bytes", e.value.number, e.flags, len(e.key))
		}
		return nil
	}
	if root := binary.NativeEndian.Uint64(raw); root != 0 {
		return c.walk(root, visit)
	}
	p, err := c.openInline(b)
	if err != nil {
		return err
	}
	c.last = nil
	return c.walkPage(p, 0, visit)
}

// walk calls visit for each element of the leaves of a tree.
func (c *checker) walk(root uint64, visit func(element) error) error {
	p, err := c.open(root)
	if err != nil {
		return err
	}
	c.last = nil
	return c.walkPage(p, 0, visit)
}

func (c *checker) walkPage(p page, depth int, visit func(element) error) error {
	if p.kind != branchPage && p.kind != leafPage {
		return damaged("page %d has the type %#x", p.number, p.kind)
	}
	if depth > maxDepth {
		return damaged("page %d is %d levels below the root", p.number, depth)
	}
	if p.count == 0 && (p.kind == branchPage || depth > 0) {
		return damaged("page %d is empty", p.number)
	}
	next := int64(headerSize) + p.count*elementSize
	for i := range p.count {
		e, err := c.element(p, i, next)
		if err != nil {
			return err
		}
		if err := c.inOrder(p, e.key); err != nil {
			return err
		}
		next = e.value.at + e.value.length - p.at
		if p.kind == leafPage {
			err = visit(e)
		} else {
			err = c.walkChild(e.child, depth+1, visit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) walkChild(number uint64, depth int, visit func(element) error) error {
	p, err := c.open(number)
	if err != nil {
		return err
	}
	return c.walkPage(p, depth, visit)
}

// element reads the element i of a page. Its key must begin at next, an offset from the beginning
// of the page.
func (c *checker) element(p page, i, next int64) (element, error) {
	at := headerSize + i*elementSize
	if next > p.length {
		return element{}, damaged("page %d has %d elements, which do not fit into %d bytes", p.number, p.count, p.length)
	}
	raw, err := c.read(p.at+at, elementSize)
	if err != nil {
		return element{}, err
	}
	var e element
	var position, keyLength, valueLength int64
	if p.kind == branchPage {
		position = int64(binary.NativeEndian.Uint32(raw))
		keyLength = int64(binary.NativeEndian.Uint32(raw[4:]))
		e.child = binary.NativeEndian.Uint64(raw[8:])
	} else {
		e.flags = binary.NativeEndian.Uint32(raw)
		position = int64(binary.NativeEndian.Uint32(raw[4:]))
		keyLength = int64(binary.NativeEndian.Uint32(raw[8:]))
		valueLength = int64(binary.NativeEndian.Uint32(raw[12:]))
	}
	e.value = page{number: p.number, at: p.at + next + keyLength, length: valueLength}
	switch {
	case at+position != next:
		return element{}, damaged("page %d has a gap before element %d", p.number, i)
	case keyLength == 0 || keyLength > bolt.MaxKeySize:
		return element{}, damaged("page %d has a key of %d bytes", p.number, keyLength)
	case keyLength+valueLength > p.length-next:
		return element{}, damaged("page %d ends before its element %d", p.number, i)
	}
	e.key, err = c.read(p.at+next, keyLength)
	return e, err
}

// inOrder checks the order of keys. A key must be greater than the previous one. If the previous
// key was on a branch page, this key must be equal to it, because bbolt stores in a branch page the
// first key of each child page.
func (c *checker) inOrder(p page, key []byte) error {
	order := bytes.Compare(c.last, key)
	if c.last != nil && (c.isLeaf && order >= 0 || !c.isLeaf && order != 0) {
		return damaged("page %d has a key out of order", p.number)
	}
	c.last = append(c.last[:0], key...)
	c.isLeaf = p.kind == leafPage
	return nil
}

// A window reads small parts of a file through a buffer of one block or more.
type window struct {
	file  io.ReaderAt
	size  int64
	block int64

	at     int64
	loaded []byte
}

// read returns length bytes at an offset. They are valid until the next read.
func (w *window) read(at, length int64) ([]byte, error) {
	if at < w.at || at+length > w.at+int64(len(w.loaded)) {
		if err := w.load(at, length); err != nil {
			return nil, err
		}
	}
	return w.loaded[at-w.at:][:length], nil
}

func (w *window) load(at, length int64) error {
	begin := at - at%w.block
	end := min(w.size, (at+length+w.block-1)/w.block*w.block)
	if at+length > end {
		return damaged("the file has %d bytes but needs %d", w.size, at+length)
	}
	if int64(cap(w.loaded)) < end-begin {
		w.loaded = make([]byte, end-begin)
	}
	w.at = begin
	w.loaded = w.loaded[:end-begin]
	n, err := w.file.ReadAt(w.loaded, begin)
	if int64(n) == end-begin {
		return nil
	}
	w.loaded = w.loaded[:0]
	if err == io.EOF {
		return damaged("the file was truncated while it was read")
	}
	return err
}
