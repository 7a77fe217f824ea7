package input

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/usage"
)

func TestList(t *testing.T) {
	for text, want := range map[string][]string{
		"":                            nil,
		"a.test":                      {"a.test"},
		"\ufeff# x\r\n\r\n b.test \n": {"b.test"},
		"a.test # x\n#y\n\ufeffc":     {"a.test # x", "c"},
	} {
		if got, err := List("-", strings.NewReader(text)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, name := range []string{"-", "/does/not/exist"} {
		_, err := List(name, strings.NewReader(strings.Repeat("a", 2<<20)))
		want := strings.Replace(name, "-", "standard input: ", 1)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPace checks that the flags are parsed, and the faults that they report themselves.
func TestPace(t *testing.T) {
	for _, test := range []struct {
		args []string
		want Hours
		err  string
	}{
		{[]string{"-zone=nowhere"}, Hours{}, ""},
		{[]string{"-pace-by=domain", "-hours=22:00-06:30", "-zone=UTC"}, Hours{From: "22:00", To: "06:30", Zone: time.UTC}, ""},
		{[]string{"-pace-by=server"}, Hours{}, `invalid value "server" for flag -pace-by: use host, domain or address`},
		{[]string{"-hours=22:00"}, Hours{}, "-hours 22:00: want a window such as 22:00-06:00"},
		{[]string{"-hours=22:00-06:00", "-zone=Mars"}, Hours{}, "-zone Mars: unknown time zone Mars"},
	} {
		var p Pace
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		p.Define(flags)
		err := flags.Parse(test.args)
		if err == nil {
			_, err = p.Options()
		}
		if got := fmt.Sprint(err); err != nil && got != test.err || err == nil && test.err != "" {
			t.Errorf("%q: %v, want %s", test.args, err, test.err)
		}
		if h, _ := p.Hours(); err == nil && (h != test.want || (p.By == collyrobots.ByDomain) != (h.From != "")) {
			t.Errorf("%q: %+v", test.args, p)
		}
	}
}

func TestPurpose(t *testing.T) {
	if p, err := Purpose("search, train-ai"); p != usage.Search|usage.TrainAI || err != nil {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := Purpose("search,sell"); err == nil || err.Error() != "sell: use search, ai-use or train-ai" {
		t.Error(err)
	}
}

func TestNames(t *testing.T) {
	if names := Names(" a,b, c d,"); !slices.Equal(names, []string{"a", "b", "c", "d"}) {
		t.Errorf("%q", names)
	}
}

func TestURL(t *testing.T) {
	for arg, want := range map[string]string{
		"example.com": "https://example.com", "localhost:8080/x": "https://localhost:8080/x", "http://a.test/": "http://a.test/",
		"ftp://a.test/": "", "a b": "", "": "", "http://": "", "/x": "",
	} {
		if got, err := URL(arg); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", arg, got, err, want)
		}
	}
}

// TestUnusualURLs checks that the error about a URL has the reason why no request can be sent to it. Package
// net/url rejects some of the URLs itself.
func TestUnusualURLs(t *testing.T) {
	for _, test := range kit.UnusualURLs {
		if test.Reason == "" {
			continue
		}
		_, err := URL(test.URL)
		text := fmt.Sprint(err)
		if err == nil || len(text) > 1000 || !strings.Contains(text, test.Reason) && !strings.Contains(text, "is above 65535") && !strings.Contains(text, "is not a host or a URL of a web page") {
			t.Errorf("%.60q: error %.500q", test.URL, text)
		}
	}
}
