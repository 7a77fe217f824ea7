// Package sigverify verifies HTTP message signatures with Ed25519, for tests of package webbotauth.
// It is written from RFC 9421 and shares no code with that package, also not its parser of
// structured fields. It does not fetch keys.
package sigverify

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Message is a message as its receiver sees it. For a response, the derived components are those
// of its request.
type Message struct {
	Method   string
	Scheme   string // "http" or "https"
	Host     string // the Host header
	Target   string // path and query, as sent on the wire
	Header   http.Header
	Response bool
}

// OfRequest returns the message of a request that a server has received.
func OfRequest(r *http.Request) Message {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return Message{
		Method: r.Method,
		Scheme: scheme,
		Host:   r.Host,
		Target: r.RequestURI,
		Header: r.Header,
	}
}

// OfResponse returns the message of a response that a client has received over https.
func OfResponse(r *http.Response) Message {
	return Message{
		Method:   r.Request.Method,
		Scheme:   "https",
		Host:     r.Request.URL.Host,
		Target:   r.Request.URL.RequestURI(),
		Header:   r.Header,
		Response: true,
	}
}

// A Verifier verifies signatures. Its fields must not change while it is used. It may be used by
// several goroutines.
type Verifier struct {
	Key      func(keyid string) ed25519.PublicKey // returns nil for an unknown key
	Tag      string                               // the tag of the signatures that are verified
	Required []string                             // the identifiers of components that must be covered
	MaxAge   time.Duration                        // the longest time between created and expires
	Agent    string                               // the value of Signature-Agent; "" if any is accepted

	mu     sync.Mutex
	nonces map[string]bool // those that were used
}

// Verify verifies the only signature of m with the tag, as of now. It returns an error if there is
// no such signature or it is not valid, also if its nonce was used before.
func (v *Verifier) Verify(m Message, now time.Time) error {
	found, err := v.signatures(m)
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return fmt.Errorf("%d signatures with the tag %s: want 1", len(found), v.Tag)
	}
	return v.verify(m, found[0], now)
}

// VerifyAll verifies all signatures of m with the tag, and returns the IDs of their keys.
func (v *Verifier) VerifyAll(m Message, now time.Time) (keyIDs []string, err error) {
	found, err := v.signatures(m)
	if err != nil {
		return nil, err
	}
	for _, s := range found {
		err = v.verify(m, s, now)
		if err != nil {
			return nil, err
		}
		id, _ := s.text("keyid")
		keyIDs = append(keyIDs, id)
	}
	return keyIDs, nil
}

// A signature is one signature of a message.
type signature struct {
	label      string
	components []item
	params     []param
	value      []byte
}

// text returns a parameter that is a string.
func (s signature) text(key string) (string, bool) {
	value, ok := s.param(key).(string)
	return value, ok
}

// param returns a parameter, or nil.
func (s signature) param(key string) any {
	for _, p := range s.params {
		if p.key == key {
			return p.value
		}
	}
	return nil
}

// signatures returns the signatures of m with the tag.
func (v *Verifier) signatures(m Message) ([]signature, error) {
	inputs, err := parseDictionary(m.Header["Signature-Input"])
	if err != nil {
		return nil, fmt.Errorf("reading Signature-Input: %w", err)
	}
	values, err := parseDictionary(m.Header["Signature"])
	if err != nil {
		return nil, fmt.Errorf("reading Signature: %w", err)
	}
	var found []signature
	for _, input := range inputs {
		components, isList := input.value.([]item)
		if !isList {
			return nil, fmt.Errorf("%s in Signature-Input is not an inner list", input.key)
		}
		s := signature{label: input.key, components: components, params: input.params}
		if tag, _ := s.text("tag"); tag != v.Tag {
			continue
		}
		value, _ := find(values, input.key)
		s.value, isList = value.value.([]byte)
		if !isList {
			return nil, fmt.Errorf("no value for %s in Signature", input.key)
		}
		found = append(found, s)
	}
	return found, nil
}

// verify verifies one signature (RFC 9421, section 3.2).
func (v *Verifier) verify(m Message, s signature, now time.Time) error {
	err := v.checkParams(s, now)
	if err != nil {
		return err
	}
	if agent := strings.Join(m.Header["Signature-Agent"], ", "); v.Agent != "" && agent != v.Agent {
		return fmt.Errorf("unexpected Signature-Agent %s", agent)
	}
	id, _ := s.text("keyid")
	key := v.Key(id)
	if key == nil {
		return fmt.Errorf("unknown key %q", id)
	}
	base, err := v.base(m, s)
	if err != nil {
		return err
	}
	if !ed25519.Verify(key, []byte(base), s.value) {
		return errors.New("the signature does not match the message")
	}
	return v.use(s)
}

