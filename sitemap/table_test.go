package sitemap

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf16"
)

// A row is one document as servers send it, with the expected result.
type row struct {
	name string
	doc  string
	want string // locations, separated by spaces
	errs string // "severity field cause", separated by "; "
}

// one and two are the entries of most rows.
const (
	one    = "<url><loc>http://e.test/1</loc></url>"
	two    = "<url><loc>http://e.test/2</loc></url>"
	both   = "http://e.test/1 http://e.test/2"
	notOne = "file not a sitemap"
)

func urlset(urls ...string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">` +
		strings.Join(urls, "\n") + "</urlset>"
}

func loc(text string) string { return urlset("<url><loc>"+text+"</loc></url>", two) }

func zip(docs ...string) string {
	var b bytes.Buffer
	for _, doc := range docs {
		z := gzip.NewWriter(&b)
		io.WriteString(z, doc)
		z.Close()
	}
	return b.String()
}

// wide returns doc in UTF-16, in big-endian byte order if big is set.
func wide(doc string, big bool) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(doc)) {
		if big {
			b = append(b, byte(u>>8), byte(u))
		} else {
			b = append(b, byte(u), byte(u>>8))
		}
	}
	return string(b)
}

func summary(e *Error) string {
	var limit *LimitError
	cause := e.Err.Error()
	if errors.As(e, &limit) {
		cause = "limit " + limit.Limit
	}
	return strings.Join(strings.Fields(fmt.Sprint(e.Severity, " ", e.Field, " ", cause)), " ")
}

// check reads the document at once and byte by byte, and expects the same result.
func (c row) check(t *testing.T) {
	t.Helper()
	for _, oneByOne := range []bool{false, true} {
		var src io.Reader = strings.NewReader(c.doc)
		if oneByOne {
			if len(c.doc) > 100_000 {
				return
			}
			src = iotest.OneByteReader(src)
		}
		var got, errs []string
		for e, err := range NewReader(src, base(t, "http://e.test/dir/sitemap.xml?q")).All() {
			if err == nil {
				got = append(got, e.Loc)
				continue
			}
			var se *Error
			if !errors.As(err, &se) {
				t.Fatalf("error of type %T: %v", err, err)
			}
			if se.URL != "http://e.test/dir/sitemap.xml?q" || se.Offset < 0 || e.Loc != "" {
				t.Errorf("URL %q, offset %d, with entry %q", se.URL, se.Offset, e.Loc)
			}
			errs = append(errs, summary(se))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("byte by byte %v: got %.300q, want %.300q", oneByOne, s, c.want)
		}
		if s := strings.Join(errs, "; "); s != c.errs {
			t.Errorf("byte by byte %v: got errors %.300q, want %.300q", oneByOne, s, c.errs)
		}
	}
}

