package main

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
	"github.com/collyrobots/collyrobots/webbotauth"
)

// TestCard checks the card and the page that the flags describe.
func TestCard(t *testing.T) {
	args := []string{
		"card", "-agent", "ExampleBot/1.0 (+https://bot.example.com/)", "-name", "Example <Bot>", "-contact", "bot@example.com, https://example.com/help",
		"-purpose", "search", "-page", "https://bot.example.com/", "-delay", "2s",
	}
	status, out, errs := call(t, "", args...)
	var card webbotauth.Card
	if err := json.Unmarshal([]byte(out), &card); err != nil || status != cli.OK || errs != "" {
		t.Fatal(status, err, errs)
	}
	if len(card.Contacts) != 2 || card.Contacts[0] != "mailto:bot@example.com" || card.Name != "Example <Bot>" || card.Page != "https://bot.example.com/" {
		t.Errorf("card: %+v", card)
	}
	if b := card.Bot; b.ProductToken != "ExampleBot" || !b.ObeysRobots || b.Purpose != "search" || !strings.Contains(b.Rate, "2") {
		t.Errorf("bot: %+v", b)
	}
	status, out, errs = call(t, "", append(args, "-html")...)
	if status != cli.OK || errs != "" || !strings.HasPrefix(out, "<!DOCTYPE html>") || !strings.Contains(out, "<h1>Example &lt;Bot&gt;</h1>") {
		t.Errorf("status %d, errors %q, page\n%s", status, errs, out)
	}
}

// TestCardKey checks that -key prints the ID of the key, and nothing of its private part.
func TestCardKey(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	file := fileOf(t, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	status, _, errs := call(t, "", "card", "-agent", "ExampleBot/1.0", "-key", file)
	if want := "The signatures have the keyid " + webbotauth.KeyID(public) + ".\n"; status != cli.OK || errs != want {
		t.Errorf("status %d, errors %q, want %q", status, errs, want)
	}
}

func TestCardFaults(t *testing.T) {
	for _, test := range []struct {
		want string
		args []string
	}{
		{"-agent is missing", nil},
		{`unexpected argument "x"`, []string{"-agent", "ExampleBot", "x"}},
		{`Page "http://a.test/" is not an https URL`, []string{"-agent", "ExampleBot", "-page", "http://a.test/"}},
		{`contact "me" is not a URI`, []string{"-agent", "ExampleBot", "-contact", "me"}},
		{`unknown name "bing"`, []string{"-agent", "ExampleBot", "-dialect", "bing"}},
		{`"Foo/1.0" is not a product token`, []string{"-agent", "ExampleBot", "-token", "Foo/1.0"}},
		{"is not a PEM file", []string{"-agent", "ExampleBot", "-key", fileOf(t, "x")}},
		{"no such file", []string{"-agent", "ExampleBot", "-key", "no-such-file"}},
	} {
		status, out, errs := call(t, "", append([]string{"card"}, test.args...)...)
		if status != cli.Failed || out != "" || !strings.HasPrefix(errs, "collyrobots card: ") || !strings.Contains(errs, test.want) {
			t.Errorf("%q: status %d, output %q, errors %q", test.args, status, out, errs)
		}
	}
}
