package metatags

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// x is a meta element whose presence the tests look for.
const x = `<meta name="x" content="1">`

// Each case is named after the clause of the HTML standard that it tests.
var heads = map[string]struct {
	page string
	want bool // whether x is found
}{
	"in a head":                              {"<!DOCTYPE html><html><head>" + x + "</head><body></body></html>", true},
	"without tags for html and head":         {x + "<p>text</p>", true},
	"after comment, doctype and blanks":      {"\ufeff <!-- c --> <!DOCTYPE html>\n\t" + x, true},
	"after title, script, style, link":       {"<title>a <b></title><script>if (a<b) {}</script><style>p{}</style><link rel=a><base href=/>" + x, true},
	"in noscript":                            {"<head><noscript>" + x + "</noscript>", true},
	"after the end of head, before the body": {"<head></head>" + x + "<body>", true},
	"upper case, without quotes":             {"<HEAD><META NAME=X CONTENT=1>", true},
	"self-closing":                           {"<head><meta name='x' content='1'/></head>", true},
	"unclosed head":                          {"<head>" + x, true},
	"in the body":                            {"<head></head><body>" + x, false},
	"after text":                             {"<head>text" + x, false},
	"after text in noscript":                 {"<head><noscript>text</noscript>" + x, false},
	"after an element of the body":           {"<head><div></div>" + x, false},
	"after the end of body":                  {"<head></head></body>" + x, false},
	"after an unknown element":               {"<head><x-y>" + x, false},
	"in a comment":                           {"<head><!--" + x + "--></head>", false},
	"in a script":                            {"<head><script>" + x + "</script></head>", false},
	"in a title":                             {"<head><title>" + x + "</title></head>", false},
	"in a template":                          {"<head><template><div>" + x + "</div></template></head>", false},
	"in a nested template":                   {"<head><template><template></template>text" + x + "</template></head>", false},
	"after a template":                       {"<head><template>text<div></div></template>" + x + "</head>", true},
	"an end tag without a start":             {"</template></p></head>" + x, true},
	"an empty page":                          {"", false},
	"not HTML":                               {"{\"a\": 1}" + x, false},
}

func TestHead(t *testing.T) {
	for name, test := range heads {
		t.Run(name, func(t *testing.T) {
			tags := Read([]byte(test.page))
			if got := tags.Content("x") == "1"; got != test.want {
				t.Errorf("Read(%q) = %v, want x found = %v", test.page, tags, test.want)
			}
		})
	}
}

func TestAttributes(t *testing.T) {
	page := `<meta charset=utf-8><meta name=" Robots " content="noindex&comma; nofollow"><meta content=a>
		<meta name=b name=c content=1 content=2><meta name=d><meta name=robots content=none><meta property=og:x content=y>`
	want := Tags{{"robots", "noindex, nofollow"}, {"b", "1"}, {"d", ""}, {"robots", "none"}}
	got := Read([]byte(page))
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for name, want := range map[string]string{"robots": "noindex, nofollow", "d": "", "missing": ""} {
		if content := got.Content(name); content != want {
			t.Errorf("Content(%q) = %q, want %q", name, content, want)
		}
	}
}

// A head without end is read up to MaxHead.
func TestHugeHead(t *testing.T) {
	page := "<head>" + strings.Repeat("<meta name=a content=b>", 1_000_000) + x
	tags := Read([]byte(page))
	if n := len(tags); n > MaxHead/20 || n < MaxHead/30 {
		t.Errorf("got %d tags of %d bytes", n, len(page))
	}
	tags = Read([]byte("<head><meta name='" + strings.Repeat("a", 10*MaxHead) + "'>"))
	if len(tags) > 1 || len(tags) == 1 && len(tags[0].Name) > MaxHead {
		t.Errorf("got %d tags", len(tags))
	}
}

// FuzzRead compares Read with the parser of golang.org/x/net/html, which builds the whole tree. The
// parser does not know which elements count, so only pages without templates, frames and foreign
// elements are compared.
func FuzzRead(f *testing.F) {
	for _, test := range heads {
		f.Add([]byte(test.page))
	}
	f.Fuzz(func(t *testing.T, page []byte) {
		tags := Read(page)
		for _, tag := range tags {
			if tag.Name == "" || tag.Name != strings.ToLower(tag.Name) {
				t.Errorf("tag %q", tag)
			}
		}
		lower := bytes.ToLower(page)
		for _, word := range []string{"template", "frame", "noscript", "\x00", "cdata", "\ufeff"} {
			if bytes.Contains(lower, []byte(word)) {
				return
			}
		}
		if want := ofTree(page); len(page) < MaxHead && fmt.Sprintf("%q", tags) != fmt.Sprintf("%q", want) {
			t.Errorf("Read(%q) = %q, the parser has %q", page, tags, want)
		}
	})
}

// ofTree returns the meta elements with a name in the head of the parsed page.
func ofTree(page []byte) (tags Tags) {
	root, err := html.ParseWithOptions(bytes.NewReader(page), html.ParseOptionEnableScripting(false))
	if err != nil {
		return nil
	}
	var head *html.Node
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == "head" && head == nil {
			head = n
		}
	}
	for n := range head.Descendants() {
		if n.Type != html.ElementNode || n.Data != "meta" {
			continue
		}
		var tag Tag
		var named, contents bool
		for _, a := range n.Attr {
			switch {
			case a.Key == "name" && !named:
				named = true
				tag.Name = strings.ToLower(strings.TrimSpace(a.Val))
			case a.Key == "content" && !contents:
				contents = true
				tag.Content = a.Val
			}
		}
		if tag.Name != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}

func BenchmarkRead(b *testing.B) {
	page := []byte("<!DOCTYPE html><html><head>" + strings.Repeat("<meta property=og:title content='A title of some length'>\n<link rel=stylesheet href=/static/style.css>\n<script>var a = 1 < 2;</script>", 30) +
		"<meta name=robots content=noindex></head><body>" + strings.Repeat("<p>text <a href=/>link</a></p>", 10_000))
	b.SetBytes(int64(bytes.Index(page, []byte("<body>"))))
	b.ReportAllocs()
	for b.Loop() {
		Read(page)
	}
}
