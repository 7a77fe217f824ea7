package webbotauth_test

import (
	"crypto/ed25519"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/webbotauth"
)

const (
	keySetURL = "https://bot.test/.well-known/http-message-signatures-directory"
	siteURL   = "https://bot.test"
)

// testKey returns a key that depends only on n.
func testKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(slices.Repeat([]byte{n}, ed25519.SeedSize))
}

func publicOf(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

// A form is a profile and what a verifier expects of it.
type form struct {
	profile webbotauth.Profile
	agent   string
	field   string // the value of Signature-Agent
}

var forms = []form{
	{
		profile: webbotauth.Draft,
		agent:   keySetURL,
		field:   `sig1="` + keySetURL + `"`,
	},
	{
		profile: webbotauth.Cloudflare,
		agent:   siteURL,
		field:   `"` + siteURL + `"`,
	},
}

func (f form) signer(t testing.TB, key ed25519.PrivateKey) *webbotauth.Signer {
	t.Helper()
	s, err := webbotauth.NewSigner(key, f.agent, f.profile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// verifier returns a verifier that knows the keys.
func verifier(keys ...ed25519.PrivateKey) *kit.Signatures {
	v := new(kit.Signatures)
	for _, key := range keys {
		v.Keys = append(v.Keys, publicOf(key))
	}
	return v
}

// message returns a request as its server sees it.
func message(req *http.Request, authority string) robotstest.Request {
	method := req.Method
	if method == "" {
		method = "GET"
	}
	return robotstest.Request{Method: method, Host: authority, URI: req.URL.RequestURI(), Header: req.Header}
}

// TestHeaders checks the headers byte by byte, except for nonce and signature.
func TestHeaders(t *testing.T) {
	want := map[webbotauth.Profile]string{
		webbotauth.Draft:      `^sig1=\("@method" "@authority" "@path" "signature-agent";key="sig1"\);created=946684800;expires=946685100;keyid="KEY";nonce="[A-Za-z0-9+/]{86}==";tag="web-bot-auth"$`,
		webbotauth.Cloudflare: `^sig1=\("@authority" "signature-agent"\);created=946684800;expires=946684860;keyid="KEY";nonce="[A-Za-z0-9+/]{86}==";tag="web-bot-auth"$`,
	}
	for _, f := range forms {
		t.Run(f.profile.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := f.signer(t, testKey(1))
				req := httptest.NewRequest("GET", "https://a.test/", nil)
				if err := s.Sign(req); err != nil {
					t.Fatal(err)
				}
				pattern := strings.Replace(want[f.profile], "KEY", regexp.QuoteMeta(s.KeyID()), 1)
				input := req.Header["Signature-Input"]
				if len(input) != 1 || !regexp.MustCompile(pattern).MatchString(input[0]) {
					t.Errorf("Signature-Input: %q does not match %s", input, pattern)
				}
				if got := req.Header["Signature-Agent"]; !slices.Equal(got, []string{f.field}) {
					t.Errorf("Signature-Agent: %q, want %s", got, f.field)
				}
				if got := req.Header.Get("Signature"); !regexp.MustCompile(`^sig1=:[A-Za-z0-9+/]{86}==:$`).MatchString(got) {
					t.Errorf("Signature: %s", got)
				}
			})
		})
	}
}

