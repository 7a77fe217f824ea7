package webbotauth_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/webbotauth"
)

// fullCard is the example of draft-meunier-webbotauth-registry-04, section 3, with other values.
var fullCard = webbotauth.Card{
	ID:       "https://bot.test/card",
	Name:     "Example Bot",
	Page:     "https://bot.test/",
	Logo:     "https://bot.test/logo.png",
	Contacts: []string{"mailto:bot@bot.test"},
	KeySet:   keySetURL,
	Bot: webbotauth.Bot{
		UserAgent:    "ExampleBot/1.0 (+https://bot.test/)",
		ProductToken: "ExampleBot",
		ObeysRobots:  true,
		Trigger:      "crawler",
		Purpose:      "search",
		Content:      "cat pictures",
		RateControl:  "429",
		Rate:         "1 request in 10 s",
		KnownURLs:    []string{"/robots.txt"},
		Addresses:    "https://bot.test/ips.json",
	},
}

// TestCardJSON checks the names of the members.
func TestCardJSON(t *testing.T) {
	got, err := fullCard.JSON()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
		"client_id": "https://bot.test/card",
		"client_name": "Example Bot",
		"client_uri": "https://bot.test/",
		"logo_uri": "https://bot.test/logo.png",
		"contacts": ["mailto:bot@bot.test"],
		"jwks_uri": "https://bot.test/.well-known/http-message-signatures-directory",
		"web_bot_auth": {
			"expected-user-agent": "ExampleBot/1.0 (+https://bot.test/)",
			"rfc9309-product-token": "ExampleBot",
			"rfc9309-compliance": true,
			"trigger": "crawler",
			"purpose": "search",
			"targeted-content": "cat pictures",
			"rate-control": "429",
			"rate-expectation": "1 request in 10 s",
			"known-urls": ["/robots.txt"],
			"ips_uri": "https://bot.test/ips.json"
		}
	}`
	if !reflect.DeepEqual(parsed(t, got), parsed(t, []byte(want))) {
		t.Errorf("card %s", got)
	}
	empty, err := webbotauth.Card{}.JSON()
	if err != nil || !reflect.DeepEqual(parsed(t, empty), parsed(t, []byte(`{"web_bot_auth": {"rfc9309-compliance": false}}`))) {
		t.Errorf("empty card %s, error %v", empty, err)
	}
}

func parsed(t *testing.T, text []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestCardHTML checks that the page has every fact, and escapes it.
func TestCardHTML(t *testing.T) {
	page, err := fullCard.HTML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"<h1>Example Bot</h1>", "ExampleBot/1.0", "User-agent: ExampleBot\nDisallow: /", "mailto:bot@bot.test",
		"search", "cat pictures", "429", "1 request in 10 s", keySetURL, `<link rel="client-ranges" href="https://bot.test/ips.json">`, "It obeys robots.txt",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
	odd := webbotauth.Card{Name: "<script>", Contacts: []string{"javascript:alert(1)"}}
	page, err = odd.HTML()
	if err != nil || strings.Contains(string(page), "<script>") || strings.Contains(string(page), `"javascript:`) {
		t.Errorf("page %s, error %v", page, err)
	}
	page, err = webbotauth.Card{}.HTML()
	if err != nil || !strings.Contains(string(page), "<h1>About this crawler</h1>") || !strings.Contains(string(page), "does not claim to obey") {
		t.Errorf("page %s, error %v", page, err)
	}
	page, err = webbotauth.Card{Bot: webbotauth.Bot{ProductToken: "XBot"}}.HTML()
	if err != nil || !strings.Contains(string(page), "<h1>XBot</h1>") {
		t.Errorf("page %s, error %v", page, err)
	}
}

// TestCardFaults checks that JSON and HTML report all faults of the URLs.
func TestCardFaults(t *testing.T) {
	card := webbotauth.Card{
		ID:       "http://bot.test/card",
		KeySet:   "bot.test",
		Contacts: []string{"bot@bot.test", "mailto:x@bot.test"},
		Bot:      webbotauth.Bot{Addresses: "https://"},
	}
	const want = `webbotauth: Card: ID "http://bot.test/card" is not an https URL
webbotauth: Card: KeySet "bot.test" is not an https URL
webbotauth: Card: Bot.Addresses "https://" is not an https URL
webbotauth: Card: contact "bot@bot.test" is not a URI: write an address as mailto:bot@bot.test`
	if _, err := card.JSON(); err == nil || err.Error() != want {
		t.Errorf("JSON: error %v", err)
	}
	if _, err := card.HTML(); err == nil || err.Error() != want {
		t.Errorf("HTML: error %v", err)
	}
}
