package frontier_test

import (
	"testing"

	"github.com/collyrobots/collyrobots/store/urlstore"
)

// TestKnownPage adds a page again in each of its states.
func TestKnownPage(t *testing.T) {
	f := open(t, t.TempDir())
	add(t, f, "http://a.test/1")
	waits := &urlstore.Page{URL: "http://a.test/1"}
	if added, err := f.Add(waits); added || err != nil {
		t.Fatalf("Add of a page that waits = %v, %v", added, err)
	}
	p, err := f.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if waits.ID != p.ID {
		t.Errorf("ID of a page that waits is %d, want %d", waits.ID, p.ID)
	}
	out := &urlstore.Page{URL: "http://a.test/1#fragment"}
	if added, err := f.Add(out); added || err != nil || out.ID != p.ID {
		t.Errorf("Add of a page that is out = %v, %v with ID %d, want ID %d", added, err, out.ID, p.ID)
	}
	if err := f.Done(p); err != nil {
		t.Fatal(err)
	}
	if added, err := f.Add(&urlstore.Page{URL: "http://a.test/1"}); added || err != nil {
		t.Errorf("Add of a page that is done = %v, %v", added, err)
	}
	if got := f.Stats().Duplicates; got != 3 {
		t.Errorf("%d duplicates, want 3", got)
	}
	f.Close()
	if _, err := f.Add(&urlstore.Page{URL: "http://a.test/1"}); err == nil {
		t.Error("Add after Close returned no error")
	}
}
