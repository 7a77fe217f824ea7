package sitemap

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

// extended returns the entries of a document with their extensions, and the errors.
func extended(doc io.Reader, limits Limits) (got []Entry, errs []string) {
	r := NewReader(doc, mustURL("http://e.test/s"))
	r.Extensions, r.Limits = true, limits
	for e, err := range r.All() {
		if err != nil {
			errs = append(errs, summary(err.(*Error)))
		} else {
			got = append(got, e)
		}
	}
	return got, errs
}

// TestExtensions reads each extension with the prefix that its documentation uses and with other
// prefixes.
func TestExtensions(t *testing.T) {
	day := time.Date(2024, 5, 6, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, head, in string
		want           Extensions
		errs           string
	}{
		{name: "images", in: `<image:image><image:loc>/i.jpg</image:loc><image:title>a &amp; b</image:title><image:caption><![CDATA[<b>c</b>]]></image:caption>` +
			`<image:geo_location>Limerick</image:geo_location><image:license>http://l.test/</image:license></image:image><image:image><image:loc>http://e.test/j.jpg</image:loc></image:image>`,
			want: Extensions{Images: []Image{
				{Loc: "http://e.test/i.jpg", Title: "a & b", Caption: "<b>c</b>", GeoLocation: "Limerick", License: "http://l.test/"},
				{Loc: "http://e.test/j.jpg"},
			}}},
		{name: "video", in: `<video:video><video:thumbnail_loc>/t</video:thumbnail_loc><video:title>t</video:title><video:description>d</video:description>` +
			`<video:content_loc>/c</video:content_loc><video:player_loc allow_embed="yes">/p</video:player_loc><video:duration>600</video:duration>` +
			`<video:publication_date>2024-05-06</video:publication_date><video:expiration_date>2024-05-06</video:expiration_date><video:live>no</video:live></video:video>`,
			want: Extensions{Videos: []Video{{
				ThumbnailLoc:    "http://e.test/t",
				Title:           "t",
				Description:     "d",
				ContentLoc:      "http://e.test/c",
				PlayerLoc:       "http://e.test/p",
				Duration:        10 * time.Minute,
				PublicationDate: day,
				ExpirationDate:  day,
			}}}},
		{name: "news", in: `<news:news><news:publication><news:name>The Example</news:name><news:language>en</news:language></news:publication>` +
			`<news:publication_date>2024-05-06</news:publication_date><news:title>Title</news:title></news:news>`,
			want: Extensions{News: &News{Name: "The Example", Language: "en", PublicationDate: day, Title: "Title"}}},
		{name: "hreflang", in: `<xhtml:link rel="alternate" hreflang="de" href="/de?a&amp;b"/><xhtml:link rel='alternate' hreflang='x-default' href='http://e.test/'></xhtml:link><xhtml:link rel="canonical" href="/c"/>`,
			want: Extensions{Alternates: []Alternate{{"de", "http://e.test/de?a&b"}, {"x-default", "http://e.test/"}}}},
		{name: "other prefixes", head: ` xmlns:I="http://www.google.com/schemas/sitemap-image/1.1" xmlns:h="http://www.w3.org/1999/xhtml"`,
			in:   `<I:image><I:loc>/i.jpg</I:loc></I:image><h:link rel="alternate" hreflang="de" href="/de"/>`,
			want: Extensions{Images: []Image{{Loc: "http://e.test/i.jpg"}}, Alternates: []Alternate{{"de", "http://e.test/de"}}}},
		{name: "unknown extension", in: `<x:image><x:loc>/i</x:loc></x:image>`},
		{name: "fields without their item", in: `<image:loc>/i</image:loc><video:duration>1</video:duration><news:title>t</news:title>`},
		{name: "empty", in: `<image:image/><news:news><news:title/><news:name> </news:name></news:news>`, want: Extensions{Images: []Image{{}}, News: &News{}}},
		{name: "faults", in: `<image:image><image:loc>ftp://e.test/</image:loc></image:image><video:video><video:duration>long</video:duration><video:publication_date>soon</video:publication_date></video:video>` +
			`<xhtml:link rel="alternate" hreflang="de" href="mailto:x"/>`,
			want: Extensions{Images: []Image{{}}, Videos: []Video{{}}},
			errs: "field image:loc location is not a valid http or https URL; field video:duration invalid value; field video:publication_date invalid value; field xhtml:link location is not a valid http or https URL"},
		{name: "too long", in: `<image:image><image:title>` + strings.Repeat("x", 9000) + `</image:title></image:image>`,
			want: Extensions{Images: []Image{{}}}, errs: "field image:title limit Field"},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc := "<urlset" + c.head + "><url>" + c.in + "<loc>http://e.test/1</loc></url><url><loc>http://e.test/2</loc>" + c.in + "</url></urlset>"
			got, errs := extended(strings.NewReader(doc), Limits{})
			if len(got) != 2 || got[0].Loc != "http://e.test/1" || got[1].Loc != "http://e.test/2" {
				t.Fatalf("entries %+v", got)
			}
			for _, e := range got {
				if !reflect.DeepEqual(e.Extensions, c.want) {
					t.Errorf("got %+v, want %+v", e.Extensions, c.want)
				}
			}
			want := ""
			if c.errs != "" {
				want = c.errs + "; " + c.errs
			}
			if s := strings.Join(errs, "; "); s != want {
				t.Errorf("got errors %q, want %q", s, want)
			}
			for e, err := range NewReader(strings.NewReader(doc), nil).All() {
				if err != nil || !reflect.DeepEqual(e.Extensions, Extensions{}) {
					t.Errorf("extensions were not requested, got %+v, %v", e, err)
				}
			}
		})
	}
}

// TestManyExtensions reads an entry with more extensions than Limits.Extensions allows. The
// extensions of the next entry are not affected.
func TestManyExtensions(t *testing.T) {
	img := "<image:image><image:loc>http://e.test/i</image:loc></image:image>"
	doc := generate("<urlset><url><loc>http://e.test/1</loc>", 100_000, func(w io.Writer, _ int) { io.WriteString(w, img) },
		"</url><url><loc>http://e.test/2</loc>"+img+"</url></urlset>")
	before := liveHeap()
	got, errs := extended(doc, Limits{})
	held := liveHeap() - before
	if len(got) != 2 || len(got[1].Images) != 1 || fmt.Sprint(errs) != "[field image:image limit Extensions]" {
		t.Fatalf("got %d entries, errors %q", len(got), errs)
	}
	if n := len(got[0].Images); n < 1000 || n > 10_000 {
		t.Errorf("%d images", n)
	}
	if held > 2*mebibyte {
		t.Errorf("the extensions of the entry hold %d bytes", held)
	}
}

// TestWalkExtensions reads extensions in a walk.
func TestWalkExtensions(t *testing.T) {
	s := &site{docs: map[string]string{"http://e.test/0": "<urlset><url><loc>/1</loc><image:image><image:loc>/i</image:loc></image:image></url></urlset>"}}
	for e, err := range (Walker{Extensions: true}).Walk(t.Context(), "http://e.test/0", s.Open) {
		if err != nil || len(e.Images) != 1 || e.Images[0].Loc != "http://e.test/i" {
			t.Errorf("%+v, %v", e, err)
		}
	}
}
