package usage_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/usage"
)

// A site is what a site says in all places. robots has lines such as "content-usage: / train-ai=n".
type site struct {
	robots, tdm, headers string
	meta                 map[string]string
}

// terms evaluates a site for https://a.test/x.
func (s site) terms(t *testing.T) usage.Terms {
	t.Helper()
	var lines []dialect.UsageLine
	for i, line := range strings.Split(s.robots, "\n") {
		key, value, _ := strings.Cut(line, ":")
		if key != "" {
			lines = append(lines, dialect.UsageLine{Key: key, Value: value, Line: i + 1})
		}
	}
	sources := usage.Sources{Robots: usage.ParseRobotsTxt(lines), RobotsHash: "h"}
	if s.tdm != "" {
		file, err := usage.ParseTDMFile([]byte(s.tdm), usage.Source{Name: "tdmrep.json", Hash: "t"})
		if err != nil {
			t.Fatal(err)
		}
		sources.TDMFile = file
	}
	for _, line := range strings.Split(s.headers, "\n") {
		key, value, ok := strings.Cut(line, ": ")
		if !ok {
			continue
		}
		if sources.Header == nil {
			sources.Header = make(http.Header)
		}
		sources.Header.Add(key, value)
	}
	if s.meta != nil {
		sources.Meta = func(name string) string { return s.meta[name] }
	}
	return sources.Terms(parse(t, "https://a.test/x"))
}

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

const reserved, free = `[{"location": "/", "tdm-reservation": 1, "tdm-policy": "https://a.test/p"}]`, `[{"location": "/", "tdm-reservation": 0}]`

// sites are sites, and the preferences for search, ai-use and train-ai with the names of their
// sources.
var sites = []struct {
	name string
	site site
	want string
}{
	{"nothing", site{}, "? ? ?"},
	{"Content-Usage in robots.txt", site{robots: "Content-Usage: / train-ai=n"}, "? ? n:robots.txt:1:h"},
	{"Content-Usage for another path", site{robots: "Content-Usage: /y train-ai=n"}, "? ? ?"},
	{"Content-Signal in robots.txt", site{robots: "content-signal: search=yes, ai-input=no"}, "y:robots.txt:1:h n:robots.txt:1:h ?"},
	{"two signals, the restrictive one counts", site{robots: "Content-Signal: ai-train=yes\nContent-Signal: ai-train=no"}, "? ? n:robots.txt:2:h"},
	{"two signals in the other order", site{robots: "Content-Signal: ai-train=no\nContent-Signal: ai-train=yes"}, "? ? n:robots.txt:1:h"},
	{"usage and signal, disallow beats allow", site{robots: "Content-Usage: train-ai=y\nContent-Signal: ai-train=no"}, "? ? n:robots.txt:2:h"},
	{"usage before signal if equal", site{robots: "Content-Signal: ai-train=no\nContent-Usage: train-ai=n"}, "? ? n:robots.txt:2:h"},
	{"header", site{headers: "Content-Usage: train-ai=n"}, "? ? n:Content-Usage:0:"},
	{"header disallows, file allows", site{robots: "Content-Usage: / train-ai=y", headers: "Content-Usage: train-ai=n"}, "? ? n:Content-Usage:0:"},
	{"header allows, file disallows", site{robots: "Content-Usage: / train-ai=n", headers: "Content-Usage: train-ai=y"}, "? ? n:robots.txt:1:h"},
	{"malformed header", site{robots: "Content-Usage: / train-ai=y", headers: "Content-Usage: train-ai=n,"}, "? ? y:robots.txt:1:h"},
	{"two header lines", site{headers: "Content-Usage: search=y\nContent-Usage: train-ai=n"}, "y:Content-Usage:0: ? n:Content-Usage:0:"},
	{"signal header", site{headers: "Content-Signal: ai-train=no, search=yes"}, "y:Content-Signal:0: ? n:Content-Signal:0:"},
	{"TDM file", site{tdm: reserved}, "? n:tdmrep.json:0:t n:tdmrep.json:0:t"},
	{"TDM file that reserves nothing", site{tdm: free}, "? y:tdmrep.json:0:t y:tdmrep.json:0:t"},
	{"TDM header overrides the file", site{tdm: reserved, headers: "tdm-reservation: 0"}, "? y:tdm-reservation:0: y:tdm-reservation:0:"},
	{"TDM header without a valid value", site{tdm: reserved, headers: "tdm-reservation: no"}, "? n:tdmrep.json:0:t n:tdmrep.json:0:t"},
	{"meta overrides header and file", site{tdm: reserved, headers: "tdm-reservation: 1", meta: map[string]string{"tdm-reservation": "0"}}, "? y:meta tdm-reservation:0: y:meta tdm-reservation:0:"},
	{"meta", site{meta: map[string]string{"tdm-reservation": "1"}}, "? n:meta tdm-reservation:0: n:meta tdm-reservation:0:"},
	{"other meta", site{tdm: free, meta: map[string]string{"robots": "noindex"}}, "? y:tdmrep.json:0:t y:tdmrep.json:0:t"},
	{"TDM and usage, disallow beats allow", site{robots: "Content-Usage: train-ai=n", tdm: free}, "? y:tdmrep.json:0:t n:robots.txt:1:h"},
	{"TDM header lifts only TDM", site{robots: "Content-Signal: ai-train=no", tdm: reserved, headers: "tdm-reservation: 0"}, "? y:tdm-reservation:0: n:robots.txt:1:h"},
	{"all of them", site{robots: "Content-Usage: search=y\nContent-Signal: ai-input=yes", tdm: free, headers: "Content-Usage: train-ai=n"}, "y:robots.txt:1:h y:robots.txt:2:h n:Content-Usage:0:"},
}