// TestDocuments reads documents that violate the protocol in the ways that real files do. Each
// subtest is one kind of violation, and each of its rows is a variant.
func TestDocuments(t *testing.T) {
	const cut = "file unexpected EOF"
	long := strings.Repeat("x", 9000)
	for _, g := range []struct {
		name string
		rows []row
	}{
		{"before the root", []row{
			{"byte order mark", "\ufeff" + urlset(one, two), both, ""},
			{"blanks", " \r\n\t" + urlset(one, two), both, ""},
			{"byte order mark after blanks", "\n\n\ufeff" + urlset(one, two), both, ""},
			{"two byte order marks", "\ufeff\ufeff" + urlset(one, two), both, ""},
			{"warning of a program", "<br />\n<b>Warning</b>:  fopen(\"x): a < b, 3 <4 in <b>/srv/a.php</b><br />\n" + urlset(one, two), both, ""},
			{"comment with another root", "<!-- <urlset><url><loc>/no</loc></url> -->" + urlset(one, two), both, ""},
			{"style sheet", `<?xml-stylesheet type="text/xsl" href="/s.xsl"?>` + urlset(one, two), both, ""},
			{"declaration without its end", `<?xml version="1.0" encoding="UTF-8">` + "<urlset>" + one + two + "</urlset>", both, ""},
			{"60 KiB", strings.Repeat("warning\n", 60<<10/8) + urlset(one, two), both, ""},
			{"more than 64 KiB", strings.Repeat("warning\n", 65<<10/8) + urlset(one, two), "", notOne},
			{"heading before text", "# Pages of e.test\r\n\r\nhttp://e.test/1\nhttp://e.test/2\n", both, ""},
			{"heading before one URL", "Pages\nhttp://e.test/1", "http://e.test/1", ""},
			{"blanks before text", " \n\ufeff http://e.test/1\nhttp://e.test/2", both, ""},
		}},
		{"not a sitemap", []row{
			{"HTML", "<!DOCTYPE html><html><head><title>Not found</title></head><body><a href='http://e.test/1'>1</a></body></html>", "", notOne},
			{"JSON", `{"urlset": ["http://e.test/1"]}`, "", notOne},
			{"empty body", "", "", notOne},
			{"blank body", " \n\t", "", notOne},
			{"empty gzip", zip(""), "", notOne},
			{"words", "no sitemap here", "", notOne},
			{"binary data", "\x00\x01\x02\xff\xfe", "", notOne},
			{"other XML", "<?xml version='1.0'?><opml><outline url='http://e.test/1'/></opml>", "", notOne},
			{"several lines of words", "no sitemap here\nsee another page\nhttp", "", notOne},
			{"words and a URL", "see http://e.test/1\n or http://e.test/2\n", "", notOne},
			{"several lines of JSON", "{\n\"a\":\nhttp://e.test/1\n}", "", notOne},
			{"a URL behind a long text", strings.Repeat("word\n", 300) + "http://e.test/1\n", "", notOne},
			{"empty sitemap", "<urlset></urlset>", "", ""},
			{"empty-element root", "<urlset/>", "", ""},
			{"empty index", "<sitemapindex>\n</sitemapindex>", "", ""},
		}},
		{"namespaces", []row{
			{"none", "<urlset>" + one + two + "</urlset>", both, ""},
			{"wrong", "<urlset xmlns='http://example.org/'>" + one + two + "</urlset>", both, ""},
			{"https", "<urlset xmlns='https://www.sitemaps.org/schemas/sitemap/0.9'>" + one + two + "</urlset>", both, ""},
			{"legacy", "<urlset xmlns='http://www.google.com/schemas/sitemap/0.84'>" + one + two + "</urlset>", both, ""},
			{"case", "<URLSet><Url><LOC>http://e.test/1</LOC></Url>" + two + "</urlSET>", both, ""},
			{"prefix of the root", "<s:urlset xmlns:s='x'><s:url><s:loc>http://e.test/1</s:loc></s:url><s:url><s:loc>http://e.test/2</s:loc></s:url></s:urlset>", both, ""},
			{"prefix of the root only", "<s:urlset xmlns:s='x'>" + one + two + "</s:urlset>", both, ""},
			{"image:loc", urlset("<url><image:image><image:loc>http://e.test/i</image:loc></image:image><loc>http://e.test/1</loc></url>", two), both, ""},
			{"image without its prefix", urlset("<url><loc>http://e.test/1</loc><image xmlns='http://www.google.com/schemas/sitemap-image/1.1'><loc>http://e.test/i</loc></image><image/></url>", two), both, ""},
			{"image:loc alone", urlset(one, "<url><image:loc>http://e.test/i</image:loc></url>", two), both, "entry entry without a location"},
		}},
		{"encodings", []row{
			{"UTF-16LE with mark", "\xff\xfe" + wide(urlset(one, two), false), both, ""},
			{"UTF-16BE with mark", "\xfe\xff" + wide(urlset(one, two), true), both, ""},
			{"UTF-16LE without", wide(urlset(one, two), false), both, ""},
			{"UTF-16BE without", wide(urlset(one, two), true), both, ""},
			{"UTF-16 text", "\xff\xfe" + wide("http://e.test/1\nhttp://e.test/2\n", false), both, ""},
			{"UTF-16 declared over ASCII", "<?xml version='1.0' encoding='UTF-16'?><urlset>" + one + two + "</urlset>", both, ""},
			{"unknown label", "<?xml version='1.0' encoding='x-none'?><urlset>" + one + two + "</urlset>", both, ""},
			{"Latin-1", "<?xml version='1.0' encoding='ISO-8859-1'?><urlset><url><loc>http://e.test/caf\xe9</loc></url>" + two + "</urlset>", "http://e.test/café http://e.test/2", ""},
			{"Windows-1251", "<?xml version='1.0' encoding='windows-1251'?><urlset><url><loc>http://e.test/\xe4\xe0</loc></url>" + two + "</urlset>", "http://e.test/да http://e.test/2", ""},
			{"label without quotes", "<?xml version=1.0 encoding=latin1?><urlset><url><loc>http://e.test/caf\xe9</loc></url></urlset>", "http://e.test/café", ""},
			{"byte order mark contradicts label", "\ufeff<?xml version='1.0' encoding='latin1'?><urlset><url><loc>http://e.test/café</loc></url></urlset>", "http://e.test/café", ""},
			{"invalid bytes", loc("http://e.test/\xff\xfe"), "http://e.test/2", "entry loc location is not a valid http or https URL"},
			{"invalid bytes in Shift_JIS", "<?xml version='1.0' encoding='Shift_JIS'?><urlset><url><loc>http://e.test/\x81\xff</loc></url>" + two + "</urlset>", "http://e.test/2", "entry loc location is not a valid http or https URL"},
			{"invalid bytes in lastmod", urlset("<url><loc>http://e.test/1</loc><lastmod>\xff</lastmod></url>", two), both, "field lastmod invalid value"},
		}},
		{"references", []row{
			{"raw ampersand", loc("http://e.test/?a=1&b=2&amp;c=3&"), "http://e.test/?a=1&b=2&c=3& http://e.test/2", ""},
			{"HTML", loc("http://e.test/&eacute;&nbsp;"), "http://e.test/é http://e.test/2", ""},
			{"no semicolon", loc("http://e.test/?a&copy=1&lt=2"), "http://e.test/?a&copy=1&lt=2 http://e.test/2", ""},
			{"begins with a known name", loc("http://e.test/&notit;"), "http://e.test/&notit; http://e.test/2", ""},
			{"semicolon", loc("http://e.test/&semi;"), "http://e.test/; http://e.test/2", ""},
			{"numbers", loc("http://e.test/&#47;&#x2F;&#X2f;"), "http://e.test//// http://e.test/2", ""},
			{"number without a character", loc("http://e.test/&;&#0;"), "http://e.test/&;& http://e.test/2", ""}, // then a fragment
			{"decoded only once", loc("http://e.test/&amp;amp;"), "http://e.test/&amp; http://e.test/2", ""},
			{"undeclared", loc("http://e.test/&site;"), "http://e.test/&site; http://e.test/2", ""},
			{"undeclared, as the whole location", loc("&page;"), "http://e.test/2", "entry loc location is not a valid http or https URL"},
			{"undeclared site", loc("&site;/1"), "http://e.test/2", "entry loc location is not a valid http or https URL"},
			{"control characters", loc("http://e.test/\x01a\x7f"), "http://e.test/\x01a\x7f http://e.test/2", ""},
			{"NUL", loc("http://e.test/a\x00b"), "http://e.test/a\x00b http://e.test/2", ""},
		}},
		{"around and in a loc", []row{
			{"CDATA", loc("<![CDATA[http://e.test/?a&b&amp;c]]>"), "http://e.test/?a&b&amp;c http://e.test/2", ""},
			{"CDATA in parts", loc(" http://<![CDATA[e.test]]><![CDATA[/a]]>b "), "http://e.test/ab http://e.test/2", ""},
			{"comment", loc("http://e.test<!-- </loc> -->/1"), both, ""},
			{"processing instruction", loc("http://e.test<?x </loc> ?>/1"), both, ""},
			{"blanks", loc("\r\n\t  http://e.test/1  \n"), both, ""},
			{"NBSP", loc("\u00a0http://e.test/1&nbsp;&#160;"), both, ""},
			{"zero-width space", loc("\u200bhttp://e.test/1\u200b"), both, ""},
			{"line break inside", loc("http://e.test/a\n      b\r\n\tc"), "http://e.test/abc http://e.test/2", ""},
			{"attributes", urlset("<url><loc a='1' b=\">\">http://e.test/1</loc></url>", two), both, ""},
			{"blanks in tags", urlset("<url\n><loc\t>http://e.test/1</loc ></url >", two), both, ""},
		}},
		{"relative locations", []row{
			{"path", loc("/a?b=c"), "http://e.test/a?b=c http://e.test/2", ""},
			{"name", loc("a/./b/../c"), "http://e.test/dir/a/c http://e.test/2", ""},
			{"query", loc("?u=http://x.test/"), "http://e.test/dir/sitemap.xml?u=http://x.test/ http://e.test/2", ""},
			{"host", loc("//x.test/a"), "http://x.test/a http://e.test/2", ""},
			{"fragment", loc("http://e.test/1#a#b"), both, ""},
			{"fragment, relative", loc("/1#a"), both, ""},
			{"stray percent sign", loc("/100%"), "http://e.test/100%25 http://e.test/2", ""},
			{"stray percent sign, absolute", loc("http://e.test/100%"), "http://e.test/100% http://e.test/2", ""},
			{"text", "http://e.test/1\n/2\n", both, ""},
		}},
		{"invalid locations", []row{
			{"ftp", loc("ftp://e.test/"), "http://e.test/2", "entry loc location is not a valid http or https URL"},
			{"mailto", loc("mailto:a@e.test"), "http://e.test/2", "entry loc location is not a valid http or https URL"},
			{"javascript", loc("javascript:void(0)"), "http://e.test/2", "entry loc location is not a valid http or https URL"},
			{"data", loc("data:,http://e.test/"), "http://e.test/2", "entry loc location is not a valid http or https URL"},
			{"no host", loc("http:///1"), "http://e.test/2", "entry loc location is not a valid http or https URL"},
			{"port", loc("http://e.test:x/"), "http://e.test/2", "entry loc location is not a valid http or https URL"},
			{"over 8 KiB", loc("http://e.test/" + long), "http://e.test/2", "entry loc limit Field"},
			{"over 8 KiB, CDATA", loc("<![CDATA[http://e.test/" + long + "]]>"), "http://e.test/2", "entry loc limit Field"},
			{"over 8 KiB in parts", loc("http://e.test/" + strings.Repeat(strings.Repeat("x", 1000)+"<!-- -->", 9)), "http://e.test/2", "entry loc limit Field"},
			{"over 8 KiB, text", "http://e.test/1\nhttp://e.test/" + long + "\nhttp://e.test/2", both, "entry loc limit Field"},
			{"just 8 KiB", loc("http://e.test/" + strings.Repeat("x", 8192-14)), "http://e.test/" + strings.Repeat("x", 8192-14) + " http://e.test/2", ""},
			{"empty", loc(""), "http://e.test/2", "entry entry without a location"},
			{"none", urlset("<url><priority>1</priority></url>", two), "http://e.test/2", "entry entry without a location"},
			{"words in a text", "http://e.test/1\nabout us\nhttp://e.test/2", both, "entry loc location is not a valid http or https URL"},
		}},
		{"bad fields", []row{
			{"lastmod", urlset("<url><loc>http://e.test/1</loc><lastmod>yesterday</lastmod></url>", two), both, "field lastmod invalid value"},
			{"priority", urlset("<url><loc>http://e.test/1</loc><priority>high</priority></url>", two), both, "field priority invalid value"},
			{"changefreq", urlset("<url><loc>http://e.test/1</loc><changefreq>sometimes</changefreq></url>", two), both, "field changefreq invalid value"},
			{"too long", urlset("<url><loc>http://e.test/1</loc><lastmod>"+long+"</lastmod></url>", two), both, "field lastmod limit Field"},
			{"before the loc", urlset("<url><priority>2</priority><loc>http://e.test/1</loc></url>", two), both, "field priority invalid value"},
			{"empty", urlset("<url><loc>http://e.test/1</loc><lastmod/><priority></priority><changefreq> </changefreq></url>", two), both, ""},
		}},
		{"structure", []row{
			{"two loc in one url", urlset("<url><loc>http://e.test/1</loc><loc>http://e.test/2</loc></url>"), both, ""},
			{"a missing end tag of url", urlset("<url><loc>http://e.test/1</loc>", two), both, ""},
			{"no url at all", urlset("<loc>http://e.test/1</loc>", "<loc>http://e.test/2</loc>"), both, ""},
			{"an end tag in another case", urlset("<url><loc>http://e.test/1</Loc></URL>", two), both, ""},
			{"a missing end tag of loc", urlset("<url><loc>http://e.test/1</url>", two), both, ""},
			{"a missing >", urlset("<url><loc>http://e.test/1</loc</url>", two), both, ""},
			{"text after the root", urlset(one, two) + "<url><loc>http://e.test/3</loc></url> Warning: x", both, ""},
			{"another root after the root", urlset(one) + urlset(two), "http://e.test/1", ""},
			{"CDATA with markup", urlset(one, "<![CDATA[<url><loc>http://e.test/3</loc></url>]]>", two), both, ""},
			{"comment with markup", urlset(one, "<!-- <url><loc>http://e.test/3</loc></url> -->", two), both, ""},
		}},
		{"cut short", []row{
			{"after a loc", "<urlset>" + one + "<url><loc>http://e.test/2</loc>", both, cut},
			{"in a loc", "<urlset>" + one + "<url><loc>http://e.test/2", "http://e.test/1", cut},
			{"in CDATA", "<urlset>" + one + "<url><loc><![CDATA[http://e.test/2", "http://e.test/1", cut},
			{"before what may be CDATA", "<urlset>" + one + "<url><loc>http://e.test/2<", "http://e.test/1", cut},
			{"in a lastmod", "<urlset>" + one + "<url><loc>http://e.test/2</loc><lastmod>2024-0", both, cut},
			{"before the end of the root", "<urlset>" + one + two, both, cut},
			{"in a start tag", "<urlset>" + one + "<url><loc", "http://e.test/1", cut},
			{"root only", "<urlset>", "", cut},
			{"gzip", short(zip("<urlset>"+one+two+"<url>"), 8), both, cut},
			{"gzip of text", zip("http://e.test/1\nhttp://e.test/2")[:30], "http://e.test/1", cut},
			{"gzip header", "\x1f\x8b\x08\x00", "", cut},
			{"checksum", flip(zip(urlset(one, two)), -6), both, "file gzip: invalid checksum"},
			{"text after the gzip", zip(urlset(one, two)) + "<!-- cached at 10:00, all well -->", both, "file gzip: invalid header"},
		}},
		{"gzip", []row{
			{"once", zip(urlset(one, two)), both, ""},
			{"twice", zip(zip(urlset(one, two))), both, ""},
			{"three times", zip(zip(zip(urlset(one, two)))), both, ""},
			{"four times", zip(zip(zip(zip(urlset(one, two))))), "", "file limit Layers"},
			{"several members", zip("<urlset>"+one, two+"</urlset>"), both, ""},
			{"text", zip("http://e.test/1\nhttp://e.test/2\n"), both, ""},
			{"UTF-16", zip(wide("\ufeff"+urlset(one, two), false)), both, ""},
		}},
		{"DOCTYPE", []row{
			{"plain", "<!DOCTYPE urlset SYSTEM 'http://x.test/sitemap.dtd'>" + urlset(one, two), both, ""},
			{"brackets in an identifier", "<!DOCTYPE urlset SYSTEM 'http://[::1]/[s.dtd'>" + urlset(one, two), both, ""},
			{"a missing closing quote", "<!DOCTYPE urlset SYSTEM 'http://x.test/sitemap.dtd>" + urlset(one, two), both, ""},
			{"a subset without an end", "<!DOCTYPE urlset [>" + urlset(one, two), "", notOne},
			{"entities", `<!DOCTYPE urlset [<!-- ]> --><!ENTITY a "<urlset><loc>http://x.test/</loc>]>"><!ENTITY % b SYSTEM "file:///etc/passwd">%b;]>` +
				"<urlset><url><loc>http://e.test/&a;</loc></url>" + two + "</urlset>", "http://e.test/&a; http://e.test/2", ""},
			{"a billion laughs", laughs(), "http://e.test/&l9; http://e.test/2", ""},
			{"after the root", "<urlset><!DOCTYPE x [<!ENTITY a 'b'>]>" + one + two + "</urlset>", both, ""},
		}},
		{"text", []row{
			{"LF", "http://e.test/1\nhttp://e.test/2\n", both, ""},
			{"CR LF", "http://e.test/1\r\nhttp://e.test/2\r\n", both, ""},
			{"CR", "http://e.test/1\rhttp://e.test/2", both, ""},
			{"blank lines", "\n\nhttp://e.test/1\n \t\n\nhttp://e.test/2", both, ""},
			{"case", "HTTP://e.test/1\n", "HTTP://e.test/1", ""},
		}},
		{"RSS", []row{
			{"2.0", "<rss version='2.0'><channel><title>t</title><link>http://e.test/</link><image><link>http://e.test/</link></image>" +
				"<item><title>a</title><link>http://e.test/1</link><guid>x</guid></item><item><link> http://e.test/2 </link></item></channel></rss>", both, ""},
			{"atom:link", "<rss><channel><atom:link href='http://e.test/f'/><item><atom:link>http://e.test/f</atom:link><link>http://e.test/1</link></item></channel></rss>", "http://e.test/1", ""},
			{"permanent link", "<rss><channel><item><guid>http://e.test/1</guid></item><item><guid isPermaLink='TRUE'>http://e.test/2</guid></item></channel></rss>", both, ""},
			{"no permanent link", "<rss><channel><item><guid isPermaLink='false'>http://e.test/3</guid></item></channel></rss>", "", "entry entry without a location"},
			{"guid before link", "<rss><channel><item><guid>http://e.test/3</guid><link>http://e.test/1</link></item></channel></rss>", "http://e.test/1", ""},
			{"markup in CDATA", "<rss><channel><item><description><![CDATA[<link>http://e.test/3</link>]]></description><link>http://e.test/1</link></item></channel></rss>", "http://e.test/1", ""},
			{"1.0", "<rdf:RDF xmlns:rdf='r' xmlns='http://purl.org/rss/1.0/'><channel rdf:about='c'><link>http://e.test/</link><items><rdf:Seq><rdf:li resource='http://e.test/3'/></rdf:Seq></items></channel>" +
				"<item rdf:about='http://e.test/1'><link>http://e.test/1</link></item><item><link>http://e.test/2</link></item></rdf:RDF>", both, ""},
		}},
		{"Atom", []row{
			{"1.0", "<feed xmlns='http://www.w3.org/2005/Atom'><link href='http://e.test/'/><link rel='self' href='http://e.test/f'/>" +
				"<entry><link rel='self' href='/3'/><link rel=\"alternate\" href=\"http://e.test/1\"/></entry><entry><link href='/2'></link></entry></feed>", both, ""},
			{"0.3", "<feed version='0.3'><entry><link rel='alternate' type='text/html' href='http://e.test/1'/><modified>2003-12-13T18:30:02Z</modified></entry></feed>", "http://e.test/1", ""},
			{"prefix", "<a:feed xmlns:a='x'><a:entry><a:link href='http://e.test/1'/></a:entry></a:feed>", "http://e.test/1", ""},
			{"source", "<feed><entry><source><link href='/3'/></source><link href='http://e.test/1'/></entry></feed>", "http://e.test/1", ""},
			{"references", "<feed><entry><link href='http://e.test/?a&amp;b'/></entry></feed>", "http://e.test/?a&b", ""},
			{"other relations", "<feed><entry><link rel='enclosure' href='/3'/></entry></feed>", "", "entry entry without a location"},
			{"several alternates", "<feed><entry><link href='http://e.test/1'/><link href='/3'/></entry></feed>", "http://e.test/1", ""},
		}},
	} {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.rows {
				t.Run(c.name, c.check)
			}
		})
	}
}

