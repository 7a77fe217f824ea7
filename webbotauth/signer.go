package webbotauth

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/dunglas/httpsfv"
)

// A Profile says which form of a signature a Signer makes. The verifiers differ, so choose the one
// that the crawled sites use. The zero Profile is Draft.
type Profile int

const (
	// Draft follows draft-ietf-webbotauth-httpsig-protocol-01. Signature-Agent is a Dictionary whose
	// member is the URL of the key set itself. A signature covers @method, @authority, @path and that
	// member. It is valid for five minutes; the draft recommends at most 24 hours.
	Draft Profile = iota

	// Cloudflare follows the documentation of Cloudflare's verifier. Signature-Agent is a String,
	// the URL of the site with the key directory. A signature covers @authority and that header,
	// without component parameters, which the verifier does not support. It is valid for one
	// minute.
	Cloudflare
)

// Names of header fields.
const (
	fieldSignature = "Signature"
	fieldInput     = "Signature-Input"
	fieldAgent     = "Signature-Agent"
)

// label names the signature in the headers, and under Draft the member of Signature-Agent.
const label = "sig1"

// requestTag is the tag of the signatures of requests.
const requestTag = "web-bot-auth"

// A profile holds the properties of a Profile.
type profile struct {
	name       string
	dictionary bool // Signature-Agent is a Dictionary
	narrow     bool // @method and @path are covered
	lifetime   time.Duration
}

var profiles = []profile{
	Draft:      {name: "Draft", dictionary: true, narrow: true, lifetime: 5 * time.Minute},
	Cloudflare: {name: "Cloudflare", lifetime: time.Minute},
}

// String returns the name of the Profile.
func (p Profile) String() string {
	if p < 0 || int(p) >= len(profiles) {
		return fmt.Sprintf("Profile(%d)", int(p))
	}
	return profiles[p].name
}

// A Signer signs requests. Its methods may be called from any goroutine. Get a Signer from
// NewSigner: the zero Signer is not valid.
type Signer struct {
	// WhenAsked makes the option SignRequests of package collyrobots sign only the requests to
	// sites that ask for it; see Asked. Set it before the Signer is used. Sign and SignNonce ignore
	// it.
	WhenAsked bool

	profile profile
	agent   string // the URL in Signature-Agent
	field   string // the value of Signature-Agent
	key     atomic.Pointer[signingKey]
}

// ErrZeroSigner is the error of Sign for a Signer that is nil or was not made by NewSigner.
var ErrZeroSigner = errors.New("webbotauth: the Signer is a zero value; use NewSigner")

// NewSigner returns a Signer. agent is the https URL for the header Signature-Agent. Under Draft it
// is the URL of the key set, which a Directory serves at DirectoryPath. Under Cloudflare it is the
// URL of the site that has the directory, such as https://example.com.
//
// NewSigner returns an error if the key has the wrong size, has a public half that does not belong
// to its seed, or is the published test key of RFC 9421, and if agent is not such a URL. The Signer keeps the key. It never writes the private part
// anywhere.
func NewSigner(key ed25519.PrivateKey, agent string, profile Profile) (*Signer, error) {
	if profile < 0 || int(profile) >= len(profiles) {
		return nil, fmt.Errorf("webbotauth: %v does not exist: use Draft or Cloudflare", profile)
	}
	s := &Signer{profile: profiles[profile], agent: agent}
	err := errors.Join(s.SetKey(key), s.checkAgent())
	if err != nil {
		return nil, err
	}
	s.field, err = s.agentField()
	if err != nil {
		return nil, fmt.Errorf("webbotauth: agent %q: %w", agent, err)
	}
	return s, nil
}

// checkAgent returns an error if the agent of s cannot be the value of Signature-Agent.
func (s *Signer) checkAgent() error {
	u, err := url.Parse(s.agent)
	switch {
	case err != nil || u.Scheme != "https" || u.Hostname() == "" || !isPrintable(s.agent):
		return fmt.Errorf("webbotauth: agent %q is not an https URL", s.agent)
	case u.User != nil:
		return errors.New("webbotauth: agent has a user name or a password, which every site would receive")
	case u.Fragment != "":
		return fmt.Errorf("webbotauth: agent %q has a fragment", s.agent)
	case s.profile.dictionary && (u.Path == "" || u.Path == "/"):
		return fmt.Errorf("webbotauth: agent %q is a site: the profile Draft needs the URL of its key set, such as https://%s%s", s.agent, u.Host, DirectoryPath)
	}
	return nil
}