func TestTerms(t *testing.T) {
	for _, tc := range sites {
		p := tc.site.terms(t).Preferences
		var got []string
		for _, s := range []usage.Statement{p.Search, p.AIUse, p.TrainAI} {
			text := map[usage.Preference]string{usage.Unknown: "?", usage.Allowed: "y", usage.Disallowed: "n"}[s.Preference]
			if s.Source != (usage.Source{}) {
				text += fmt.Sprintf(":%s:%d:%s", s.Name, s.Line, s.Hash)
			}
			got = append(got, text)
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%s: got  %s\nwant %s", tc.name, s, tc.want)
		}
	}
}

// TestOtherTerms checks the parts of Terms that are not preferences.
func TestOtherTerms(t *testing.T) {
	terms := site{
		robots: "License: https://a.test/1\nContent-Signal: use=full\nLicense: https://user:secret@b.test/2\nLicense: /relative\nLicense: https://a.test/1\nLicense: ftp://a.test/",
		tdm:    reserved,
		headers: `Link: </3>; rel="license"; type="application/rsl+xml", <https://a.test/next>; rel=next
Link: <https://a.test/1>; rel=license
Content-Signal: use=reference
tdm-policy: https://a.test/header`,
	}.terms(t)
	var licenses []string
	for _, l := range terms.Licenses {
		licenses = append(licenses, fmt.Sprint(l.URL, " ", l.Name, " ", l.Line, " ", l.Hash))
	}
	want := "https://a.test/1 robots.txt 1 h, https://b.test/2 robots.txt 3 h, https://a.test/3 Link 0 "
	if got := strings.Join(licenses, ", "); got != want {
		t.Errorf("licenses: got %s, want %s", got, want)
	}
	if terms.Use != usage.UseReference || terms.TDM.Policy != "https://a.test/header" || terms.LicenseRequired {
		t.Errorf("got %+v", terms)
	}
	var many site
	for i := range 100 {
		many.robots += fmt.Sprintf("License: https://a.test/%d\n", i)
	}
	if n := len(many.terms(t).Licenses); n != 16 {
		t.Errorf("%d licenses of a robots.txt with 100", n)
	}
}

// links are Link headers, and the licenses in them.
var links = []struct{ name, value, want string }{
	{"RSL 1.0, Link header", `<https://a.test/license.xml>; rel="license"; type="application/rsl+xml"`, "https://a.test/license.xml"},
	{"token", `<https://a.test/l>;rel=license`, "https://a.test/l"},
	{"case", `<https://a.test/l>; REL="License"`, "https://a.test/l"},
	{"several relations", `<https://a.test/l>; rel="next license"`, "https://a.test/l"},
	{"other relation", `<https://a.test/l>; rel="licenses"`, ""},
	{"first rel counts", `<https://a.test/l>; rel=next; rel=license`, ""},
	{"relative", `<../l>; rel=license`, "https://a.test/l"},
	{"comma in the URL", `<https://a.test/a,b>; rel=license`, "https://a.test/a,b"},
	{"comma in a title", `<https://a.test/n>; title="a, <b>; rel=license", <https://a.test/l>; rel=license`, "https://a.test/l"},
	{"quoted pair", `<https://a.test/l>; title="\", <x>"; rel="licens\e"`, "https://a.test/l"},
	{"two links", `<https://a.test/1>; rel=license, <https://a.test/2>; rel=license`, "https://a.test/1 https://a.test/2"},
	{"no brackets", `https://a.test/l; rel=license`, ""},
	{"open bracket", `<https://a.test/l; rel=license`, ""},
	{"open quote", `<https://a.test/l>; rel="license`, ""},
	{"only commas", `,,,`, ""},
	{"no rel", `<https://a.test/l>`, ""},
	{"another scheme", `<data:text/plain,x>; rel=license`, ""},
	{"anchor of another page", `<https://a.test/l>; rel=license; anchor="/other"`, ""},
	{"anchor before rel", `<https://a.test/l>; anchor="https://b.test/x"; rel=license`, ""},
	{"anchor of a part of the page", `<https://a.test/l>; rel=license; anchor="#image"`, ""},
	{"malformed anchor", `<https://a.test/l>; rel=license; anchor="%zz"`, ""},
	{"anchor of the page", `<https://a.test/l>; rel=license; anchor="https://a.test/x"`, "https://a.test/l"},
	{"relative anchor of the page", `<https://a.test/l>; rel=license; anchor=""`, "https://a.test/l"},
	{"malformed URL", `<https://a.test/%zz>; rel=license`, ""},
}

