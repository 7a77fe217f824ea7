package usage

import (
	"net/http"
	"net/url"
)

// Terms has the preferences for the content of one URL, and its licenses.
type Terms struct {
	// Preferences are those of all sources together.
	Preferences Preferences `json:"preferences"`
	// Use is the value of the key use of Content-Signal. If robots.txt and the response have
	// different ones, it is the most restrictive one.
	Use Use `json:"use,omitempty"`
	// TDM is the TDMRep declaration in force. It is zero if there is none.
	TDM TDM `json:"tdm,omitzero"`
	// Licenses are the licenses that the site names, at most 16.
	Licenses []License `json:"licenses,omitempty"`
	// LicenseRequired reports whether the response asks for a license; see the function
	// LicenseRequired.
	LicenseRequired bool `json:"license_required,omitempty"`
}

// Sources are the places where a site states preferences for the content of a URL. A field is zero
// if the source is not known.
type Sources struct {
	Robots     *RobotsTxt // the statements in robots.txt for the crawler; nil if the crawler must not request the URL
	RobotsHash string     // of the robots.txt, for Source.Hash; may be ""
	TDMFile    *TDMFile
	Status     int                      // of the response
	Header     http.Header              // of the response
	Meta       func(name string) string // returns the attribute content of the first meta element with a name; may be nil
}

// Terms evaluates the sources for u. The strongest preference of all sources counts, with one
// exception: a TDMRep declaration in a response header overrides that of the file, and one in HTML
// overrides both.
func (s Sources) Terms(u *url.URL) Terms {
	target := Target(u)
	said, use := s.Robots.of(target)
	terms := Terms{
		Preferences:     said.withHash(s.RobotsHash),
		Use:             use,
		TDM:             s.TDMFile.Of(target),
		LicenseRequired: LicenseRequired(s.Status, s.Header),
	}
	if s.Robots != nil {
		for _, l := range s.Robots.licenses {
			l.Hash = s.RobotsHash
			terms.Licenses = append(terms.Licenses, l)
		}
	}
	terms.addHeader(s.Header, u)
	if s.Meta != nil {
		terms.TDM = terms.TDM.Override(ParseTDMMeta(s.Meta, Source{Name: "meta tdm-reservation"}))
	}
	terms.Preferences = terms.Preferences.Combine(terms.TDM.Preferences())
	return terms
}

// addHeader adds the statements in h, the header of the response for u.
func (t *Terms) addHeader(h http.Header, u *url.URL) {
	if len(h) == 0 {
		return
	}
	said := ParseContentUsage(h.Values("Content-Usage"), Source{Name: "Content-Usage"})
	t.Preferences = t.Preferences.Combine(said)
	signals, use := ParseContentSignal(h.Values("Content-Signal"), Source{Name: "Content-Signal"})
	t.Preferences = t.Preferences.Combine(signals)
	t.Use = narrower(t.Use, use)
	t.TDM = t.TDM.Override(ParseTDMHeader(h, Source{Name: "tdm-reservation"}))
	t.Licenses = addLinks(t.Licenses, u, h)
}

// withHash returns p with a hash in the source of each statement.
func (p Preferences) withHash(hash string) Preferences {
	for _, s := range []*Statement{&p.Search, &p.AIUse, &p.TrainAI} {
		if s.Preference != Unknown {
			s.Hash = hash
		}
	}
	return p
}
