package sitemap

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"
	"time"
)

// Extensions holds the data of an entry in the namespaces that Google has added to the protocol
// ("Image sitemaps", "Video sitemaps", "News sitemaps", "Tell Google about localized versions of
// your page"). It is only filled if [Reader.Extensions] or [Walker.Extensions] is set. Locations
// are absolute URLs, as in Entry.Loc. Fields that cannot be parsed are left empty.
type Extensions struct {
	Images     []Image
	Videos     []Video
	News       *News
	Alternates []Alternate
}

// An Image is an image on the page.
type Image struct {
	Loc, Title, Caption, GeoLocation, License string
}

// A Video is a video on the page.
type Video struct {
	ThumbnailLoc, Title, Description string
	ContentLoc, PlayerLoc            string
	Duration                         time.Duration // in whole seconds
	PublicationDate, ExpirationDate  time.Time
}

// News describes the page as a news article.
type News struct {
	Name, Language  string // name and language of the publication
	PublicationDate time.Time
	Title           string
}

// An Alternate is a version of the page in one language. Sitemaps usually list the page itself
// among its alternates.
type Alternate struct {
	Lang string // value of hreflang, such as "de", "en-GB" or "x-default"
	Loc  string
}

// perItem is the number of bytes that each item counts towards Limits.Extensions in addition to its
// text.
const perItem = 256

// extensions are the known namespaces. A namespace is recognized by a part of its URI or, if the
// URI is wrong or missing, by the prefix that its documentation uses.
var extensions = []struct{ prefix, uri string }{
	{"image", "sitemap-image"},
	{"video", "sitemap-video"},
	{"news", "sitemap-news"},
	{"xhtml", "1999/xhtml"},
}

// declare sets r.prefixes to the prefixes that the root declares for extensions and to the usual
// ones.
func (r *Reader) declare(attrs []byte) {
	r.prefixes = map[string]string{}
	for _, x := range extensions {
		r.prefixes[x.prefix] = x.prefix
	}
	for {
		key, value, rest, ok := nextAttribute(attrs)
		if !ok {
			return
		}
		attrs = rest
		prefix, ok := bytes.CutPrefix(bytes.ToLower(key), []byte("xmlns:"))
		for _, x := range extensions {
			if ok && bytes.Contains(value, []byte(x.uri)) {
				r.prefixes[string(prefix)] = x.prefix
			}
		}
	}
}

// extension consumes an element of an extension. It returns false and does not consume the element
// if the element is not part of a known extension or holds nothing that is kept.
func (r *Reader) extension(t *tag, at int64) (ok bool, err error) {
	space, ok := r.prefixes[string(t.prefix())]
	if !ok || t.end || !r.open || r.extra > r.Limits.Extensions {
		return false, nil
	}
	name := space + ":" + string(t.local())
	if name == "xhtml:link" {
		return true, r.alternate(t, at)
	}
	if r.item(name) {
		r.win.pos += t.size
		return true, r.charge(perItem, at, name)
	}
	to := r.entry.target(name)
	if to == nil {
		return false, nil
	}
	return true, r.extensionField(t, at, name, to)
}

// item adds an image, a video or the news to the entry if name is the name of that element. It
// reports whether it is.
func (r *Reader) item(name string) bool {
	e := &r.entry
	switch name {
	case "image:image":
		e.Images = append(e.Images, Image{})
	case "video:video":
		e.Videos = append(e.Videos, Video{})
	case "news:news":
		e.News = cmp.Or(e.News, new(News))
	default:
		return false
	}
	return true
}

// target returns a pointer to the field that the named element sets in the latest item: a *string,
// a *time.Time or a *time.Duration. It returns nil if there is no such field or item.
func (e *Extensions) target(name string) any {
	space, name, _ := strings.Cut(name, ":")
	switch {
	case space == "image" && len(e.Images) > 0:
		return e.Images[len(e.Images)-1].field(name)
	case space == "video" && len(e.Videos) > 0:
		return e.Videos[len(e.Videos)-1].field(name)
	case space == "news" && e.News != nil:
		return e.News.field(name)
	}
	return nil
}