// TestRequests verifies the signatures of requests whose method, authority or path is unusual.
func TestRequests(t *testing.T) {
	for _, f := range forms {
		s := f.signer(t, testKey(1))
		v := verifier(testKey(1))
		for _, tc := range []struct{ method, url, host, authority string }{
			{"GET", "https://a.test", "", "a.test"},
			{"GET", "https://a.test/robots.txt", "", "a.test"},
			{"HEAD", "http://a.test/x?y=1&z=a%20b", "", "a.test"},
			{"POST", "https://a.test:443/x", "", "a.test"},
			{"GET", "http://a.test:80/", "", "a.test"},
			{"GET", "http://a.test:443/", "", "a.test:443"},
			{"GET", "https://a.test:8443/", "", "a.test:8443"},
			{"GET", "https://A.Test/Path", "", "a.test"},
			{"GET", "https://[2001:db8::1]/", "", "[2001:db8::1]"},
			{"GET", "https://[2001:db8::1]:443/", "", "[2001:db8::1]"},
			{"GET", "http://[fe80::1%25eth0]:8080/", "", "[fe80::1]:8080"},
			{"GET", "https://a.test/%7Euser/a%2Fb/ü", "", "a.test"},
			{"GET", "https://a.test//x/../y", "", "a.test"},
			{"GET", "https://bücher.test/", "", "xn--bcher-kva.test"},
			{"GET", "https://a.test/", "B.test", "b.test"},
			{"", "https://a.test/", "", "a.test"},
		} {
			req, err := http.NewRequest(tc.method, tc.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tc.host != "" {
				req.Host = tc.host
			}
			if err := s.Sign(req); err != nil {
				t.Errorf("%v %s: %v", f.profile, tc.url, err)
				continue
			}
			if err := v.Verify(message(req, tc.authority), time.Now()); err != nil {
				t.Errorf("%v %s %s, Host %q: %v", f.profile, tc.method, tc.url, tc.host, err)
			}
		}
	}
}

// TestSignOnlyAddsHeaders checks that Sign changes nothing else, and leaves requests alone that the
// program has signed.
func TestSignOnlyAddsHeaders(t *testing.T) {
	s := forms[0].signer(t, testKey(1))
	req := httptest.NewRequest("GET", "https://a.test/x", nil)
	req.Header.Set("Cookie", "a=b")
	before := req.Clone(t.Context())
	if err := s.Sign(req); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Signature-Agent", "Signature-Input", "Signature"} {
		if req.Header.Get(name) == "" {
			t.Errorf("no %s", name)
		}
		req.Header.Del(name)
	}
	if fmt.Sprint(req.Header, req.URL, req.Host, req.Method) != fmt.Sprint(before.Header, before.URL, before.Host, before.Method) {
		t.Errorf("Sign has changed %v to %v", before, req)
	}
	for name, header := range map[string]http.Header{
		"another agent": {"Signature-Agent": {`"https://other.test"`}, "Signature": {"a=:AA==:"}, "Signature-Input": {"a=()"}},
		"no agent":      {"Signature": {"a=:AA==:"}, "Signature-Input": {"a=()"}},
	} {
		own := httptest.NewRequest("GET", "https://a.test/x", nil)
		own.Header = header.Clone()
		if err := s.Sign(own); err != nil || !maps.EqualFunc(own.Header, header, slices.Equal[[]string]) {
			t.Errorf("%s: Sign has changed the headers to %v, error %v", name, own.Header, err)
		}
	}
	empty := &http.Request{URL: req.URL}
	if err := s.Sign(empty); err != nil || len(empty.Header) != 3 {
		t.Errorf("without headers: %v, error %v", empty.Header, err)
	}
}

// TestUnsignable checks requests that cannot be signed. They stay as they are.
func TestUnsignable(t *testing.T) {
	s := forms[0].signer(t, testKey(1))
	opaque := httptest.NewRequest("GET", "https://a.test/", nil)
	opaque.URL.Opaque = "/ü"
	method := httptest.NewRequest("GET", "https://a.test/", nil)
	method.Method = "GET\n\"@path\": /"
	host := httptest.NewRequest("GET", "https://a.test/", nil)
	host.Host = "a.test\r\nx"
	for _, req := range []*http.Request{opaque, method, host} {
		err := s.Sign(req)
		if err == nil || !strings.HasPrefix(err.Error(), "webbotauth: ") || len(req.Header) > 0 {
			t.Errorf("%v: headers %v, error %v", req, req.Header, err)
		}
	}
	for _, s := range []*webbotauth.Signer{nil, {}} {
		if err := s.Sign(opaque); err != webbotauth.ErrZeroSigner || s.KeyID() != "" {
			t.Errorf("zero Signer: error %v", err)
		}
		if _, ok := s.Asked(&http.Response{StatusCode: 403}); ok {
			t.Error("a zero Signer can be asked")
		}
	}
}