// short returns s without its last n bytes.
func short(s string, n int) string { return s[:len(s)-n] }

// flip returns s with the byte at len(s)+i changed.
func flip(s string, i int) string {
	b := []byte(s)
	b[len(b)+i] ^= 0x55
	return string(b)
}

// laughs declares an entity that would expand to gigabytes.
func laughs() string {
	var b strings.Builder
	b.WriteString(`<!DOCTYPE urlset [<!ENTITY l0 "lol">`)
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&b, `<!ENTITY l%d "%s">`, i, strings.Repeat(fmt.Sprintf("&l%d;", i-1), 10))
	}
	b.WriteString("]>" + loc("http://e.test/&l9;"))
	return b.String()
}

// TestReferences checks that references are decoded and that texts that only look like references
// are not changed.
func TestReferences(t *testing.T) {
	for in, want := range map[string]string{
		"":                                  "",
		"&":                                 "&",
		"a&amp;b&lt;&gt;&quot;":             `a&b<>"`,
		"&#65;&#x42;&#X43;":                 "ABC",
		"&#0;&#xD800;":                      "&#0;&#xD800;",
		"&#x110000;&#;&#x;&;":               "&#x110000;&#;&#x;&;",
		"&#-65;&#+65;&#6_5;":                "&#-65;&#+65;&#6_5;",
		"&eacute;&Eacute;&semi":             "éÉ&semi",
		"&amp;lt;&&amp;":                    "&lt;&&",
		"&" + strings.Repeat("x", 50) + ";": "&" + strings.Repeat("x", 50) + ";",
	} {
		if got := string(appendText([]byte("="), []byte(in))); got != "="+want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestDates parses dates as W3C datetime and RFC 822 define them, and common deviations from them.
func TestDates(t *testing.T) {
	at := func(s string) time.Time {
		d, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return d.UTC()
	}
	for in, want := range map[string]string{
		"2024":                             "2024-01-01T00:00:00Z",
		"2024-05":                          "2024-05-01T00:00:00Z",
		"2024-05-06":                       "2024-05-06T00:00:00Z",
		"2024-05-06T07:08Z":                "2024-05-06T07:08:00Z",
		"2024-05-06T07:08+02:00":           "2024-05-06T05:08:00Z",
		"2024-05-06T07:08:09Z":             "2024-05-06T07:08:09Z",
		"2024-05-06T07:08:09.5Z":           "2024-05-06T07:08:09.5Z",
		"2024-05-06T07:08:09.123456789012": "2024-05-06T07:08:09.123456789Z",
		"2024-05-06T07:08:09.25-11:30":     "2024-05-06T18:38:09.25Z",
		"2024-05-06t07:08:09z":             "2024-05-06T07:08:09Z",
		"2024-05-06 07:08:09":              "2024-05-06T07:08:09Z",
		"2024-05-06 07:08:09 UTC":          "2024-05-06T07:08:09Z",
		"2024-05-06 07:08:09 +0200":        "2024-05-06T05:08:09Z",
		"2024-05-06T07:08:09":              "2024-05-06T07:08:09Z",
		"2024-05-06T07:08:09+0200":         "2024-05-06T05:08:09Z",
		"2024-05-06T07:08:09+02":           "2024-05-06T05:08:09Z",
		"2024-05-6":                        "2024-05-06T00:00:00Z",
		"2024-5-6":                         "2024-05-06T00:00:00Z",
		"2024-05-06Z":                      "2024-05-06T00:00:00Z",
		"2024-05-06+02:00":                 "2024-05-05T22:00:00Z",
		"2024-05-06-0500":                  "2024-05-06T05:00:00Z",
		"2024-05-06T24:00:00Z":             "2024-05-07T00:00:00Z",
		"2024-12-31T24:00:00+01:00":        "2024-12-31T23:00:00Z",
		"2024-02-29":                       "2024-02-29T00:00:00Z",
		"2016-12-31T23:59:60Z":             "2017-01-01T00:00:00Z",
		"Mon, 06 May 2024 07:08:09 GMT":    "2024-05-06T07:08:09Z",
		"Mon, 06 May 2024 07:08:09 -0500":  "2024-05-06T12:08:09Z",
		"6 May 24 07:08 EST":               "2024-05-06T12:08:00Z",
		"Mon, 6 May 1999 7:08:09 Z":        "1999-05-06T07:08:09Z",
		"Mon, 06 September 2024":           "2024-09-06T00:00:00Z",
	} {
		if got, ok := parseTime([]byte(in)); !ok || !got.Equal(at(want)) || got.Location() != time.UTC {
			t.Errorf("%q: %v %v, want %s", in, got, ok, want)
		}
	}
	for _, in := range []string{
		"", "2", "202", "20240506", "2024-", "2024-13", "2024-00-01", "2024-02-30", "2023-02-29", "2024-05-06T", "2024-05-06T7",
		"2024-05-06T24:00", "2024-05-06T07:60", "2024-05-06T07:08:61", "2024-05-06T07:08:09.", "2024-05-06T07:08+2", "2024-05-06T07:08+24:00",
		"2024-05-06x", "2024-05Z", "2024-05-06-5", "2024-05-06T24:00:01Z", "2024-05-06T24:01:00Z", "2024T07:08", "0001-01-01T00:00:00", "now", "Mon", "Mon,", "Mon, 06 Mai 2024", "06 anf 2024", "6 May 202 07:08", "6 May 2024 07:08 here",
		"2024-05-06T07:08:09+02:00 x", "06/05/2024", "6 May 2024 a", "2024-05-06T07:08:09 CEST",
	} {
		if got, ok := parseTime([]byte(in)); ok {
			t.Errorf("%q: %v, want false", in, got)
		}
	}
}

// TestFields reads the fields of the sitemap protocol and of feeds.
func TestFields(t *testing.T) {
	day := time.Date(2024, 5, 6, 0, 0, 0, 0, time.UTC)
	const url = "http://e.test/1"
	for _, c := range []struct {
		doc  string
		want Entry
	}{
		{urlset("<url><loc>" + url + "</loc><lastmod> 2024-05-06 </lastmod><changefreq>Daily</changefreq><priority>0.8</priority></url>"),
			Entry{Loc: url, LastMod: day, ChangeFreq: "daily", Priority: 0.8}},
		{urlset("<url><lastmod>2024-05-06</lastmod><loc>" + url + "</loc></url>"), Entry{Loc: url, LastMod: day}},
		{urlset("<url><loc>" + url + "</loc><lastmod>soon</lastmod><lastmod>later</lastmod><changefreq>often</changefreq><priority>1.1</priority></url>"),
			Entry{Loc: url, Unread: []Field{{"lastmod", "soon"}, {"changefreq", "often"}, {"priority", "1.1"}}}},
		{"<sitemapindex><sitemap><loc>" + url + "</loc><lastmod>2024-05-06</lastmod></sitemap></sitemapindex>", Entry{Loc: url, LastMod: day, Index: true}},
		{"<sitemapindex><loc>" + url + "</loc></sitemapindex>", Entry{Loc: url, Index: true}},
		{"<sitemapindex><url><loc>" + url + "</loc></url></sitemapindex>", Entry{Loc: url}},
		{"<urlset><sitemap><loc>" + url + "</loc></sitemap></urlset>", Entry{Loc: url, Index: true}},
		{"<rss><channel><pubDate>Sun, 05 May 2024 00:00:00 GMT</pubDate><item><link>" + url + "</link><pubDate>Mon, 06 May 2024 00:00:00 GMT</pubDate></item></channel></rss>", Entry{Loc: url, LastMod: day}},
		{"<rdf:RDF xmlns:rdf='x'><item><link>" + url + "</link><dc:date>2024-05-06</dc:date></item></rdf:RDF>", Entry{Loc: url, LastMod: day}},
		{"<feed><updated>2023-01-01</updated><entry><updated>2024-05-06T00:00:00Z</updated><link href='" + url + "'/><source><updated>2022-01-01</updated></source></entry></feed>", Entry{Loc: url, LastMod: day}},
		{"<feed><entry><link href='" + url + "'/><modified>2024-05-06T00:00:00Z</modified></entry></feed>", Entry{Loc: url, LastMod: day}},
		{"<urlset><url><loc>ftp://x</loc><lastmod>2023-01-01</lastmod><loc>" + url + "</loc></url></urlset>", Entry{Loc: url}},
		{"<urlset><url><lastmod>2023-01-01</lastmod></url><url><loc>" + url + "</loc></url></urlset>", Entry{Loc: url}},
	} {
		c.want.Sitemap = "http://e.test/s"
		var got []Entry
		for e, err := range NewReader(strings.NewReader(c.doc), base(t, c.want.Sitemap)).All() {
			if err == nil {
				got = append(got, e)
			}
		}
		if want := []Entry{c.want}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.doc, got, want)
		}
	}
}

