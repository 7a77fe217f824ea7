package webbotauth

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/dunglas/httpsfv"
)

// DirectoryPath is the path at which verifiers look for the key directory of a site.
const DirectoryPath = "/.well-known/http-message-signatures-directory"

// directoryType is the media type of a key directory.
const directoryType = "application/http-message-signatures-directory+json"

// directoryTag is the tag of the signatures of a directory.
const directoryTag = "http-message-signatures-directory"

// directoryAge is how long a verifier may cache a directory. A verifier may accept a key for this
// time after the key was removed.
const directoryAge = time.Hour

// directoryLifetime is how long the signatures of a directory are valid.
const directoryLifetime = 24 * time.Hour

// Directory returns a handler that serves the public parts of keys as a key directory
// (draft-ietf-webbotauth-httpsig-protocol-01, "Directory Format"). Each key signs the response,
// which proves that its owner has put it there ("Possession Proof on the Directory Response"). The
// signatures cover "@authority";req and content-digest.
//
// For a rotation, give both keys to the Directory: the new one before requests are signed with it,
// and the old one with a NotAfter. The handler leaves a key out once its NotAfter has passed. Do
// not sign requests for other purposes with these keys.
//
// Serve the directory over https at DirectoryPath, and only under the crawler's own host name,
// because the signatures are for the host that the request names. Otherwise another site could
// present the keys as its own:
//
//	mux.Handle("example.com"+webbotauth.DirectoryPath, directory)
//
// Directory returns an error if there are no keys, or if one has the wrong size or a public half
// that does not belong to its seed, is the published test key of RFC 9421, or is given twice. The handler may be used by several goroutines.
func Directory(keys ...Key) (http.Handler, error) {
	if len(keys) == 0 {
		return nil, errors.New("webbotauth: Directory: no keys")
	}
	d := &directory{}
	known := make(map[string]bool)
	for i, k := range keys {
		signing, err := newSigningKey(k.Private)
		if err == nil && known[signing.id] {
			err = errors.New("the key is given twice")
		}
		if err != nil {
			return nil, fmt.Errorf("webbotauth: Directory: key %d: %w", i+1, err)
		}
		known[signing.id] = true
		d.keys = append(d.keys, publishedKey{signingKey: signing, notBefore: k.NotBefore, notAfter: k.NotAfter})
	}
	return d, nil
}

// A publishedKey is a key of a directory.
type publishedKey struct {
	*signingKey
	notBefore time.Time
	notAfter  time.Time
}

// A directory serves keys. It implements http.Handler.
type directory struct{ keys []publishedKey }

// A jsonKey is a JSON Web Key (RFC 7517, RFC 8037). nbf and exp are those of the drafts.
type jsonKey struct {
	Type      string `json:"kty"`
	Curve     string `json:"crv"`
	ID        string `json:"kid"`
	X         string `json:"x"`
	Use       string `json:"use"`
	NotBefore int64  `json:"nbf,omitempty"`
	NotAfter  int64  `json:"exp,omitempty"`
}

// json returns the public part of k.
func (k publishedKey) json() jsonKey {
	j := jsonKey{
		Type:  "OKP",
		Curve: "Ed25519",
		ID:    k.id,
		X:     base64.RawURLEncoding.EncodeToString(k.private.Public().(ed25519.PublicKey)),
		Use:   "sig",
	}
	if !k.notBefore.IsZero() {
		j.NotBefore = k.notBefore.Unix()
	}
	if !k.notAfter.IsZero() {
		j.NotAfter = k.notAfter.Unix()
	}
	return j
}

// ServeHTTP implements http.Handler.
func (d *directory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	now := time.Now()
	keys, age := d.at(now)
	body, err := keySet(keys)
	if err == nil {
		err = setProof(w.Header(), r, body, now, keys)
	}
	if err != nil {
		http.Error(w, "the directory cannot be signed for this host", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", directoryType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Header().Set("Cache-Control", fmt.Sprintf("max-age=%d", int(age.Seconds())))
	if r.Method == http.MethodGet {
		w.Write(body)
	}
}

// at returns the keys that are published at a time, and for how long that holds.
func (d *directory) at(now time.Time) (keys []publishedKey, age time.Duration) {
	age = directoryAge
	for _, k := range d.keys {
		if k.notAfter.IsZero() {
			keys = append(keys, k)
			continue
		}
		left := k.notAfter.Sub(now)
		if left > 0 {
			keys = append(keys, k)
			age = min(age, left)
		}
	}
	return keys, age
}

// keySet returns the JWK Set of keys.
func keySet(keys []publishedKey) ([]byte, error) {
	set := struct {
		Keys []jsonKey `json:"keys"`
	}{Keys: []jsonKey{}}
	for _, k := range keys {
		set.Keys = append(set.Keys, k.json())
	}
	return json.Marshal(set)
}

// setProof sets the headers that prove the possession of keys, in a response to r with this body.
func setProof(h http.Header, r *http.Request, body []byte, now time.Time, keys []publishedKey) error {
	sum := sha256.Sum256(body)
	digest, err := marshalMember("sha-256", httpsfv.NewItem(sum[:]))
	if err != nil {
		return err
	}
	components := []component{
		{name: "@authority", req: true, value: normalAuthority("https", r.Host)},
		{name: "content-digest", value: digest},
	}
	inputs := httpsfv.NewDictionary()
	signatures := httpsfv.NewDictionary()
	for i, k := range keys {
		statement := statement{
			created:  now,
			lifetime: directoryLifetime,
			nonce:    newNonce(),
			tag:      directoryTag,
		}
		input, signature, err := statement.sign(k.signingKey, components)
		if err != nil {
			return err
		}
		name := "sig" + strconv.Itoa(i+1)
		inputs.Add(name, input)
		signatures.Add(name, signature)
	}
	h.Set("Content-Digest", digest)
	if len(keys) == 0 {
		return nil
	}
	return setFields(h, inputs, signatures)
}

// setFields sets Signature-Input and Signature.
func setFields(h http.Header, inputs, signatures *httpsfv.Dictionary) error {
	for name, d := range map[string]*httpsfv.Dictionary{fieldInput: inputs, fieldSignature: signatures} {
		value, err := httpsfv.Marshal(d)
		if err != nil {
			return err
		}
		h.Set(name, value)
	}
	return nil
}