// TestNewSigner checks the faults of its arguments.
func TestNewSigner(t *testing.T) {
	good := testKey(1)
	for _, tc := range []struct {
		key     ed25519.PrivateKey
		agent   string
		profile webbotauth.Profile
		want    string // in the error; "" if there is none
	}{
		{good, keySetURL, webbotauth.Draft, ""},
		{good, "https://bot.test/jwks.json?v=1", webbotauth.Draft, ""},
		{good, siteURL, webbotauth.Cloudflare, ""},
		{good, siteURL, webbotauth.Draft, "is a site: the profile Draft needs the URL of its key set, such as https://bot.test/.well-known/"},
		{good, siteURL + "/", webbotauth.Draft, "is a site"},
		{good, "http://bot.test/keys", webbotauth.Draft, "not an https URL"},
		{good, "bot.test/keys", webbotauth.Cloudflare, "not an https URL"},
		{good, "https:///keys", webbotauth.Cloudflare, "not an https URL"},
		{good, "", webbotauth.Cloudflare, "not an https URL"},
		{good, "https://bücher.test/keys", webbotauth.Cloudflare, "not an https URL"},
		{good, "https://a:secret@bot.test/keys", webbotauth.Draft, "user name or a password"},
		{good, "https://bot.test/keys#1", webbotauth.Draft, "fragment"},
		{good, keySetURL, 2, "Profile(2) does not exist"},
		{good, keySetURL, -1, "Profile(-1) does not exist"},
		{good[:32], keySetURL, webbotauth.Draft, "the key has 32 bytes"},
		{nil, keySetURL, webbotauth.Draft, "the key has 0 bytes"},
	} {
		_, err := webbotauth.NewSigner(tc.key, tc.agent, tc.profile)
		if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("agent %q, profile %v: error %v, want %q", tc.agent, tc.profile, err, tc.want)
		}
		if err != nil && (!strings.HasPrefix(err.Error(), "webbotauth: ") || strings.Contains(err.Error(), "secret")) {
			t.Errorf("error %v", err)
		}
	}
}

// TestSetKeyWhileSigning changes the key while many goroutines sign. Each signature is valid for
// the key that it names.
func TestSetKeyWhileSigning(t *testing.T) {
	keys := []ed25519.PrivateKey{testKey(1), testKey(2), testKey(3)}
	f := forms[0]
	s := f.signer(t, keys[0])
	v := verifier(keys...)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				req := httptest.NewRequest("GET", "https://a.test/", nil)
				if err := s.Sign(req); err != nil {
					t.Error(err)
				}
				if err := v.Verify(message(req, "a.test"), time.Now()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 60 {
		if err := s.SetKey(keys[i%3]); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	if err := s.SetKey(nil); err == nil || s.KeyID() != webbotauth.KeyID(publicOf(keys[59%3])) {
		t.Errorf("SetKey(nil): error %v, key %s", err, s.KeyID())
	}
}

// BenchmarkSign measures one signature.
func BenchmarkSign(b *testing.B) {
	for _, f := range forms {
		b.Run(f.profile.String(), func(b *testing.B) {
			s := f.signer(b, testKey(1))
			req := httptest.NewRequest("GET", "https://a.test/some/page?x=1", nil)
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Sign(req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestMismatchedKey checks that a private key is refused if its public half does not belong to its
// seed: its signatures would not be valid for the key that its owner has published.
func TestMismatchedKey(t *testing.T) {
	mixed := ed25519.PrivateKey(slices.Concat(testKey(1).Seed(), publicOf(testKey(2))))
	if _, err := webbotauth.NewSigner(mixed, "https://example.com"+webbotauth.DirectoryPath, webbotauth.Draft); err == nil {
		t.Error("NewSigner accepts the key")
	}
	if _, err := webbotauth.Directory(webbotauth.Key{Private: mixed}); err == nil {
		t.Error("Directory accepts the key")
	}
	s := forms[0].signer(t, testKey(1))
	if err := s.SetKey(mixed); err == nil || s.KeyID() != webbotauth.KeyID(publicOf(testKey(1))) {
		t.Errorf("SetKey: error %v, key %s", err, s.KeyID())
	}
}
