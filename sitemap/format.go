package sitemap

// A role is the meaning of an element in its format.
type role uint8

const (
	roleNone     role = iota
	rolePage          // contains an entry for a page
	roleIndex         // contains an entry for a sitemap
	roleLoc           // its text is a location
	roleHref          // its attribute href is a location
	roleGUID          // its text, if permanent, is the location of an item without a roleLoc
	roleLastMod       // its text is a date
	roleFreq          // its text is a changefreq
	rolePriority      // its text is a priority
	roleOther         // contains fields that do not belong to the entry
	roleRoot          // contains all other elements
)

// String returns the name that the sitemap protocol uses for the field. All kinds of locations are
// named "loc".
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

// A format describes the elements of one kind of document.
type format struct {
	name  string                  // local name of the root, in lower case
	role  func(local []byte) role // role of the element with a local name, given in lower case
	loose bool                    // a location outside of a page element is also an entry
}

// formats are the XML formats. The root of a document determines its format.
var formats = []*format{
	{name: "urlset", role: sitemapRole, loose: true},
	{name: "sitemapindex", role: sitemapRole, loose: true},
	{name: "rss", role: rssRole},
	{name: "rdf", role: rssRole},
	{name: "feed", role: atomRole},
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
	case "image", "video", "news": // extensions whose prefix is missing
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

// rootOf returns the format whose root has that name, or nil if there is none.
func rootOf(local []byte) *format {
	for _, f := range formats {
		if string(local) == f.name {
			return f
		}
	}
	return nil
}

// roleOf returns the role of an element of the document. Elements of other namespaces have no role,
// except dc:date in feeds: RSS 1.0 takes its date from Dublin Core.
func (r *Reader) roleOf(t *tag) role {
	if t.colon == 0 || string(t.prefix()) == r.prefix {
		return r.format.role(t.local())
	}
	if string(t.prefix()) == "dc" && string(t.local()) == "date" && !r.format.loose {
		return roleLastMod
	}
	return roleNone
}