func TestLinks(t *testing.T) {
	for _, tc := range links {
		var got []string
		for _, l := range (site{headers: "Link: " + tc.value}).terms(t).Licenses {
			got = append(got, l.URL)
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, s, tc.want)
		}
	}
}

func TestLicenseRequired(t *testing.T) {
	for _, tc := range []struct {
		status int
		value  string
		want   bool
	}{
		{401, `License error="invalid_request", error_description="a, b"`, true},
		{401, `license`, true},
		{401, `Basic realm="a, License x", License error="x"`, true},
		{401, "License\terror=\"x\"", true},
		{401, `Bearer scope="x", license = "y"`, false},
		{401, `Bearer scope="x", license ="y"`, false},
		{401, `Bearer scope="x", license="y"`, false},
		{401, `Bearer scope="x", License realm="y"`, true},
		{401, `Basic realm="License"`, false},
		{401, `Basic realm="a, License x"`, false},
		{401, `Licenses x=y`, false},
		{401, ``, false},
		{403, `License`, false},
		{200, `License`, false},
	} {
		got := usage.LicenseRequired(tc.status, http.Header{"Www-Authenticate": {tc.value}})
		if got != tc.want {
			t.Errorf("%d %s: got %v", tc.status, tc.value, got)
		}
	}
	if usage.LicenseRequired(401, nil) {
		t.Error("401 without a header asks for a license")
	}
}

// TestTermsJSON checks the names in JSON, and that it can be read back.
func TestTermsJSON(t *testing.T) {
	want := site{robots: "Content-Usage: train-ai=n\nLicense: https://a.test/1", tdm: reserved, headers: "Content-Signal: use=full"}.terms(t)
	want.LicenseRequired = true
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	expected := `{"preferences":{"ai-use":{"preference":"disallowed","source":"tdmrep.json","hash":"t"},"train-ai":{"preference":"disallowed","source":"robots.txt","line":1,"hash":"h"}},` +
		`"use":"full","tdm":{"reservation":"disallowed","policy":"https://a.test/p","source":"tdmrep.json","hash":"t"},` +
		`"licenses":[{"url":"https://a.test/1","source":"robots.txt","line":2,"hash":"h"}],"license_required":true}`
	if string(text) != expected {
		t.Errorf("got  %s\nwant %s", text, expected)
	}
	var got usage.Terms
	if err := json.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read back: %+v, error %v, want %+v", got, err, want)
	}
	empty, err := json.Marshal(usage.Terms{})
	if string(empty) != `{"preferences":{}}` || err != nil {
		t.Errorf("got %s, error %v", empty, err)
	}
	if err := json.Unmarshal([]byte(`{"search": {"preference": "maybe"}}`), new(usage.Preferences)); err == nil {
		t.Error("an unknown preference is accepted")
	}
}

// TestNothing checks the values of a site that says nothing.
func TestNothing(t *testing.T) {
	if r := usage.ParseRobotsTxt(nil); r != nil || r.Size() != 0 {
		t.Errorf("got %+v", r)
	}
	if got := (*usage.TDMFile)(nil).Of("/"); got != (usage.TDM{}) {
		t.Errorf("got %+v", got)
	}
	if got := usage.ParseRobotsTxt([]dialect.UsageLine{{Key: "Disallow", Value: "/"}}); !reflect.DeepEqual(usage.Sources{Robots: got}.Terms(parse(t, "http://a.test")), usage.Terms{}) {
		t.Errorf("got %+v", got)
	}
}

