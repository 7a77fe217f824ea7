// Package signtest verifies the signatures of package webbotauth with httpsign, an independent
// implementation of RFC 9421. It does not normalize authorities (RFC 9421, section 2.2.3), so the
// tests of webbotauth have those with a default port or capital letters.
package signtest

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/yaronf/httpsign"

	"github.com/collyrobots/collyrobots/webbotauth"
)

const agent = "https://bot.test" + webbotauth.DirectoryPath

// testKey returns a key that depends only on n.
func testKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func publicOf(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

// verifier returns a verifier of httpsign for a key, a tag, and the components that must be signed.
func verifier(t *testing.T, key ed25519.PrivateKey, tag string, fields httpsign.Fields) httpsign.Verifier {
	t.Helper()
	config := httpsign.NewVerifyConfig().SetKeyID(webbotauth.KeyID(publicOf(key))).SetAllowedTags([]string{tag})
	v, err := httpsign.NewEd25519Verifier(publicOf(key), config, fields)
	if err != nil {
		t.Fatal(err)
	}
	return *v
}

// fieldsOf are the components that a request of a profile has signed.
func fieldsOf(profile webbotauth.Profile) httpsign.Fields {
	if profile == webbotauth.Cloudflare {
		return httpsign.Headers("@authority", "signature-agent")
	}
	fields := httpsign.Headers("@method", "@authority", "@path")
	return *fields.AddDictHeader("signature-agent", "sig1")
}

// received returns a request as a server reads it from the wire, after change has changed its bytes.
func received(t *testing.T, req *http.Request, change func(string) string) *http.Request {
	t.Helper()
	var wire bytes.Buffer
	err := req.Write(&wire)
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.ReadRequest(bufio.NewReader(strings.NewReader(change(wire.String()))))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestRequests verifies signed requests, also after a part of them was changed.
func TestRequests(t *testing.T) {
	changes := []struct {
		old, replacement string
		isDraft          bool // only the profile Draft covers what is changed
	}{
		{"GET ", "POST ", true}, {"/robots.txt", "/other", true}, {"Host: a.test", "Host: b.test", false},
		{"bot.test", "evil.test", false}, {"created=1", "created=2", false}, {"expires=1", "expires=2", false},
		{`tag="web-bot-auth"`, `tag="x"`, false}, {`nonce="`, `nonce="AA`, false},
	}
	for _, profile := range []webbotauth.Profile{webbotauth.Draft, webbotauth.Cloudflare} {
		s, err := webbotauth.NewSigner(testKey(1), agent, profile)
		if err != nil {
			t.Fatal(err)
		}
		v := verifier(t, testKey(1), "web-bot-auth", fieldsOf(profile))
		for _, url := range []string{
			"http://a.test/robots.txt", "http://a.test", "http://a.test/x?y=1&z=a%20b", "http://a.test:8443/", "http://[2001:db8::1]:8080/",
			"http://a.test/%7Euser/a%2Fb/ü", "http://a.test//x/../y", "http://bücher.test/",
		} {
			req, err := http.NewRequest("GET", url, nil)
			if err == nil {
				err = s.Sign(req)
			}
			if err == nil {
				err = httpsign.VerifyRequest("sig1", v, received(t, req, func(wire string) string { return wire }))
			}
			if err != nil {
				t.Errorf("%v, %s: %v", profile, url, err)
			}
		}
		for _, c := range changes {
			req := httptest.NewRequest("GET", "http://a.test/robots.txt", nil)
			err := s.Sign(req)
			if err != nil {
				t.Fatal(err)
			}
			changed := received(t, req, func(wire string) string { return strings.Replace(wire, c.old, c.replacement, 1) })
			err = httpsign.VerifyRequest("sig1", v, changed)
			if isCovered := profile == webbotauth.Draft || !c.isDraft; isCovered != (err != nil) {
				t.Errorf("%v, %q instead of %q: error %v", profile, c.replacement, c.old, err)
			}
		}
	}
}

// TestDirectory verifies that each key of a directory has signed the response.
func TestDirectory(t *testing.T) {
	directory, err := webbotauth.Directory(webbotauth.Key{Private: testKey(1)}, webbotauth.Key{Private: testKey(2)})
	if err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequest("GET", agent, nil)
	out := httptest.NewRecorder()
	directory.ServeHTTP(out, req)
	resp := out.Result()
	names, err := httpsign.ResponseSignatureNames(resp, false)
	if err != nil || len(names) != 2 {
		t.Fatal(names, err)
	}
	fields := httpsign.NewFields()
	fields.AddHeaderExt("@authority", false, false, true, false)
	fields.AddHeader("content-digest")
	for i, name := range names {
		v := verifier(t, testKey(byte(i+1)), "http-message-signatures-directory", *fields)
		err := httpsign.VerifyResponse(name, v, resp, req)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		other := httptest.NewRequest("GET", strings.Replace(agent, "bot.test", "evil.test", 1), nil)
		if httpsign.VerifyResponse(name, v, resp, other) == nil {
			t.Errorf("%s holds for another site", name)
		}
	}
	body := io.NopCloser(bytes.NewReader(out.Body.Bytes()))
	err = httpsign.ValidateContentDigestHeader(resp.Header["Content-Digest"], &body, []string{httpsign.DigestSha256})
	if err != nil {
		t.Error(fmt.Errorf("Content-Digest: %w", err))
	}
}