// checkParams checks the times and the other parameters of a signature.
func (v *Verifier) checkParams(s signature, now time.Time) error {
	created, hasCreated := s.param("created").(int64)
	expires, hasExpires := s.param("expires").(int64)
	switch {
	case !hasCreated || !hasExpires:
		return errors.New("created or expires is missing")
	case created > now.Unix():
		return errors.New("created is in the future")
	case expires <= now.Unix():
		return errors.New("the signature has expired")
	case time.Duration(expires-created)*time.Second > v.MaxAge:
		return errors.New("the signature is valid for too long")
	}
	if alg := s.param("alg"); alg != nil && alg != "ed25519" {
		return fmt.Errorf("unknown algorithm %v", alg)
	}
	return nil
}

// use records the nonce of a valid signature, and returns an error if it was used before.
func (v *Verifier) use(s signature) error {
	nonce, ok := s.text("nonce")
	if !ok || nonce == "" {
		return errors.New("nonce is missing")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.nonces[nonce] {
		return errors.New("the nonce was used before")
	}
	if v.nonces == nil {
		v.nonces = make(map[string]bool)
	}
	v.nonces[nonce] = true
	return nil
}

// base returns the signature base (RFC 9421, section 2.5).
func (v *Verifier) base(m Message, s signature) (string, error) {
	var base strings.Builder
	var identifiers []string
	for _, c := range s.components {
		id := c.identifier()
		if slices.Contains(identifiers, id) {
			return "", fmt.Errorf("%s is covered twice", id)
		}
		identifiers = append(identifiers, id)
		value, err := m.component(c)
		if err != nil {
			return "", fmt.Errorf("%s: %w", id, err)
		}
		base.WriteString(id + ": " + value + "\n")
	}
	for _, required := range v.Required {
		if !slices.Contains(identifiers, required) {
			return "", fmt.Errorf("%s is not covered", required)
		}
	}
	base.WriteString(`"@signature-params": (` + strings.Join(identifiers, " ") + ")" + formatParams(s.params))
	return base.String(), nil
}

// component returns the value of a component (RFC 9421, sections 2.1 and 2.2).
func (m Message) component(c item) (string, error) {
	ofRequest := false
	key := ""
	for _, p := range c.params {
		value, isText := p.value.(string)
		switch {
		case p.key == "req" && p.value == true && m.Response:
			ofRequest = true
		case p.key == "key" && isText:
			key = value
		default:
			return "", fmt.Errorf("unsupported parameter %s", p.key)
		}
	}
	if strings.HasPrefix(c.value, "@") {
		if m.Response != ofRequest || key != "" {
			return "", errors.New("not a component of this message")
		}
		return m.derived(c.value)
	}
	values := m.Header.Values(c.value)
	if len(values) == 0 || ofRequest || c.value != strings.ToLower(c.value) {
		return "", errors.New("no such field")
	}
	if key == "" {
		return strings.TrimSpace(strings.Join(values, ", ")), nil
	}
	members, err := parseDictionary(values)
	if err != nil {
		return "", err
	}
	member, ok := find(members, key)
	text, isText := member.value.(string)
	if !ok || !isText || len(member.params) > 0 {
		return "", fmt.Errorf("no member %s that is a String without parameters", key)
	}
	return quote(text), nil
}

// derived returns the value of a derived component.
func (m Message) derived(name string) (string, error) {
	path, query, hasQuery := strings.Cut(m.Target, "?")
	switch name {
	case "@method":
		return m.Method, nil
	case "@authority":
		return m.authority(), nil
	case "@path":
		if path == "" {
			path = "/"
		}
		return path, nil
	case "@query":
		if !hasQuery {
			return "?", nil
		}
		return "?" + query, nil
	}
	return "", errors.New("unsupported component")
}

// authority returns the normalized authority (RFC 9421, section 2.2.3).
func (m Message) authority() string {
	host := strings.ToLower(m.Host)
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return host
	}
	if port == "443" && m.Scheme == "https" || port == "80" && m.Scheme == "http" {
		if strings.Contains(name, ":") {
			return "[" + name + "]"
		}
		return name
	}
	return host
}

// Digest reports whether a Content-Digest field is the SHA-256 of a body (RFC 9530).
func Digest(field string, body []byte) bool {
	sum := sha256.Sum256(body)
	return field == "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":"
}

// Keys parses a JWK Set and returns the Ed25519 keys by their thumbprints (RFC 7638), which must be
// equal to their kid, if they have one.
func Keys(set []byte) (map[string]ed25519.PublicKey, error) {
	var parsed struct {
		Keys []struct{ Kty, Crv, Kid, X, D string }
	}
	err := json.Unmarshal(set, &parsed)
	if err != nil {
		return nil, err
	}
	keys := make(map[string]ed25519.PublicKey)
	for _, k := range parsed.Keys {
		if k.D != "" {
			return nil, errors.New("the directory has a private key")
		}
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || k.Kty != "OKP" || k.Crv != "Ed25519" || len(x) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("not an Ed25519 key: %+v", k)
		}
		sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"Ed25519","kty":"OKP","x":"%s"}`, k.X))
		id := base64.RawURLEncoding.EncodeToString(sum[:])
		if k.Kid != "" && k.Kid != id {
			return nil, fmt.Errorf("kid %s is not the thumbprint %s", k.Kid, id)
		}
		keys[id] = x
	}
	return keys, nil
}
