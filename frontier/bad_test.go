package frontier_test

import (
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/frontier"
	"github.com/collyrobots/collyrobots/store/urlstore"
)

// rejects checks that Open returns an error for a folder.
func rejects(t *testing.T, dir string, want error) {
	t.Helper()
	f, err := frontier.Open(dir)
	if err == nil {
		f.Close()
	}
	var folder *frontier.FolderError
	if !errors.As(err, &folder) || folder.Dir != dir || !errors.Is(err, want) || !strings.HasPrefix(err.Error(), "frontier: "+dir+": ") {
		t.Errorf("Open: %v, want a FolderError of %s with %v", err, dir, want)
	}
}

func TestFolderInUse(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	rejects(t, dir, frontier.ErrInUse)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip(err)
	}
	rejects(t, link, frontier.ErrInUse)
}

func TestFolderOfALaterVersion(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "collyrobots-frontier"), "collyrobots frontier 2\n")
	rejects(t, dir, frontier.ErrVersion)
	write(t, filepath.Join(dir, "collyrobots-frontier"), "something else\n")
	rejects(t, dir, frontier.ErrDamaged)
}

// TestDamageOfTheVersion flips each bit of the file that names the version. The error must say what
// to do.
func TestDamageOfTheVersion(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	add(t, f, "http://a.test/")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "collyrobots-frontier")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 * len(text) {
		damaged := slices.Clone(text)
		damaged[i/8] ^= 1 << (i % 8)
		write(t, name, string(damaged))
		_, err := frontier.Open(dir)
		if err == nil || !strings.Contains(err.Error(), "remove the file collyrobots-frontier") {
			t.Fatalf("Open with %q: %v, want an error that says what to do", damaged, err)
		}
	}
	for _, spoil := range []func(){
		func() { write(t, name, "") },
		func() { os.Remove(name) },
	} {
		spoil()
		f = open(t, dir, frontier.Logger(quiet))
		if s := f.Stats(); s.Waiting != 1 {
			t.Errorf("%d pages wait, want 1", s.Waiting)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestKillBeforeTheVersion opens a folder whose process was killed after it had created the file that
// names the version, and before it wrote it.
func TestKillBeforeTheVersion(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "collyrobots-frontier")
	write(t, name, "")
	f := open(t, dir)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(name)
	if string(text) != "collyrobots frontier 1\n" {
		t.Errorf("the file has %q, %v", text, err)
	}
	write(t, name, "")
	write(t, filepath.Join(dir, "thesis.txt"), "text")
	if err := os.RemoveAll(filepath.Join(dir, "pages")); err != nil {
		t.Fatal(err)
	}
	rejects(t, dir, frontier.ErrDamaged)
}

func TestFolderOfAnotherProgram(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "thesis.txt"), "text")
	rejects(t, dir, frontier.ErrDamaged)
	if entries, err := os.ReadDir(dir); len(entries) != 1 || err != nil {
		t.Errorf("the folder contains %v, %v", entries, err)
	}
	file := filepath.Join(dir, "thesis.txt")
	if _, err := frontier.Open(file); err == nil || !strings.HasPrefix(err.Error(), "frontier: "+file) {
		t.Errorf("Open of a file: %v", err)
	}
}

func TestFolderIsReadOnly(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs a folder that no user can write")
	}
	rejects(t, "/sys/collyrobots-test", frontier.ErrReadOnly)
}

func TestOnlyTheOwnerCanRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "crawl", "state")
	f := open(t, dir)
	add(t, f, "http://a.test/")
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestFaultsOfOptions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	_, err := frontier.Open(dir, frontier.Window(0), frontier.MaxRecordedPerHost(0), frontier.MaxTotal(-1), frontier.MaxDepth(0),
		frontier.ByPriority(nil), frontier.Recrawl(-time.Second), frontier.Logger(nil), frontier.Option{}, frontier.Window(3))
	want := `frontier: Window: 0 is not a positive number
frontier: MaxRecordedPerHost: 0 is not a positive number
frontier: MaxTotal: -1 is not a positive number
frontier: MaxDepth: 0 is not a positive number
frontier: ByPriority: the function is nil
frontier: Recrawl: -1s is not a positive duration
frontier: Logger: the logger is nil
frontier: Option: number 8 is the zero Option`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	var fault *frontier.OptionError
	if !errors.As(err, &fault) || fault.Option != "Window" {
		t.Errorf("%+v is not the OptionError of Window", fault)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder was created")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// quiet is a logger that drops everything.
var quiet = slog.New(slog.DiscardHandler)

func TestOddPages(t *testing.T) {
	f := open(t, t.TempDir())
	long := strings.Repeat("a", 1<<12+1)
	for _, p := range []*urlstore.Page{nil, {URL: "http://[::1"}, {URL: "http://user:secret@a.test:port/"}, {URL: "http://a.test/", Host: long}} {
		added, err := f.Add(p)
		if added || err == nil || !strings.HasPrefix(err.Error(), "frontier: ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("Add(%.60v) = %v, %v", p, added, err)
		}
		if err := f.Again(p); err == nil {
			t.Errorf("Again(%.60v) succeeded", p)
		}
		if f.Take(p) {
			t.Errorf("Take(%.60v) = true", p)
		}
	}
	if err := f.End(nil, urlstore.Done); err != nil {
		t.Error(err)
	}
	if err := f.End(&urlstore.Page{ID: 1}, 17); err == nil {
		t.Error("End accepts an unknown result")
	}
	odd := []urlstore.Page{
		{}, {URL: "\x00\xff"}, {URL: "data:x"}, {URL: "a b"}, {URL: "http://a.test/" + long}, {URL: "x", Host: "\x00", Key: "\x00"},
		{URL: "http://[::1", Host: "h", Key: "k"}, {URL: "http://a.test/", Depth: -5, Collector: -7, From: "\xff", Request: []byte{}},
		{URL: "http://a.test/", Collector: math.MaxInt, Depth: math.MinInt},
	}
	f.Pace("", time.Now(), false)
	for _, p := range odd {
		if added, err := f.Add(&p); !added || err != nil {
			t.Errorf("Add(%.60v) = %v, %v", p, added, err)
		}
	}
	for range odd {
		p, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f.Pace(p.Host, time.Now(), false)
		finish(t, f, p, urlstore.Done)
	}
	end(t, f)
}

func TestClosed(t *testing.T) {
	f := open(t, t.TempDir())
	p := &urlstore.Page{URL: "http://a.test/"}
	if err := f.Again(p); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	_, errAdd := f.Add(&urlstore.Page{URL: "http://a.test/2"})
	_, errNext := f.Next(t.Context())
	for _, err := range []error{errAdd, errNext, f.Again(p), f.End(p, urlstore.Done)} {
		if !errors.Is(err, frontier.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	}
	if f.Take(p) {
		t.Error("Take = true")
	}
	f.Pace("a.test", time.Now(), true)
	if s := f.Stats(); s.Out != 1 {
		t.Errorf("%+v", s)
	}
}
