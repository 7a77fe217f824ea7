package webbotauth

import (
	"crypto/ed25519"
	"encoding/base64"
	"testing"

	"github.com/dunglas/httpsfv"
)

// rfcKey is the Ed25519 key of RFC 9421, appendix B.1.4.
func rfcKey(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	seed, err := base64.RawURLEncoding.DecodeString("n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU")
	if err != nil {
		t.Fatal(err)
	}
	return ed25519.NewKeyFromSeed(seed)
}

// TestVectors signs the Ed25519 examples of RFC 9421 and of
// draft-ietf-webbotauth-httpsig-protocol-01, which are deterministic. inputs are the values of
// Signature-Input in the texts.
func TestVectors(t *testing.T) {
	for _, tc := range []struct {
		name       string
		components []component
		input      string
		want       string
	}{
		{
			name: "RFC 9421, B.2.6",
			components: []component{
				{name: "date", value: "Tue, 20 Apr 2021 02:07:55 GMT"},
				{name: "@method", value: "POST"},
				{name: "@path", value: "/foo"},
				{name: "@authority", value: "example.com"},
				{name: "content-type", value: "application/json"},
				{name: "content-length", value: "18"},
			},
			input: `sig=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"`,
			want:  "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==",
		},
		{
			name: "Signature-Agent as a Dictionary",
			components: []component{
				{name: "@authority", value: "example.com"},
				{name: "signature-agent", key: "agent2", value: `"https://signature-agent.test"`},
			},
			input: `sig=("@authority" "signature-agent";key="agent2");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=4889289600;nonce="n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==";tag="web-bot-auth"`,
			want:  "RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==",
		},
		{
			name: "Signature-Agent as a String",
			components: []component{
				{name: "@authority", value: "example.com"},
				{name: "signature-agent", value: `"https://signature-agent.test"`},
			},
			input: `sig=("@authority" "signature-agent");created=1735689600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";alg="ed25519";expires=1735693200;nonce="e8N7S2MFd/qrd6T2R3tdfAuuANngKI7LFtKYI/vowzk4lAZYadIX6wW25MwG7DCT9RUKAJ0qVkU0mEeLElW1qg==";tag="web-bot-auth"`,
			want:  "jdq0SqOwHdyHr9+r5jw3iYZH6aNGKijYp/EstF4RQTQdi5N5YYKrD+mCT1HA1nZDsi6nJKuHxUi/5Syp3rLWBA==",
		},
		{
			name: "key directory",
			components: []component{
				{name: "@authority", req: true, value: "signature-agent.test"},
				{name: "content-digest", value: "sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:"},
			},
			input: `sig=("@authority";req "content-digest");created=1735689600;expires=4889289600;keyid="poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U";tag="http-message-signatures-directory"`,
			want:  "l6P8R67tm3kujAxbHWio7ll01qrEZ0dKD/WWlGhNYEmTnFZM8Wt0VQ9zqGfvo7T/UMkBxsigzChM1Gpz7gOVBg==",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, err := httpsfv.UnmarshalDictionary([]string{tc.input})
			if err != nil {
				t.Fatal(err)
			}
			member, _ := d.Get("sig")
			params := httpsfv.InnerList{Params: member.(httpsfv.InnerList).Params}
			for _, c := range tc.components {
				params.Items = append(params.Items, c.item())
			}
			base, err := signatureBase(tc.components, params)
			if err != nil {
				t.Fatal(err)
			}
			got := base64.StdEncoding.EncodeToString(ed25519.Sign(rfcKey(t), []byte(base)))
			if got != tc.want {
				t.Errorf("signature %s, want %s; base:\n%s", got, tc.want, base)
			}
		})
	}
}

// TestKeyID checks the thumbprints of RFC 8037, appendix A.3, and of the drafts.
func TestKeyID(t *testing.T) {
	for x, want := range map[string]string{
		"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo": "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
		"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs": testKeyID,
	} {
		key, err := base64.RawURLEncoding.DecodeString(x)
		if err != nil {
			t.Fatal(err)
		}
		if got := KeyID(key); got != want {
			t.Errorf("KeyID(%s) = %s, want %s", x, got, want)
		}
	}
	if got := KeyID(rfcKey(t).Public().(ed25519.PublicKey)); got != testKeyID {
		t.Errorf("the test key has the ID %s", got)
	}
}

// TestTestKeyIsRefused checks that the published key signs nothing.
func TestTestKeyIsRefused(t *testing.T) {
	_, err := NewSigner(rfcKey(t), "https://a.test/keys", Draft)
	if err == nil {
		t.Error("NewSigner accepts the test key")
	}
	_, err = Directory(Key{Private: rfcKey(t)})
	if err == nil {
		t.Error("Directory accepts the test key")
	}
}