// TestOffsets checks that the Offset of each error is the position of the fault, also far into a
// document and in compressed and UTF-16 documents.
func TestOffsets(t *testing.T) {
	doc := urlset(strings.Repeat(one, 10_000), "<url><loc>ftp://x</loc></url>", strings.Repeat("\n", 100_000),
		"<url><loc>http://e.test/1</loc><lastmod>never</lastmod></url>", "<url></url>", "<x:y a='"+strings.Repeat("x", 20_000)+"'/><loc>a</loc>")
	doc = short(doc, len("</urlset>"))
	for _, c := range []string{doc, zip(doc), wide(doc, false)} {
		var at []string
		for _, err := range NewReader(strings.NewReader(c), nil).All() {
			var se *Error
			if errors.As(err, &se) {
				at = append(at, doc[se.Offset:min(len(doc), int(se.Offset)+9)])
			}
		}
		want := `["<loc>ftp:" "<lastmod>" "<url></ur" "<x:y a='x" "<loc>a</l" ""]`
		if got := fmt.Sprintf("%q", at); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestCalendar compares each day of two 400-year cycles with package time. It also checks
// that the day after the last day of each month is invalid.
func TestCalendar(t *testing.T) {
	for day := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 820; day = day.AddDate(0, 0, 1) {
		y, m, d := day.Date()
		if got := instant(y, int(m), d, -time.Nanosecond); !isDate(y, int(m), d) || !got.Equal(day.Add(-time.Nanosecond)) {
			t.Fatalf("%v: %v", day, got)
		}
		if next := day.AddDate(0, 0, 1); next.Day() == 1 && isDate(y, int(m), d+1) {
			t.Fatalf("isDate accepts the day after %v in the same month", day)
		}
	}
}
