package view

import (
	"strings"
	"time"

	"github.com/collyrobots/collyrobots"
)

const (
	maxBodies = 16 << 20 // octets of robots.txt files that are kept, those that came last
	fileCost  = 1 << 10  // of a file besides its body
)

// files are the robots.txt files that came last, by the URL of each.
type files struct {
	recent recent[string, *robotsFile]
	most   int
	octets int
}

// A robotsFile is what is known of a robots.txt.
type robotsFile struct {
	URL     string    `json:"url"`
	Host    string    `json:"host"`
	Time    time.Time `json:"time"`             // when it was read last
	Status  int       `json:"status,omitempty"` // of the last answer; 0: there was none
	Meaning string    `json:"meaning,omitempty"`
	Hash    string    `json:"hash,omitempty"`
	Error   string    `json:"error,omitempty"`
	Changed time.Time `json:"changed,omitzero"` // when it came to mean something else; zero: it did not

	body []byte // nil: there is none, or it was not seen
}

func newFiles(most int) files {
	return files{recent: newRecent[string, *robotsFile](most / fileCost), most: most}
}

// put notes what a robots.txt was answered with.
func (f *files) put(e collyrobots.Event) {
	key := clip(e.URL)
	old, _ := f.recent.get(key)
	file := &robotsFile{
		URL: key, Host: clip(e.Host), Time: e.Fetched, Status: e.Status, Meaning: string(e.Meaning), Hash: strings.Clone(e.Hash),
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

// replace makes file the latest, and forgets what there is no room for beside it.
func (f *files) replace(key string, file *robotsFile) {
	if cap(file.body) > f.most/2 {
		file.body = nil
	}
	if element, ok := f.recent.byKey[key]; ok {
		f.octets -= cap(element.Value.(*entry[string, *robotsFile]).value.body) + fileCost
		f.recent.order.Remove(element)
		delete(f.recent.byKey, key)
	}
	f.octets += cap(file.body) + fileCost
	for f.octets > f.most {
		f.octets -= cap(f.recent.forget().body) + fileCost
	}
	f.recent.touch(key, func() *robotsFile { return file })
}

// get returns a file that nobody changes any more.
func (f *files) get(url string) (*robotsFile, bool) { return f.recent.get(url) }
