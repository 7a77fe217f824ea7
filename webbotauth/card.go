package webbotauth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/url"
)

// A Card describes a crawler to the owners of sites: as a Signature Agent Card in JSON
// (draft-meunier-webbotauth-registry-04, section 3) and as a web page. All fields are optional, and
// an empty field is left out. Plugin.Card of package collyrobots returns one with the fields that
// the options of a crawl determine.
type Card struct {
	ID       string   `json:"client_id,omitempty"`   // the https URL at which the card is served
	Name     string   `json:"client_name,omitempty"` // for people, such as "Example Bot"
	Page     string   `json:"client_uri,omitempty"`  // the URL of the page about the crawler
	Logo     string   `json:"logo_uri,omitempty"`    // the URL of an image
	Contacts []string `json:"contacts,omitempty"`    // URIs, such as "mailto:bot@example.com"
	KeySet   string   `json:"jwks_uri,omitempty"`    // the https URL of the key directory
	Bot      Bot      `json:"web_bot_auth"`
}

// A Bot holds the members of a Card that are about crawling (section 3.2 of the draft).
type Bot struct {
	UserAgent    string   `json:"expected-user-agent,omitempty"`   // the User-Agent, or a prefix that ends with "*"
	ProductToken string   `json:"rfc9309-product-token,omitempty"` // the name in robots.txt
	ObeysRobots  bool     `json:"rfc9309-compliance"`              // whether the crawler claims to comply with RFC 9309
	Trigger      string   `json:"trigger,omitempty"`               // "crawler", or "fetcher" if a user causes each request
	Purpose      string   `json:"purpose,omitempty"`               // what the pages are used for, such as "search"
	Content      string   `json:"targeted-content,omitempty"`      // which pages the crawler looks for
	RateControl  string   `json:"rate-control,omitempty"`          // how a site can slow the crawler down
	Rate         string   `json:"rate-expectation,omitempty"`      // how many requests a site can expect
	KnownURLs    []string `json:"known-urls,omitempty"`            // paths that are requested on every site
	Addresses    string   `json:"ips_uri,omitempty"`               // the https URL of the list of IP addresses
}

// JSON returns the Signature Agent Card, to be served as application/json. It returns an error if a
// field that has to be a URL is not one.
func (c Card) JSON() ([]byte, error) {
	err := c.check()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(c)
	return b.Bytes(), err
}

// check returns the faults of the URLs of c.
func (c Card) check() error {
	var faults []error
	for _, f := range []struct{ name, value string }{
		{"ID", c.ID},
		{"Page", c.Page},
		{"Logo", c.Logo},
		{"KeySet", c.KeySet},
		{"Bot.Addresses", c.Bot.Addresses},
	} {
		if f.value == "" {
			continue
		}
		u, err := url.Parse(f.value)
		if err != nil || u.Scheme != "https" || u.Host == "" {
			faults = append(faults, fmt.Errorf("webbotauth: Card: %s %q is not an https URL", f.name, f.value))
		}
	}
	for _, contact := range c.Contacts {
		u, err := url.Parse(contact)
		if err != nil || !u.IsAbs() {
			faults = append(faults, fmt.Errorf("webbotauth: Card: contact %q is not a URI: write an address as mailto:%s", contact, contact))
		}
	}
	return errors.Join(faults...)
}

// HTML returns a web page about the crawler, in UTF-8. It has the contents that
// draft-illyes-webbotauth-cbcp-01, section 2, asks for, as far as they are in c. HTML returns the
// same errors as JSON.
func (c Card) HTML() ([]byte, error) {
	err := c.check()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = botPage.Execute(&b, struct {
		Card
		Title string
	}{Card: c, Title: c.title()})
	return b.Bytes(), err
}

// title returns the heading of the page: the name, or the product token if there is no name.
func (c Card) title() string {
	switch {
	case c.Name != "":
		return c.Name
	case c.Bot.ProductToken != "":
		return c.Bot.ProductToken
	}
	return "About this crawler"
}

var botPage = template.Must(template.New("bot").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{{.Title}}</title>
{{with .Bot.Addresses}}<link rel="client-ranges" href="{{.}}">
{{end -}}
</head>
<body>
<h1>{{.Title}}</h1>
{{with .Bot.Purpose}}<p>Purpose: {{.}}</p>
{{end}}{{with .Bot.Content}}<p>Pages that it looks for: {{.}}</p>
{{end}}<h2>How to recognize it</h2>
<ul>
{{with .Bot.UserAgent}}<li>User-Agent: <code>{{.}}</code></li>
{{end}}{{with .KeySet}}<li>It signs its requests (Web Bot Auth). Its keys: <a href="{{.}}">{{.}}</a></li>
{{end}}{{with .Bot.Addresses}}<li>Its addresses: <a href="{{.}}">{{.}}</a></li>
{{end}}</ul>
<h2>How to control it</h2>
{{if .Bot.ObeysRobots}}<p>It obeys robots.txt (RFC 9309).{{with .Bot.ProductToken}} These lines deny it the whole site:</p>
<pre>User-agent: {{.}}
Disallow: /</pre>{{else}}</p>{{end}}
{{else}}<p>It does not claim to obey robots.txt on every site.</p>
{{end}}{{with .Bot.RateControl}}<p>To slow it down: {{.}}</p>
{{end}}{{with .Bot.Rate}}<p>Expected rate: {{.}}</p>
{{end}}{{with .Contacts}}<h2>Contact</h2>
<ul>
{{range .}}<li><a href="{{.}}">{{.}}</a></li>
{{end}}</ul>
{{end}}</body>
</html>
`))
