package webbotauth_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/collyrobots/collyrobots/webbotauth"
)

func idOf(n byte) string { return webbotauth.KeyID(publicOf(testKey(n))) }

// fetch returns the response of a directory to a request for bot.test, and its body.
func fetch(t *testing.T, directory http.Handler, method string) (*http.Response, []byte) {
	t.Helper()
	req := httptest.NewRequest(method, keySetURL, nil)
	out := httptest.NewRecorder()
	directory.ServeHTTP(out, req)
	resp := out.Result()
	resp.Request = req
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, body
}

// keysOf returns the IDs of the keys of a directory in their order, and those that have signed the
// response. internal/interop verifies the signatures.
func keysOf(t *testing.T, resp *http.Response, body []byte) (listed, signed []string) {
	t.Helper()
	var set struct {
		Keys []struct{ Kty, Crv, Kid, X string }
	}
	err := json.Unmarshal(body, &set)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range set.Keys {
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if err != nil || k.Kty != "OKP" || k.Crv != "Ed25519" || k.Kid != webbotauth.KeyID(x) {
			t.Errorf("not an Ed25519 key with its ID: %+v", k)
		}
		listed = append(listed, k.Kid)
	}
	for _, match := range regexp.MustCompile(`;keyid="([^"]*)"`).FindAllStringSubmatch(resp.Header.Get("Signature-Input"), -1) {
		signed = append(signed, match[1])
	}
	return listed, signed
}

// TestDirectory checks the response with two keys.
func TestDirectory(t *testing.T) {
	directory, err := webbotauth.Directory(webbotauth.Key{Private: testKey(1)}, webbotauth.Key{Private: testKey(2)})
	if err != nil {
		t.Fatal(err)
	}
	resp, body := fetch(t, directory, "GET")
	want := []string{idOf(1), idOf(2)}
	if listed, signed := keysOf(t, resp, body); !slices.Equal(listed, want) || !slices.Equal(signed, want) {
		t.Errorf("keys %q, signed by %q", listed, signed)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/http-message-signatures-directory+json" {
		t.Errorf("status %d, header %v", resp.StatusCode, resp.Header)
	}
	if strings.Contains(string(body), `"d"`) || strings.Contains(string(body), "nbf") || strings.Contains(string(body), "exp") {
		t.Errorf("body %s", body)
	}

	head, body := fetch(t, directory, "HEAD")
	if head.StatusCode != 200 || len(body) > 0 || head.Header.Get("Signature") == "" {
		t.Errorf("HEAD: status %d, %d bytes, header %v", head.StatusCode, len(body), head.Header)
	}
	post, _ := fetch(t, directory, "POST")
	if post.StatusCode != 405 || post.Header.Get("Signature") != "" || post.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: status %d, header %v", post.StatusCode, post.Header)
	}
}

// TestRotation rotates a key by the clock of a bubble: the directory has both keys for a time, and
// every signature can be verified with the directory of its instant.
func TestRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		change := time.Now().Add(2 * time.Hour)
		directory, err := webbotauth.Directory(
			webbotauth.Key{Private: testKey(1), NotAfter: change.Add(30 * time.Minute)},
			webbotauth.Key{Private: testKey(2), NotBefore: change},
		)
		if err != nil {
			t.Fatal(err)
		}
		s := forms[0].signer(t, testKey(1))
		for _, step := range []struct {
			at   time.Duration
			keys []string
			age  string
		}{
			{0, []string{idOf(1), idOf(2)}, "max-age=3600"},
			{2*time.Hour - time.Second, []string{idOf(1), idOf(2)}, "max-age=1801"},
			{2 * time.Hour, []string{idOf(1), idOf(2)}, "max-age=1800"},
			{2*time.Hour + 30*time.Minute - time.Second, []string{idOf(1), idOf(2)}, "max-age=1"},
			{2*time.Hour + 30*time.Minute, []string{idOf(2)}, "max-age=3600"},
			{1000 * time.Hour, []string{idOf(2)}, "max-age=3600"},
		} {
			time.Sleep(step.at - time.Since(change.Add(-2*time.Hour)))
			if !time.Now().Before(change) && s.KeyID() == idOf(1) {
				if err := s.SetKey(testKey(2)); err != nil {
					t.Fatal(err)
				}
			}
			resp, body := fetch(t, directory, "GET")
			listed, signed := keysOf(t, resp, body)
			if !slices.Equal(listed, step.keys) || !slices.Equal(signed, step.keys) || resp.Header.Get("Cache-Control") != step.age {
				t.Errorf("after %v: keys %q, signed by %q, Cache-Control %q; want %q, %q", step.at, listed, signed, resp.Header.Get("Cache-Control"), step.keys, step.age)
			}
			if !slices.Contains(listed, s.KeyID()) {
				t.Errorf("after %v: the key of the signer is not listed", step.at)
			}
		}
	})
}

// TestDirectoryWithoutKeys checks a directory whose keys have all expired.
func TestDirectoryWithoutKeys(t *testing.T) {
	directory, err := webbotauth.Directory(webbotauth.Key{Private: testKey(1), NotAfter: time.Now().Add(-time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	resp, body := fetch(t, directory, "GET")
	if string(body) != `{"keys":[]}` || resp.Header.Get("Signature") != "" {
		t.Errorf("body %s, header %v", body, resp.Header)
	}
}

// TestDirectoryFaults checks the faults of the keys.
func TestDirectoryFaults(t *testing.T) {
	for want, keys := range map[string][]webbotauth.Key{
		"no keys":                     nil,
		"key 1: the key has 0 bytes":  {{}},
		"key 2: the key is given twi": {{Private: testKey(1)}, {Private: testKey(1)}},
	} {
		_, err := webbotauth.Directory(keys...)
		if err == nil || !strings.HasPrefix(err.Error(), "webbotauth: Directory: "+want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestDirectoryHost checks a Host header that cannot be signed.
func TestDirectoryHost(t *testing.T) {
	directory, err := webbotauth.Directory(webbotauth.Key{Private: testKey(1)})
	if err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequest("GET", keySetURL, nil)
	req.Host = "ü.test"
	out := httptest.NewRecorder()
	directory.ServeHTTP(out, req)
	if out.Code != 400 || out.Header().Get("Signature") != "" {
		t.Errorf("status %d, header %v", out.Code, out.Header())
	}
}
