package serve

import (
	"flag"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/robotstest"
)

// A block is a fenced code block of the guide.
type block struct {
	language string
	text     string
	prints   string // the text block that follows it
}

// guide returns the text and the code blocks of docs/tools/any-language.md.
func guide(t *testing.T) (text string, blocks []block) {
	t.Helper()
	content, err := os.ReadFile("../../../../docs/tools/any-language.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(string(content), -1) {
		if m[1] == "text" {
			blocks[len(blocks)-1].prints = m[2]
			continue
		}
		blocks = append(blocks, block{language: m[1], text: m[2]})
	}
	return string(content), blocks
}

// TestGuide runs the requests of the guide, and compares the program that it shows with the example.
func TestGuide(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	web := robotstest.New(t, robotstest.Sites{"example.com": {"/robots.txt": "User-agent: *\nDisallow: /cart\n"}})
	service, err := newService(settings{maxTurns: 10, expire: time.Minute},
		collyrobots.RobotsClient(&http.Client{Transport: web.Transport()}),
		collyrobots.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	address := startService(t, "127.0.0.1:0", service)
	example, err := os.ReadFile(filepath.Join(examples, "polite.py"))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	_, blocks := guide(t)
	for _, b := range blocks {
		switch {
		case b.language == "python":
			if b.text != string(example) {
				t.Error("the program in Python is not examples/serve/polite.py")
			}
			ran++
		case strings.HasPrefix(b.text, "curl "):
			text := strings.ReplaceAll(b.text, "127.0.0.1:8094", address)
			cmd := exec.CommandContext(t.Context(), "sh", "-c", text)
			cmd.Env = append(os.Environ(), "NO_PROXY=*")
			out, err := cmd.Output()
			want := strings.ReplaceAll(regexp.QuoteMeta(b.prints), `\.\.\.`, ".*")
			if err != nil || !regexp.MustCompile("^"+want+"$").Match(out) {
				t.Errorf("%s%v\n%s\nThe guide says\n%s", b.text, err, out, b.prints)
			}
			ran++
		}
	}
	if ran < 3 {
		t.Errorf("%d blocks were found", ran)
	}
}

// TestGuideHasFlags checks that the guide names each flag, and no other.
func TestGuideHasFlags(t *testing.T) {
	text, _ := guide(t)
	named := make(map[string]bool)
	for _, m := range regexp.MustCompile("`(?:collyrobots serve )?-([a-z-]+)").FindAllStringSubmatch(text, -1) {
		named[m[1]] = true
	}
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	new(job).define(flags)
	flags.VisitAll(func(f *flag.Flag) {
		if !named[f.Name] {
			t.Errorf("the guide does not name -%s", f.Name)
		}
		delete(named, f.Name)
	})
	for name := range named {
		t.Errorf("the guide names -%s, which is no flag", name)
	}
}
