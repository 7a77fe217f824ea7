package term

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

func TestSafe(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"plain ü 世界 é":                       "plain ü 世界 é",
		"\x1b]0;title\a\x1b[2J":              `\x1b]0;title\a\x1b[2J`,
		"a\r\nb\tc\x7f":                      `a\r\nb\tc\x7f`,
		"\u0085\u009b31m":                    `\u0085\u009b31m`,
		"a\u202eb\u2066c\u200b\ufeff\u2028":  `a\u202eb\u2066c\u200b\ufeff\u2028`,
		"\xff\x80\ufffd":                     `\xff\x80` + "\ufffd",
		"\U000e0041":                         `\U000e0041`,
		"at http://joe:secret@a.test/x, and": "at http://joe:xxxxx@a.test/x, and",
		"http://joe:sec\x1bret@a.test/":      "http://xxxxx@a.test/",
	} {
		if got := Safe(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func FuzzSafe(f *testing.F) {
	f.Add("a\x1b[31m \u202e \xff ://joe:secret@")
	f.Fuzz(func(t *testing.T, text string) {
		safe := Safe(text)
		if !utf8.ValidString(safe) || strings.ContainsFunc(safe, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q becomes %q", text, safe)
		}
		for n := range 12 {
			if columns := columnsOf(cut(safe, n+1)); columns > max(n+1, 3) {
				t.Errorf("%q cut to %d columns has %d", safe, n+1, columns)
			}
			if got := strings.Join(Wrap(safe, n+2), ""); strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(safe, " ", "") {
				t.Errorf("%q wrapped: %q", safe, got)
			}
		}
	})
}

func TestFprintf(t *testing.T) {
	var b strings.Builder
	Fprintf(&b, "%s: %v, %d\n", "a\nb", errors.New("\x1b[1m"), 7)
	if want := "a\\nb: \\x1b[1m, 7\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// TestJSON checks that JSON writes no characters that control a terminal, and that the result reads
// back as the given value.
func TestJSON(t *testing.T) {
	given := "\x00\x1b[31m\x7f\u0085\u009b\u202e\u2028\U000e0041 \"\\ <a&b> ü\n http://a.test/"
	var b strings.Builder
	if err := JSON(&b, []string{given, "http://joe:secret@a.test/"}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsFunc(b.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		t.Errorf("%q", b.String())
	}
	var got []string
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got[0] != given || got[1] != "http://joe:xxxxx@a.test/" {
		t.Errorf("%q", got)
	}
	if err := JSON(&b, math.NaN()); err == nil {
		t.Error("no error")
	}
}

// TestList checks that a table without heads has no line for them.
func TestList(t *testing.T) {
	list := NewTable(Column{}, Column{})
	list.Row("http://a.test/", "line 3")
	list.Row("http://b.test/long", "404 Not Found")
	var b strings.Builder
	list.Print(&b, 0)
	if want := "  http://a.test/      line 3\n  http://b.test/long  404 Not Found\n"; b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestErrors(t *testing.T) {
	var b strings.Builder
	Errors(&b, "tool", errors.Join(errors.New("collyrobots: one\x07"), errors.New("two")))
	if want := "tool: one\\a\ntool: two\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func TestDuration(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		0: "0s", 250 * time.Millisecond: "250ms", 1500 * time.Millisecond: "1.5s", 59*time.Second + 960*time.Millisecond: "1m",
		100 * time.Second: "1m40s", time.Hour - time.Millisecond: "1h", 39*time.Hour + 54*time.Minute: "39h54m", 2*day - time.Second: "2d",
		12*day + 6*time.Hour: "12d6h", 400 * day: "1y35d", math.MaxInt64: "292y171d", -time.Minute: "-1m", 365*day - time.Minute: "1y",
		math.MinInt64: "-292y171d",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := Count(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if got := Number(1, "page") + ", " + Number(1200, "page"); got != "1 page, 1,200 pages" {
		t.Error(got)
	}
}

func TestTable(t *testing.T) {
	table := NewTable(Column{Head: "host", Least: 8}, Column{Head: "pages", Right: true}, Column{Head: "delay", Right: true, Spare: true}, Column{Head: "why"})
	table.Row("www.example.com", "1,200", "2s", "line 3: Disallow: /a and more of it")
	table.Row("b\x1b[1m", "", "", "")
	table.Row("世界.test", "7", "250ms", "no rule")
	for _, test := range []struct {
		width int
		want  string
	}{
		{0, `
  host             pages  delay  why
  www.example.com  1,200     2s  line 3: Disallow: /a and more of it
  b\x1b[1m             -      -
  世界.test            7  250ms  no rule
`},
		{60, `
  host             pages  delay  why
  www.example.com  1,200     2s  line 3: Disallow: /a and
                                 more of it
  b\x1b[1m             -      -
  世界.test            7  250ms  no rule
`},
		{46, `
  host      pages  delay  why
  www.exa…  1,200     2s  line 3: Disallow: /a
                          and more of it
  b\x1b[1m      -      -
  世界.te…      7  250ms  no rule
`},
		{37, `
  host             pages  why
  www.example.com  1,200
    line 3: Disallow: /a and more of
    it
  b\x1b[1m             -
  世界.test            7  no rule
`},
		{20, `
  host         pages
    why
  www.exampl…  1,200
    line 3:
    Disallow: /a and
    more of it
  b\x1b[1m         -
  世界.test        7
    no rule
`},
	} {
		var b strings.Builder
		table.Print(&b, test.width)
		if got := "\n" + b.String(); got != test.want {
			t.Errorf("width %d:%swant%s", test.width, got, test.want)
		}
	}
}

// TestTableWithoutTail checks that the last column is left out if all its cells are empty.
func TestTableWithoutTail(t *testing.T) {
	table := NewTable(Column{Head: "host"}, Column{Head: "pages", Right: true}, Column{Head: "why"})
	table.Row("a.test", "", "")
	table.Row("b.test", "12")
	var b strings.Builder
	table.Print(&b, 18)
	if want := "  host    pages\n  a.test      -\n  b.test     12\n"; b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

// A screen is a terminal with the few functions that a Display needs.
type screen struct {
	columns int
	rows    []string
	at      int // the row of the cursor
}

func (s *screen) Write(p []byte) (int, error) {
	for text := string(p); text != ""; {
		switch {
		case strings.HasPrefix(text, "\x1b[2K"):
			s.rows[s.at], text = "", text[4:]
		case strings.HasPrefix(text, "\x1b[1A"):
			s.at, text = s.at-1, text[4:]
		case text[0] == '\r':
			text = text[1:] // an escape always follows
		case text[0] == '\n':
			s.at++
			if s.at == len(s.rows) {
				s.rows = append(s.rows, "")
			}
			text = text[1:]
		default:
			if len(s.rows) == 0 {
				s.rows = []string{""}
			}
			if len(s.rows[s.at]) == s.columns {
				s.at++
				s.rows = append(s.rows, "")
			}
			s.rows[s.at] += text[:1]
			text = text[1:]
		}
	}
	return len(p), nil
}

func TestDisplay(t *testing.T) {
	s := &screen{columns: 20}
	d := NewDisplay(s)
	d.live = true
	d.size = func() int { return s.columns }
	want := func(rows ...string) {
		t.Helper()
		if got := strings.TrimRight(strings.Join(s.rows, "\n"), "\n"); got != strings.Join(rows, "\n") {
			t.Fatalf("screen:\n%s\nwant\n%s", got, strings.Join(rows, "\n"))
		}
	}
	d.Show("one", "two")
	want("one", "two")
	d.Printf("%s stays", "a\x1b[1m")
	want(`a\x1b[1m stays`)
	d.Show("1", "2", "3")
	d.Show("four")
	want(`a\x1b[1m stays`, "four")
	d.Write([]byte("log\x07\nmore\n"))
	d.Show("five", "sixsixsixsixsixsix")
	want(`a\x1b[1m stays`, `log\a`, "more", "five", "sixsixsixsixsixsix")
	s.columns = 10 // the terminal wraps the lines again
	s.rows, s.at = append(s.rows[:4:4], "sixsixsixs", "ixsixsix"), 5
	d.Show("7")
	want(`a\x1b[1m stays`, `log\a`, "more", "7")
	d.Close()
	want(`a\x1b[1m stays`, `log\a`, "more")
}

// TestDisplayInFile checks that a display rewrites nothing if it does not write to a terminal.
func TestDisplayInFile(t *testing.T) {
	var b bytes.Buffer
	d := NewDisplay(&b)
	d.Show("one")
	d.Printf("two")
	d.Close()
	if d.Live() || b.String() != "two\n" {
		t.Errorf("live %v, %q", d.Live(), b.String())
	}
}

// TestColor checks that colors do not change the width of a table, and that text is colored only on
// a terminal that has colors.
func TestColor(t *testing.T) {
	paint := Painter{colored: true}
	table := NewTable(Column{Head: "a", Paint: func(cell string) string { return paint.Paint(Red, cell) }}, Column{Head: "b"})
	table.Row("x", "one two three four five")
	table.Row("long", "y")
	var b bytes.Buffer
	table.Print(&b, 24)
	const want = "  \x1b[31ma\x1b[0m     b\n" +
		"  \x1b[31mx\x1b[0m\n    one two three four\n    five\n" +
		"  \x1b[31mlong\x1b[0m  y\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	if got := NewPainter(&b).Paint(Red, "x"); got != "x" {
		t.Errorf("a buffer is not a terminal, but the text is %q", got)
	}
}
