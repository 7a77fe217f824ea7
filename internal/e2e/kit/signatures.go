package kit

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/webbotauth"
)

// Signatures verifies the signatures that package webbotauth makes. It knows only their form;
// internal/interop verifies them with another implementation of RFC 9421. Its method may be called
// from any goroutine.
type Signatures struct {
	Keys []ed25519.PublicKey // must not change after the first call

	mu     sync.Mutex
	nonces map[string]bool // those that were used
}

// signatureInput matches Signature-Input. Its groups are the signed parameters, the components, the
// two times, the key and the nonce.
var signatureInput = regexp.MustCompile(`^sig1=(\(([^)]*)\);created=(\d+);expires=(\d+);keyid="([^"]+)";nonce="((?:[^"\\]|\\.)+)";tag="web-bot-auth")$`)

// Verify returns an error if a request has no valid signature at a time, or one whose nonce was used
// before. It needs the method, the normalized authority as Host, the URI and the header of the
// request.
func (s *Signatures) Verify(r robotstest.Request, now time.Time) error {
	input := signatureInput.FindStringSubmatch(r.Header.Get("Signature-Input"))
	if input == nil {
		return fmt.Errorf("unexpected Signature-Input %q", r.Header["Signature-Input"])
	}
	created, _ := strconv.ParseInt(input[3], 10, 64)
	expires, _ := strconv.ParseInt(input[4], 10, 64)
	if now.Unix() < created || now.Unix() >= expires {
		return fmt.Errorf("the signature is valid from %d to %d, and it is %d", created, expires, now.Unix())
	}
	text := strings.TrimSuffix(strings.TrimPrefix(r.Header.Get("Signature"), "sig1=:"), ":")
	signature, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("reading Signature: %w", err)
	}
	base := []byte(signatureBase(r, strings.Fields(input[2]), input[1]))
	for _, key := range s.Keys {
		if webbotauth.KeyID(key) == input[5] && ed25519.Verify(key, base, signature) {
			return s.use(input[6])
		}
	}
	return fmt.Errorf("the signature does not match the request; its base is\n%s", base)
}

// signatureBase returns the signature base of a request (RFC 9421, section 2.5).
func signatureBase(r robotstest.Request, components []string, params string) string {
	path, _, _ := strings.Cut(r.URI, "?")
	agent := r.Header.Get("Signature-Agent")
	values := map[string]string{
		`"@method"`:                    r.Method,
		`"@authority"`:                 strings.ToLower(r.Host),
		`"@path"`:                      path,
		`"signature-agent"`:            agent,
		`"signature-agent";key="sig1"`: strings.TrimPrefix(agent, "sig1="),
	}
	var base strings.Builder
	for _, c := range components {
		fmt.Fprintf(&base, "%s: %s\n", c, values[c])
	}
	return base.String() + `"@signature-params": ` + params
}

// use records a nonce, and returns an error if it was used before.
func (s *Signatures) use(nonce string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nonces[nonce] {
		return errors.New("the nonce was used before")
	}
	if s.nonces == nil {
		s.nonces = make(map[string]bool)
	}
	s.nonces[nonce] = true
	return nil
}