// agentField returns the value of Signature-Agent.
func (s *Signer) agentField() (string, error) {
	if !s.profile.dictionary {
		return httpsfv.Marshal(httpsfv.NewItem(s.agent))
	}
	return marshalMember(label, httpsfv.NewItem(s.agent))
}

// SetKey makes s sign with another key from now on. A request that is being signed may still get a
// signature with the previous key. Publish the new key in the Directory before the call of SetKey,
// and the old key until its last signature has expired.
func (s *Signer) SetKey(key ed25519.PrivateKey) error {
	checked, err := newSigningKey(key)
	if err != nil {
		return fmt.Errorf("webbotauth: %w", err)
	}
	s.key.Store(checked)
	return nil
}

// KeyID returns the thumbprint of the key that s signs with now. It is empty if s is nil or was not
// made by NewSigner.
func (s *Signer) KeyID() string {
	if s == nil || s.key.Load() == nil {
		return ""
	}
	return s.key.Load().id
}

// Sign adds the headers Signature-Agent, Signature-Input and Signature to a request that is about
// to be sent. It replaces them if Sign has set them before, so a request that is sent again can be
// signed again. The signature is valid for one method, site and path, and for a short time: sign
// each request separately, just before it is sent.
//
// If the request has other Signature headers, the program has signed it itself, and Sign changes
// nothing. Sign returns an error, and changes nothing, if a part of the request cannot be signed,
// such as a path with characters that are not ASCII.
func (s *Signer) Sign(req *http.Request) error { return s.SignNonce(req, "") }

// SignNonce is like Sign with the nonce that a site has asked for; see Asked. If nonce is empty, it
// is a random one.
func (s *Signer) SignNonce(req *http.Request, nonce string) error {
	if s.KeyID() == "" {
		return ErrZeroSigner
	}
	if req.Header == nil {
		req.Header = make(http.Header)
	}
	if s.signedByProgram(req.Header) {
		return nil
	}
	if nonce == "" {
		nonce = newNonce()
	}
	input, signature, err := s.headers(req, nonce)
	if err != nil {
		return fmt.Errorf("webbotauth: %w", err)
	}
	req.Header[fieldAgent] = []string{s.field}
	req.Header[fieldInput] = []string{input}
	req.Header[fieldSignature] = []string{signature}
	return nil
}

// signedByProgram reports whether h has signature headers that Sign has not set.
func (s *Signer) signedByProgram(h http.Header) bool {
	if len(h[fieldInput]) == 0 && len(h[fieldSignature]) == 0 {
		return false
	}
	agent := h[fieldAgent]
	return len(agent) != 1 || agent[0] != s.field
}

// headers returns the values of Signature-Input and Signature.
func (s *Signer) headers(req *http.Request, nonce string) (input, signature string, err error) {
	components, err := s.components(req)
	if err != nil {
		return "", "", err
	}
	statement := statement{
		created:  time.Now(),
		lifetime: s.profile.lifetime,
		nonce:    nonce,
		tag:      requestTag,
	}
	list, value, err := statement.sign(s.key.Load(), components)
	if err != nil {
		return "", "", err
	}
	return marshalPair(label, list, value)
}

// components returns what a signature of req covers.
func (s *Signer) components(req *http.Request) ([]component, error) {
	host, err := authority(req)
	if err != nil {
		return nil, fmt.Errorf("@authority cannot be signed: %w", err)
	}
	site := component{name: "@authority", value: host}
	agent := component{name: "signature-agent", value: s.field}
	if s.profile.dictionary {
		agent.key = label
		agent.value, err = httpsfv.Marshal(httpsfv.NewItem(s.agent))
		if err != nil {
			return nil, err
		}
	}
	if !s.profile.narrow {
		return []component{site, agent}, nil
	}
	return []component{
		{name: "@method", value: method(req)},
		site,
		{name: "@path", value: path(req.URL)},
		agent,
	}, nil
}

// marshalPair returns the values of Signature-Input and Signature for one signature.
func marshalPair(label string, input httpsfv.InnerList, signature httpsfv.Item) (inputs, signatures string, err error) {
	inputs, err = marshalMember(label, input)
	if err != nil {
		return "", "", err
	}
	signatures, err = marshalMember(label, signature)
	return inputs, signatures, err
}

// marshalMember returns a Dictionary with one member.
func marshalMember(key string, member httpsfv.Member) (string, error) {
	d := httpsfv.NewDictionary()
	d.Add(key, member)
	return httpsfv.Marshal(d)
}
