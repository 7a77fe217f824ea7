package webbotauth

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"
)

// A Key is a signing key and the time during which a Directory publishes it.
type Key struct {
	Private ed25519.PrivateKey

	// NotBefore is when requests are first signed with the key, or the zero time if that is not
	// known. The key is published before that, so that verifiers know it in time.
	NotBefore time.Time

	// NotAfter is when the key is no longer published, or the zero time if there is no end. It
	// should be later than the last signature with the key by as long as that signature is valid.
	NotAfter time.Time
}

// KeyID returns the thumbprint that names a public key in signatures: the base64url of the SHA-256
// of its JSON Web Key (RFC 7638, section 3; RFC 8037, appendix A.3).
func KeyID(key ed25519.PublicKey) string {
	jwk := `{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(key) + `"}`
	sum := sha256.Sum256([]byte(jwk))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// A signingKey is a private key with its thumbprint.
type signingKey struct {
	private ed25519.PrivateKey
	id      string
}

// testKeyID is the thumbprint of the Ed25519 key that RFC 9421, appendix B.1.4, publishes with its
// private part. The drafts use it in their examples.
const testKeyID = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"

var errTestKey = errors.New("the key is the example of RFC 9421, whose private part is public: generate a key of your own")

var errMismatchedKey = errors.New("the public half of the key does not belong to its seed: use ed25519.NewKeyFromSeed")

// newSigningKey checks a private key.
func newSigningKey(private ed25519.PrivateKey) (*signingKey, error) {
	if len(private) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("the key has %d bytes: want an ed25519.PrivateKey of %d bytes", len(private), ed25519.PrivateKeySize)
	}
	if !private.Equal(ed25519.NewKeyFromSeed(private.Seed())) {
		return nil, errMismatchedKey
	}
	id := KeyID(private.Public().(ed25519.PublicKey))
	if id == testKeyID {
		return nil, errTestKey
	}
	return &signingKey{private: private, id: id}, nil
}
