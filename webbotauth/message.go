package webbotauth

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
	"golang.org/x/net/http/httpguts"
)

// This file makes signatures as RFC 9421, section 3.1, describes.

// A component is a covered component of a message, and its value.
type component struct {
	name  string
	key   string // the parameter key; "" if there is none
	req   bool   // the parameter req
	value string
}

// item returns the component identifier (RFC 9421, section 2).
func (c component) item() httpsfv.Item {
	item := httpsfv.NewItem(c.name)
	if c.key != "" {
		item.Params.Add("key", c.key)
	}
	if c.req {
		item.Params.Add("req", true)
	}
	return item
}

// A statement holds the parameters of a signature.
type statement struct {
	created  time.Time
	lifetime time.Duration
	nonce    string // "" if there is none
	tag      string
}

// nonceSize is the number of random bytes of a nonce. It is that of the examples in the drafts.
const nonceSize = 64

// newNonce returns a new value of the parameter nonce.
func newNonce() string {
	var b [nonceSize]byte
	rand.Read(b[:]) // never fails
	return base64.StdEncoding.EncodeToString(b[:])
}

// params returns the parameters of a signature with key.
func (s statement) params(key *signingKey) *httpsfv.Params {
	p := httpsfv.NewParams()
	p.Add("created", s.created.Unix())
	p.Add("expires", s.created.Add(s.lifetime).Unix())
	p.Add("keyid", key.id)
	if s.nonce != "" {
		p.Add("nonce", s.nonce)
	}
	p.Add("tag", s.tag)
	return p
}

// sign returns the members of Signature-Input and Signature for a message with these components.
func (s statement) sign(key *signingKey, components []component) (input httpsfv.InnerList, signature httpsfv.Item, err error) {
	input = httpsfv.InnerList{Params: s.params(key)}
	for _, c := range components {
		input.Items = append(input.Items, c.item())
	}
	base, err := signatureBase(components, input)
	if err != nil {
		return httpsfv.InnerList{}, httpsfv.Item{}, err
	}
	return input, httpsfv.NewItem(ed25519.Sign(key.private, []byte(base))), nil
}

var errNotASCII = errors.New("its value has a character that is not printable ASCII")

// signatureBase returns the signature base (RFC 9421, section 2.5) of a message with these
// components. params is the value of @signature-params.
func signatureBase(components []component, params httpsfv.InnerList) (string, error) {
	var base strings.Builder
	for _, c := range components {
		if !isPrintable(c.value) {
			return "", fmt.Errorf("%s cannot be signed: %w", c.name, errNotASCII)
		}
		identifier, err := httpsfv.Marshal(c.item())
		if err != nil {
			return "", fmt.Errorf("%s cannot be signed: %w", c.name, err)
		}
		base.WriteString(identifier)
		base.WriteString(": ")
		base.WriteString(c.value)
		base.WriteString("\n")
	}
	list, err := httpsfv.Marshal(params)
	if err != nil {
		return "", err
	}
	base.WriteString(`"@signature-params": `)
	base.WriteString(list)
	return base.String(), nil
}

// isPrintable reports whether s has only printable ASCII characters and blanks.
func isPrintable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// method returns the value of @method (RFC 9421, section 2.2.1).
func method(req *http.Request) string {
	if req.Method == "" {
		return http.MethodGet // as in net/http
	}
	return req.Method
}

// authority returns the value of @authority (RFC 9421, section 2.2.3) as net/http sends it.
func authority(req *http.Request) (string, error) {
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	host, err := httpguts.PunycodeHostPort(withoutZone(host))
	if err != nil {
		return "", err
	}
	return normalAuthority(req.URL.Scheme, host), nil
}

// withoutZone removes the zone of an IPv6 address, which net/http does not send.
func withoutZone(host string) string {
	end := strings.LastIndexByte(host, ']')
	zone := strings.IndexByte(host, '%')
	if !strings.HasPrefix(host, "[") || zone < 0 || zone > end {
		return host
	}
	return host[:zone] + host[end:]
}

// normalAuthority returns a host in lower case, without the default port of the scheme.
func normalAuthority(scheme, host string) string {
	host = strings.ToLower(host)
	port := ":443"
	if scheme == "http" {
		port = ":80"
	}
	host = strings.TrimSuffix(host, port)
	return strings.TrimSuffix(host, ":")
}

// path returns the value of @path (RFC 9421, section 2.2.6) as net/http sends it.
func path(u *url.URL) string {
	target := u.RequestURI()
	if u.Opaque != "" {
		target = strings.TrimPrefix(target, u.Scheme+"://"+u.Host)
	}
	target, _, _ = strings.Cut(target, "?")
	if target == "" {
		return "/"
	}
	return target
}
