package sigverify

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"testing"
	"time"
)

// testPublicKey is the public part of the Ed25519 key of RFC 9421, appendix B.1.4.
const testPublicKey = "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"

func publicKey(t *testing.T) ed25519.PublicKey {
	t.Helper()
	key, err := base64.RawURLEncoding.DecodeString(testPublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestRFC9421 checks the example of RFC 9421, appendix B.2.6. It has neither expires nor nonce, so
// only its signature is checked.
func TestRFC9421(t *testing.T) {
	m := Message{
		Method: "POST",
		Scheme: "https",
		Host:   "example.com",
		Target: "/foo?param=Value&Pet=dog",
		Header: http.Header{
			"Date":            {"Tue, 20 Apr 2021 02:07:55 GMT"},
			"Content-Type":    {"application/json"},
			"Content-Length":  {"18"},
			"Signature-Input": {`sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"`},
			"Signature":       {"sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:"},
		},
	}
	v := &Verifier{}
	found, err := v.signatures(m)
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	base, err := v.base(m, found[0])
	if err != nil {
		t.Fatal(err)
	}
	if !ed25519.Verify(publicKey(t), []byte(base), found[0].value) {
		t.Errorf("the signature does not match the base:\n%s", base)
	}
	m.Method = "GET"
	base, err = v.base(m, found[0])
	if err != nil || ed25519.Verify(publicKey(t), []byte(base), found[0].value) {
		t.Errorf("the signature matches another method, error %v", err)
	}
}

// TestDraftVectors checks the Ed25519 examples of draft-ietf-webbotauth-httpsig-protocol-01, "Test
// Vectors".
func TestDraftVectors(t *testing.T) {
	now := time.Unix(1735689600, 0)
	for _, tc := range []struct {
		name     string
		tag      string
		message  Message
		required []string
	}{
		{
			name: "Dictionary",
			tag:  "web-bot-auth",
			message: Message{Method: "GET", Scheme: "https", Host: "example.com", Target: "/path/to/resource", Header: http.Header{
				"Signature-Agent": {`agent2="https://signature-agent.test"`},
				"Signature-Input": {`sig2=("@authority" "signature-agent";key="agent2");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=4889289600;nonce="n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==";tag="web-bot-auth"`},
				"Signature":       {"sig2=:RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==:"},
			}},
			required: []string{`"@authority"`, `"signature-agent";key="agent2"`},
		},
		{
			name: "String",
			tag:  "web-bot-auth",
			message: Message{Method: "GET", Scheme: "https", Host: "example.com", Target: "/path/to/resource", Header: http.Header{
				"Signature-Agent": {`"https://signature-agent.test"`},
				"Signature-Input": {`sig2=("@authority" "signature-agent");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=1735693200;nonce="e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==";tag="web-bot-auth"`},
				"Signature":       {"sig2=:jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==:"},
			}},
			required: []string{`"@authority"`, `"signature-agent"`},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := &Verifier{
				Key:      func(string) ed25519.PublicKey { return publicKey(t) },
				Tag:      tc.tag,
				Required: tc.required,
				MaxAge:   200 * 365 * 24 * time.Hour,
			}
			if err := v.Verify(tc.message, now); err != nil {
				t.Error(err)
			}
			if err := v.Verify(tc.message, now); err == nil {
				t.Error("a used nonce is accepted")
			}
			tc.message.Host = "example.org"
			if err := v.Verify(tc.message, now); err == nil {
				t.Error("another authority is accepted")
			}
		})
	}
}

// TestDirectoryVector checks the signed directory of the same draft. Its signature has no nonce, so
// only the signature is checked.
func TestDirectoryVector(t *testing.T) {
	const digest = "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:"
	const body = `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U","x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs","use":"sig"}]}`
	m := Message{
		Scheme:   "https",
		Host:     "signature-agent.test",
		Response: true,
		Header: http.Header{
			"Content-Digest":  {digest},
			"Signature-Input": {`binding=("@authority";req "content-digest");created=1735689600;expires=4889289600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";tag="http-message-signatures-directory"`},
			"Signature":       {"binding=:l6P8R67tm3kujAxbHWio7ll01qrEZ0dKD/WWlGhNYEmTnFZM8Wt0VQ9zqGfvo7T/UMkBxsigzChM1Gpz7gOVBg==:"},
		},
	}
	v := &Verifier{Tag: "http-message-signatures-directory"}
	found, err := v.signatures(m)
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	base, err := v.base(m, found[0])
	if err != nil || !ed25519.Verify(publicKey(t), []byte(base), found[0].value) {
		t.Errorf("the signature does not match, error %v, base:\n%s", err, base)
	}
	if !Digest(digest, []byte(body)) {
		t.Error("the digest does not match the body")
	}
	keys, err := Keys([]byte(body))
	if err != nil || keys["poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"] == nil {
		t.Errorf("keys %v, error %v", keys, err)
	}
}
