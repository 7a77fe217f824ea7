package plan

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// waitingFile is the file in the folder of a frontier that has the number of waiting pages of each
// host. It can be read while the crawl runs.
const waitingFile = "waiting.jsonl"

// errNothingWaits says that the crawl of a frontier has no more pages. This is no fault.
var errNothingWaits = errors.New("no page waits in the frontier")

// readFrontier reads the sites from the folder of a frontier.
func (j *job) readFrontier(dir string) error {
	file := filepath.Join(dir, waitingFile)
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("-frontier: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Scan()
	var head struct {
		Version int       `json:"version"`
		Written time.Time `json:"written"`
	}
	if err := json.Unmarshal(lines.Bytes(), &head); err != nil || head.Version != 1 {
		return fmt.Errorf("-frontier: %s does not begin with a line that names version 1", file)
	}
	j.frontierTime = head.Written
	for n := 2; lines.Scan(); n++ {
		s, err := parseWaiting(lines.Bytes())
		if err != nil {
			return fmt.Errorf("-frontier: %s: line %d: %w", file, n, err)
		}
		j.sites = append(j.sites, s)
	}
	err = lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("-frontier: %s: a line has more than %d bytes", file, bufio.MaxScanTokenSize)
	}
	if err == nil && len(j.sites) == 0 {
		return errNothingWaits
	}
	return err
}

// parseWaiting parses a line with the number of waiting pages of a host.
func parseWaiting(line []byte) (site, error) {
	var w struct {
		Host    string `json:"host"`
		Waiting int    `json:"waiting"`
	}
	err := json.Unmarshal(line, &w)
	if err != nil {
		return site{}, err
	}
	s, err := parseSite(w.Host)
	if err != nil {
		return site{}, err
	}
	if w.Waiting < 0 {
		return site{}, fmt.Errorf("the number of waiting pages is %d", w.Waiting)
	}
	s.waiting = w.Waiting
	return s, nil
}