func (m *Image) field(name string) any {
	switch name {
	case "loc":
		return &m.Loc
	case "title":
		return &m.Title
	case "caption":
		return &m.Caption
	case "geo_location":
		return &m.GeoLocation
	case "license":
		return &m.License
	}
	return nil
}

func (v *Video) field(name string) any {
	switch name {
	case "thumbnail_loc":
		return &v.ThumbnailLoc
	case "title":
		return &v.Title
	case "description":
		return &v.Description
	case "content_loc":
		return &v.ContentLoc
	case "player_loc":
		return &v.PlayerLoc
	case "duration":
		return &v.Duration
	case "publication_date":
		return &v.PublicationDate
	case "expiration_date":
		return &v.ExpirationDate
	}
	return nil
}

func (n *News) field(name string) any {
	switch name {
	case "name":
		return &n.Name
	case "language":
		return &n.Language
	case "title":
		return &n.Title
	case "publication_date":
		return &n.PublicationDate
	}
	return nil
}

// isLoc reports whether the text of the named extension element is a location.
func isLoc(name string) bool {
	switch name {
	case "image:loc", "image:license", "video:thumbnail_loc", "video:content_loc", "video:player_loc":
		return true
	}
	return false
}

// extensionField consumes a field and stores it in to, which target has returned.
func (r *Reader) extensionField(t *tag, at int64, name string, to any) error {
	_, empty, long, ok := r.win.pass(t.size, r.Limits.Tag)
	switch {
	case !ok || empty:
		return nil
	case long:
		return r.fault(SeverityField, at, name, "", &LimitError{Limit: "Tag", Max: r.Limits.Tag})
	}
	text, err := r.fieldText()
	switch {
	case err == errCut:
		return nil
	case err != nil:
		return r.fault(SeverityField, at, name, "", err)
	}
	text = trim(text)
	if len(text) == 0 {
		return nil
	}
	if err := r.charge(len(text), at, name); err != nil {
		return err
	}
	if err := r.assign(name, text, to); err != nil {
		return r.fault(SeverityField, at, name, string(text), err)
	}
	return nil
}

// assign parses the text of a field and stores the value in to.
func (r *Reader) assign(name string, text []byte, to any) error {
	ok := true
	switch to := to.(type) {
	case *time.Time:
		*to, ok = parseTime(text)
	case *time.Duration:
		seconds, err := strconv.ParseUint(string(text), 10, 32)
		*to = time.Duration(seconds) * time.Second
		ok = err == nil
	case *string:
		if !isLoc(name) {
			*to = string(bytes.ToValidUTF8(text, []byte("\ufffd")))
			break
		}
		*to = r.locate(text)
		if *to == "" {
			return ErrBadLoc
		}
	}
	if !ok {
		return ErrBadValue
	}
	return nil
}

// alternate consumes an xhtml:link and stores it if it is an alternate with a language.
func (r *Reader) alternate(t *tag, at int64) error {
	attrs, _, long, ok := r.win.pass(t.size, r.Limits.Tag)
	if !ok {
		return nil
	}
	if long {
		return r.fault(SeverityField, at, "xhtml:link", "", &LimitError{Limit: "Tag", Max: r.Limits.Tag})
	}
	rel, _ := attribute(attrs, "rel")
	lang, _ := attribute(attrs, "hreflang")
	href, _ := attribute(attrs, "href")
	if !equalFold(rel, "alternate") || len(lang) == 0 {
		return nil
	}
	r.scratch = appendText(r.scratch[:0], href)
	loc := r.locate(r.scratch)
	if loc == "" {
		return r.fault(SeverityField, at, "xhtml:link", string(href), ErrBadLoc)
	}
	if err := r.charge(perItem+len(lang)+len(loc), at, "xhtml:link"); err != nil {
		return err
	}
	r.entry.Alternates = append(r.entry.Alternates, Alternate{Lang: string(trim(lang)), Loc: loc})
	return nil
}

// charge adds n bytes to the size of the entry's extensions. It returns an error if the size then
// exceeds Limits.Extensions. After that, the other extensions of the entry are skipped.
func (r *Reader) charge(n int, at int64, name string) error {
	r.extra += int64(n)
	if r.extra > r.Limits.Extensions {
		return r.fault(SeverityField, at, name, "", &LimitError{Limit: "Extensions", Max: r.Limits.Extensions})
	}
	return nil
}
