package collyrobots

import (
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/usage"
)

// TestTDMFilesAreBounded checks that neither many sites nor large files take unlimited memory, and
// that a file that is being read is kept.
func TestTDMFilesAreBounded(t *testing.T) {
	now := time.Now()
	site := func(i int) dialect.Authority {
		return dialect.Authority{Scheme: "https", Host: fmt.Sprintf("%d.test", i)}
	}
	for _, size := range []int{0, maxTDMFile} {
		var files tdmFiles
		if _, known, reading := files.claim(site(-1), now); known || reading != nil {
			t.Fatal("the first caller must read the file")
		}
		for i := range 2 * maxTDMSites {
			files.claim(site(i), now)
			files.put(site(i), tdmCopy{size: size, expires: now.Add(time.Hour)}, nil)
		}
		sum := 0
		for _, s := range files.sites {
			sum += s.size
		}
		if len(files.sites) > maxTDMSites || files.size > maxTDMSizes || sum != files.size {
			t.Errorf("%d sites, %d bytes, counted as %d", len(files.sites), sum, files.size)
		}
		if _, known, _ := files.claim(site(2*maxTDMSites-1), now); !known {
			t.Error("the last file is not known")
		}
		if _, known, reading := files.claim(site(-1), now); known || reading == nil {
			t.Error("a file that is being read was dropped")
		}
		files.put(site(-1), tdmCopy{}, errors.New("the context has ended"))
		if _, known, reading := files.claim(site(-1), now); known || reading != nil {
			t.Error("after an error, the next caller must read the file")
		}
	}
}

// TestRecentIsBounded checks that the verdicts for Plugin.Usage do not take unlimited memory.
func TestRecentIsBounded(t *testing.T) {
	var s uses
	var last *url.URL
	for range 3 * maxRecent {
		last = &url.URL{Host: "a.test"}
		s.add(last, verdict{reason: ReasonRule}, usage.Preferences{})
		s.add(last, verdict{reason: ReasonNoRule}, usage.Preferences{})
	}
	if len(s.recent) != maxRecent || len(s.order) != maxRecent {
		t.Errorf("%d verdicts, %d in order", len(s.recent), len(s.order))
	}
	v, known := s.find(last)
	if !known || v.reason != ReasonNoRule {
		t.Errorf("the last verdict is %v, known %v", v.reason, known)
	}
	if n := s.statistics().Search.Unknown; n != 6*maxRecent {
		t.Errorf("%d pages", n)
	}
}
