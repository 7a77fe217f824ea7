package audit

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/report"
)

// A rulebook parses the robots.txt files of logs. It keeps the last ones that were used.
type rulebook struct {
	files  map[string]robotsFile // by the digits in Decision.Hash
	parsed map[ruleKey]*list.Element
	recent *list.List // of *parsedRules, the last used first
	size   int        // of the files in parsed, in bytes
}

// A robotsFile is a robots.txt in the folder of a log.
type robotsFile struct {
	folder string
	hash   string // the whole SHA-256
}

type ruleKey struct {
	hash    string
	dialect dialect.Dialect
	token   string
}

type parsedRules struct {
	key   ruleKey
	group *dialect.Group
	size  int // of the file, in bytes
}

// maxParsed and maxParsedSize bound the number and the size of the parsed files in memory.
const (
	maxParsed     = 1000
	maxParsedSize = 8 << 20
)

func newRulebook() *rulebook {
	return &rulebook{files: make(map[string]robotsFile), parsed: make(map[ruleKey]*list.Element), recent: list.New()}
}

// hashDigits is the number of digits in Decision.Hash.
const hashDigits = 32

// maxBody is the largest number of bytes of a robots.txt in a log. Package policy reads less.
const maxBody = 4 << 20

// learn records that a log has a robots.txt with this hash. It returns an error if the file has
// other content.
func (b *rulebook) learn(folder, hash string) error {
	if len(hash) < hashDigits {
		return fmt.Errorf("the hash %q of a robots.txt is malformed", hash)
	}
	file := robotsFile{folder: folder, hash: hash}
	if b.files[hash[:hashDigits]] == file {
		return nil
	}
	_, err := readBody(folder, hash)
	if err != nil {
		return err
	}
	b.files[hash[:hashDigits]] = file
	return nil
}

// readBody returns the robots.txt with a hash.
func readBody(folder, hash string) ([]byte, error) {
	if strings.Trim(hash, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("the hash %q of a robots.txt is malformed", hash)
	}
	name := filepath.Join(folder, hash)
	info, err := os.Stat(name)
	switch {
	case err != nil:
	case info.Size() > maxBody:
		err = errors.New("too large")
	case !info.Mode().IsRegular(): // reading a named pipe would wait for a writer
		err = errors.New("not a regular file")
	}
	var body []byte
	if err == nil {
		body, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("the file robots/%s cannot be read: %w", hash, err)
	}
	sum := sha256.Sum256(body)
	if hex.EncodeToString(sum[:]) != hash {
		return nil, fmt.Errorf("the file robots/%s was replaced: it has another hash", hash)
	}
	return body, nil
}

// group returns the rules of the file and the names in a decision.
func (b *rulebook) group(d *report.Decision) (*dialect.Group, error) {
	key := ruleKey{hash: d.Hash, dialect: d.Dialect, token: d.Token}
	if element := b.parsed[key]; element != nil {
		b.recent.MoveToFront(element)
		return element.Value.(*parsedRules).group, nil
	}
	file, known := b.files[d.Hash]
	if !known {
		return nil, errors.New("the log does not have the robots.txt that decided")
	}
	body, err := readBody(file.folder, file.hash)
	if err != nil {
		return nil, err
	}
	group := d.Dialect.Parse(body).Group(strings.Fields(d.Token)...)
	b.parsed[key] = b.recent.PushFront(&parsedRules{key: key, group: group, size: len(body)})
	b.size += len(body)
	for b.recent.Len() > maxParsed || b.size > maxParsedSize {
		last := b.recent.Remove(b.recent.Back()).(*parsedRules)
		delete(b.parsed, last.key)
		b.size -= last.size
	}
	return group, nil
}

// disagrees decides again about the URL of a decision. It returns "" if the result is the same, and
// otherwise what differs.
func (b *rulebook) disagrees(d *report.Decision) string {
	group, err := b.group(d)
	if err != nil {
		return err.Error()
	}
	u, err := url.Parse(d.URL)
	if err != nil {
		return "the URL is malformed"
	}
	delay, _ := group.CrawlDelay()
	if d.CrawlDelay < delay {
		return fmt.Sprintf("the crawl delay is %v, and the log has %v", delay, d.CrawlDelay)
	}
	if d.Reason == report.ReasonDelay {
		return ""
	}
	got := group.DecideURL(u)
	if got.Allowed != d.Allowed || !isLogged(got.Rule, d.Rule) {
		return fmt.Sprintf("%v decides %s, and the log has %s", d.Dialect, verdict(got.Allowed, got.Rule), verdict(d.Allowed, d.Rule))
	}
	return ""
}

// isLogged reports whether a log has a rule as logged: a long pattern may be shortened, and bytes
// that are not UTF-8 are replaced.
func isLogged(rule, logged dialect.Rule) bool {
	short := rule
	short.Pattern = string([]rune(clipText(rule.Pattern)))
	rule.Pattern = string([]rune(rule.Pattern))
	return rule == logged || short == logged
}

// verdict returns a decision and its rule as text.
func verdict(allowed bool, rule dialect.Rule) string {
	text := "denied"
	if allowed {
		text = "allowed"
	}
	if rule.Line == 0 {
		return text
	}
	return fmt.Sprintf("%s by %q in line %d", text, rule, rule.Line)
}

// isClipped reports whether a text was shortened.
func isClipped(text string) bool { return strings.Contains(text, "#sha256=") }