func FuzzTerms(f *testing.F) {
	for _, tc := range links {
		f.Add("Link", tc.value, "/x")
	}
	f.Add("Www-Authenticate", `Basic realm="a, License x", License error="x"`, "/")
	f.Fuzz(func(t *testing.T, key, value, path string) {
		u := &url.URL{Scheme: "https", Host: "a.test", Path: path}
		h := http.Header{key: {value}, "Link": {value}, "Www-Authenticate": {value}, "Content-Usage": {value}, "Content-Signal": {value}}
		robots := usage.ParseRobotsTxt([]dialect.UsageLine{{Key: key, Value: value, Line: 1}, {Key: "License", Value: value, Line: 2}})
		terms := usage.Sources{Robots: robots, Status: 401, Header: h}.Terms(u)
		said(t, terms.Preferences)
		for _, l := range terms.Licenses {
			if strings.Contains(l.URL, "\n") || !strings.Contains(l.URL, "://") {
				t.Errorf("license %q", l.URL)
			}
		}
	})
}

// BenchmarkTerms measures the sources of a usual page.
func BenchmarkTerms(b *testing.B) {
	lines := []dialect.UsageLine{{Key: "Content-Signal", Value: "search=yes,ai-train=no,use=reference", Line: 2}}
	u := &url.URL{Scheme: "https", Host: "a.test", Path: "/a/b"}
	for name, s := range map[string]usage.Sources{
		"nothing":        {Header: http.Header{"Content-Type": {"text/html"}}},
		"Content-Signal": {Robots: usage.ParseRobotsTxt(lines), Header: http.Header{"Content-Type": {"text/html"}}},
		"header":         {Header: http.Header{"Content-Usage": {"train-ai=n, search=y"}}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Terms(u)
			}
		})
	}
}

// TestLongFields checks how much of a header field is read: the members that are complete within 8
// KiB, in one line or in several.
func TestLongFields(t *testing.T) {
	for _, tc := range []struct {
		name, header, filler, said, cut string // 64 fillers are 8 KiB
		want                            string // if said is read
	}{
		{"Content-Usage", "Content-Usage", "x=" + strings.Repeat("1", 12) + "," + strings.Repeat(" ", 113), "train-ai=n", "train-ai=y", "??n"},
		{"Content-Signal", "Content-Signal", "x=" + strings.Repeat("1", 12) + "," + strings.Repeat(" ", 113), "ai-train=no", "ai-train=yes", "??n"},
		{"Link", "Link", "<x>;t=" + strings.Repeat("1", 8) + "," + strings.Repeat(" ", 113), "</l>;rel=license", "</m>;rel=license", "l"},
	} {
		get := func(lines ...string) string {
			h := http.Header{tc.header: lines}
			terms := usage.Sources{Header: h}.Terms(parse(t, "https://a.test/x"))
			if tc.header != "Link" {
				return said(t, terms.Preferences)
			}
			var names []string
			for _, l := range terms.Licenses {
				names = append(names, strings.TrimPrefix(l.URL, "https://a.test/"))
			}
			return strings.Join(names, " ")
		}
		none := get("x=1")
		fillers := strings.Repeat(tc.filler, 63)
		for name, lines := range map[string][]string{
			"short":                   {tc.said},
			"first":                   {tc.said + "," + fillers + tc.filler + tc.cut},
			"last":                    {fillers + tc.said + ", " + strings.Repeat(" ", 256) + tc.cut},
			"several lines":           {strings.TrimRight(fillers, ", "), tc.said, strings.Repeat(" ", 256) + tc.cut},
			"a long line after it":    {tc.said, strings.Repeat(tc.filler, 1000) + tc.cut},
			"many lines after it":     append([]string{tc.said}, append(slices.Repeat([]string{strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(tc.filler), ","))}, 1000), tc.cut)...),
			"cut off within a member": {tc.said + "," + strings.Repeat(" ", 8192-len(tc.said)-1-3) + tc.cut},
		} {
			if got := get(lines...); got != tc.want {
				t.Errorf("%s, %s: got %q, want %q", tc.name, name, got, tc.want)
			}
		}
		if got := get(fillers + tc.filler + tc.said); got != none {
			t.Errorf("%s, after the limit: got %q", tc.name, got)
		}
	}
}

// TestHugeFields checks that header fields of 9 MB cost a bounded number of bytes.
func TestHugeFields(t *testing.T) {
	const size = 9 << 20
	for name, filler := range map[string]string{"Content-Usage": "train-ai=n,", "Content-Signal": "ai-train=no,", "Link": "<x>;rel=license,"} {
		for shape, lines := range map[string][]string{
			"one line":      {strings.Repeat(filler, size/len(filler))},
			"several lines": slices.Repeat([]string{strings.TrimSuffix(filler, ",")}, size/len(filler)),
			"one member":    {filler + strings.Repeat("x", size)},
		} {
			s := usage.Sources{Header: http.Header{name: lines}}
			u := parse(t, "https://a.test/x")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s.Terms(u)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
				t.Errorf("%s, %s: %d bytes are allocated, want at most 1 MiB", name, shape, n)
			}
		}
	}
}
