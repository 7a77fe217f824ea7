package webbotauth_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/webbotauth"
)

// TestAsked checks which responses ask for a signature that a Signer can make.
func TestAsked(t *testing.T) {
	const plain = `sig=("@authority")`
	keyID := webbotauth.KeyID(publicOf(testKey(1)))
	for _, tc := range []struct {
		name       string
		status     int
		accept     []string
		draft      bool // asked under Draft
		cloudflare bool // asked under Cloudflare
		nonce      string
	}{
		{"403", 403, []string{plain}, true, true, ""},
		{"429", 429, []string{plain + `;nonce="n1"`}, true, true, "n1"},
		{"401", 401, []string{plain}, false, false, ""},
		{"200", 200, []string{plain}, false, false, ""},
		{"no field", 403, nil, false, false, ""},
		{"empty field", 403, []string{""}, false, false, ""},
		{"no components", 403, []string{`sig=()`}, true, true, ""},
		{"as in RFC 9421, 5.1", 403, []string{`sig1=("@method" "@target-uri" "@authority" "content-digest" "cache-control");keyid="test-key-rsa-pss";created;tag="app-123"`}, false, false, ""},
		{"all parameters", 403, []string{`sig=("@authority" "signature-agent");created;expires;nonce="n2";alg="ed25519";tag="web-bot-auth";keyid="` + keyID + `"`}, true, true, "n2"},
		{"narrow components", 403, []string{`sig=("@method" "@authority" "@path")`}, true, false, ""},
		{"agent with its own label", 403, []string{`x=("@authority" "signature-agent";key="x")`}, true, false, ""},
		{"agent with a key that is no string", 403, []string{`x=("signature-agent";key=x)`}, false, false, ""},
		{"agent as a structured field", 403, []string{`x=("@authority" "signature-agent";sf)`}, false, false, ""},
		{"agent of a request", 403, []string{`x=("@authority" "signature-agent";req)`}, false, false, ""},
		{"agent with a key of a request", 403, []string{`x=("signature-agent";key="x";req)`}, false, false, ""},
		{"agent as bytes", 403, []string{`x=("signature-agent";bs)`}, false, false, ""},
		{"@target-uri", 403, []string{`sig=("@target-uri")`}, false, false, ""},
		{"a header field", 403, []string{`sig=("@authority" "user-agent")`}, false, false, ""},
		{"component with a parameter", 403, []string{`sig=("@authority";req)`}, false, false, ""},
		{"component that is a token", 403, []string{`sig=(authority)`}, false, false, ""},
		{"another tag", 403, []string{plain + `;tag="other"`}, false, false, ""},
		{"another algorithm", 403, []string{plain + `;alg="rsa-pss-sha512"`}, false, false, ""},
		{"another key", 403, []string{plain + `;keyid="x"`}, false, false, ""},
		{"unknown parameter", 403, []string{plain + `;x=1`}, false, false, ""},
		{"created with a time", 403, []string{plain + `;created=1`}, false, false, ""},
		{"expires not wanted", 403, []string{plain + `;expires=?0`}, false, false, ""},
		{"empty nonce", 403, []string{plain + `;nonce=""`}, false, false, ""},
		{"nonce of bytes", 403, []string{plain + `;nonce=:AA==:`}, false, false, ""},
		{"long nonce", 403, []string{plain + `;nonce="` + strings.Repeat("n", 257) + `"`}, false, false, ""},
		{"longest nonce", 403, []string{plain + `;nonce="` + strings.Repeat("n", 256) + `"`}, true, true, strings.Repeat("n", 256)},
		{"second member", 403, []string{`a=("@target-uri"), b=("@authority");nonce="b"`}, true, true, "b"},
		{"second line", 403, []string{`a=("@target-uri")`, `b=("@authority");nonce="b"`}, true, true, "b"},
		{"not an inner list", 403, []string{`sig="@authority"`}, false, false, ""},
		{"malformed", 403, []string{`sig=(`}, false, false, ""},
		{"too long", 403, []string{plain + `;tag="web-bot-auth"` + strings.Repeat(" ", 4096)}, false, false, ""},
	} {
		resp := &http.Response{StatusCode: tc.status, Header: http.Header{}}
		for _, value := range tc.accept {
			resp.Header.Add("Accept-Signature", value)
		}
		for _, f := range forms {
			want := tc.draft
			if f.profile == webbotauth.Cloudflare {
				want = tc.cloudflare
			}
			nonce, ok := f.signer(t, testKey(1)).Asked(resp)
			if ok != want || nonce != tc.nonce && ok {
				t.Errorf("%s, %v: nonce %q, %v; want %q, %v", tc.name, f.profile, nonce, ok, tc.nonce, want)
			}
		}
	}
}

// TestSignNonce checks that a nonce from a site is in the signature, with its special characters.
func TestSignNonce(t *testing.T) {
	for _, f := range forms {
		req := httptest.NewRequest("GET", "https://a.test/", nil)
		if err := f.signer(t, testKey(1)).SignNonce(req, `a "quoted\" nonce`); err != nil {
			t.Fatal(err)
		}
		if input := req.Header.Get("Signature-Input"); !strings.Contains(input, `;nonce="a \"quoted\\\" nonce";`) {
			t.Errorf("Signature-Input: %s", input)
		}
		if err := verifier(testKey(1)).Verify(message(req, "a.test"), time.Now()); err != nil {
			t.Error(err)
		}
	}
}

// FuzzAsked checks that any Accept-Signature is read without a panic, and that a nonce that it asks
// for can be signed and verified.
func FuzzAsked(f *testing.F) {
	f.Add(`sig=("@authority");nonce="n"`)
	f.Add(`sig=("@method" "@authority" "@path" "signature-agent";key="x");created;expires;alg="ed25519";tag="web-bot-auth"`)
	f.Add(`a=1, b=?1, c=:AA==:, d=(1 2.5 tok "s";p);q, e;x="\""`)
	f.Add(`sig=(`)
	f.Fuzz(func(t *testing.T, accept string) {
		s := forms[0].signer(t, testKey(1))
		resp := &http.Response{StatusCode: 403, Header: http.Header{"Accept-Signature": {accept}}}
		nonce, ok := s.Asked(resp)
		if !ok {
			return
		}
		req := httptest.NewRequest("GET", "https://a.test/", nil)
		if err := s.SignNonce(req, nonce); err != nil {
			t.Fatalf("nonce %q: %v", nonce, err)
		}
		if err := verifier(testKey(1)).Verify(message(req, "a.test"), time.Now()); err != nil {
			t.Errorf("nonce %q: %v", nonce, err)
		}
	})
}
