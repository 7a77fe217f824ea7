package view

import (
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/report"
)

const (
	maxBodies = 16 << 20 // bytes of robots.txt files; the latest are kept
	fileCost  = 1 << 10  // bytes of memory for a file without its body
)

// files holds the latest robots.txt files, by URL.
type files struct {
	recent recent[string, *robotsFile]
	most   int // bytes
	bytes  int // in use
}

// A robotsFile is the result of the last fetch of a robots.txt.
type robotsFile struct {
	URL          string    `json:"url"`
	Host         string    `json:"host"`
	Time         time.Time `json:"time"`             // when it was last read
	Status       int       `json:"status,omitempty"` // the status of the last response; 0 if there was none
	RobotsStatus string    `json:"robots_status,omitempty"`
	Option       string    `json:"option,omitempty"` // as in Event
	Hash         string    `json:"hash,omitempty"`
	Error        string    `json:"error,omitempty"`
	Changed      time.Time `json:"changed,omitzero"` // when its rules last changed; zero if it did not

	body []byte // nil if there is none or it is not available
}

func newFiles(most int) files {
	return files{recent: newRecent[string, *robotsFile](most / fileCost), most: most}
}

// put records the result of a fetch of a robots.txt. If the file is unchanged, put keeps the
// earlier body.
func (f *files) put(e *report.Event) {
	key := clip(e.URL)
	old, _ := f.recent.get(key)
	file := &robotsFile{
		URL: key, Host: clip(e.Host), Time: e.Fetched, Status: e.Status, RobotsStatus: string(e.RobotsStatus), Option: e.Option, Hash: strings.Clone(e.Hash),
		body: e.Body,
	}
	if e.Err != nil {
		file.Error = clip(e.Err.Error())
	}
	if old != nil {
		file.Changed = old.Changed
		if file.body == nil && file.Hash != "" && file.Hash == old.Hash {
			file.body = old.body
		}
	}
	if e.Change != nil {
		file.Changed = e.Time
	}
	f.replace(key, file)
}

// replace adds a file as the latest one, and removes the oldest files if there is not enough room.
func (f *files) replace(key string, file *robotsFile) {
	if cap(file.body) > f.most/2 {
		file.body = nil
	}
	if element, ok := f.recent.byKey[key]; ok {
		f.bytes -= cap(element.Value.(*entry[string, *robotsFile]).value.body) + fileCost
		f.recent.order.Remove(element)
		delete(f.recent.byKey, key)
	}
	f.bytes += cap(file.body) + fileCost
	for f.bytes > f.most {
		f.bytes -= cap(f.recent.forget().body) + fileCost
	}
	f.recent.touch(key, func() *robotsFile { return file })
}

// get returns a file. The file is not changed afterwards.
func (f *files) get(url string) (*robotsFile, bool) { return f.recent.get(url) }
