package sitemap

// A role is what an element means to the format it is part of.
type role uint8

const (
	roleNone     role = iota
	rolePage          // holds an entry
	roleIndex         // holds an entry that names a sitemap
	roleLoc           // text: a location
	roleHref          // attribute: a location
	roleGUID          // text: a location, if there is no other and the element says so
	roleLastMod       // text: a date
	roleFreq          // text
	rolePriority      // text
	roleOther         // holds elements that speak of something else
	roleRoot          // holds everything
)

// String returns the name that the sitemap protocol has for a field.
func (r role) String() string {
	switch r {
	case roleLastMod:
		return "lastmod"
	case roleFreq:
		return "changefreq"
	case rolePriority:
		return "priority"
	}
	return "loc"
}

// A format gives the role of the elements that one kind of document may have.
// Names come in lower case.
type format struct {
	name  string // local name of the root
	role  func(local []byte) role
	loose bool // a location outside of a page element is an entry, too
}

// formats are the roots by which a document is known.
var formats = []*format{
	{"urlset", sitemapRole, true},
	{"sitemapindex", sitemapRole, true},
	{"rss", rssRole, false},
	{"rdf", rssRole, false},
	{"feed", atomRole, false},
}

func sitemapRole(local []byte) role {
	switch string(local) {
	case "url":
		return rolePage
	case "sitemap":
		return roleIndex
	case "loc":
		return roleLoc
	case "lastmod":
		return roleLastMod
	case "changefreq":
		return roleFreq
	case "priority":
		return rolePriority
	case "image", "video", "news": // extensions that lost their prefix
		return roleOther
	case "urlset", "sitemapindex":
		return roleRoot
	}
	return roleNone
}

func rssRole(local []byte) role {
	switch string(local) {
	case "item":
		return rolePage
	case "link":
		return roleLoc
	case "guid":
		return roleGUID
	case "pubdate":
		return roleLastMod
	case "rss", "rdf":
		return roleRoot
	}
	return roleNone
}

func atomRole(local []byte) role {
	switch string(local) {
	case "entry":
		return rolePage
	case "link":
		return roleHref
	case "updated", "modified":
		return roleLastMod
	case "source":
		return roleOther
	case "feed":
		return roleRoot
	}
	return roleNone
}

// rootOf returns the format whose root has that name, nil if there is none.
func rootOf(local []byte) *format {
	for _, f := range formats {
		if string(local) == f.name {
			return f
		}
	}
	return nil
}

// roleOf returns the role of an element of r's document. Elements of other
// namespaces have none, but for the date that RSS 1.0 takes from Dublin Core.
func (r *Reader) roleOf(t *tag) role {
	if t.colon == 0 || string(t.prefix()) == r.prefix {
		return r.format.role(t.local())
	}
	if string(t.prefix()) == "dc" && string(t.local()) == "date" && !r.format.loose {
		return roleLastMod
	}
	return roleNone
}
