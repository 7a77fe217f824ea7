package webbotauth_test

import (
	"crypto/ed25519"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/collyrobots/collyrobots/webbotauth"
)

// A program that sends its requests itself signs each of them just before it sends it.
func ExampleSigner_Sign() {
	_, key, err := ed25519.GenerateKey(nil) // a real crawler reads its key from a file
	if err != nil {
		log.Fatal(err)
	}
	signer, err := webbotauth.NewSigner(key, "https://bot.example.com", webbotauth.Cloudflare)
	if err != nil {
		log.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodGet, "https://example.com/", nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := signer.Sign(req); err != nil {
		log.Fatal(err)
	}
	fmt.Println(req.Header.Get("Signature-Agent"))
	fmt.Println(len(req.Header.Get("Signature")))
	// Output:
	// "https://bot.example.com"
	// 95
}

// The directory has two keys while the crawler changes from one to the other.
func ExampleDirectory() {
	_, oldKey, err := ed25519.GenerateKey(nil)
	if err != nil {
		log.Fatal(err)
	}
	_, newKey, err := ed25519.GenerateKey(nil)
	if err != nil {
		log.Fatal(err)
	}
	change := time.Now().Add(24 * time.Hour) // then the crawler calls SetKey
	directory, err := webbotauth.Directory(
		webbotauth.Key{Private: oldKey, NotAfter: change.Add(time.Hour)},
		webbotauth.Key{Private: newKey, NotBefore: change},
	)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("bot.example.com"+webbotauth.DirectoryPath, directory)
}

// A Card becomes a JSON document and a web page.
func ExampleCard() {
	card := webbotauth.Card{
		ID:       "https://bot.example.com/card",
		Name:     "Example Bot",
		Contacts: []string{"mailto:bot@example.com"},
		KeySet:   "https://bot.example.com" + webbotauth.DirectoryPath,
		Bot: webbotauth.Bot{
			UserAgent:    "ExampleBot/1.0 (+https://bot.example.com/)",
			ProductToken: "ExampleBot",
			ObeysRobots:  true,
			Trigger:      "crawler",
			Purpose:      "search",
		},
	}
	text, err := card.JSON()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", text)
	// Output:
	// {
	//   "client_id": "https://bot.example.com/card",
	//   "client_name": "Example Bot",
	//   "contacts": [
	//     "mailto:bot@example.com"
	//   ],
	//   "jwks_uri": "https://bot.example.com/.well-known/http-message-signatures-directory",
	//   "web_bot_auth": {
	//     "expected-user-agent": "ExampleBot/1.0 (+https://bot.example.com/)",
	//     "rfc9309-product-token": "ExampleBot",
	//     "rfc9309-compliance": true,
	//     "trigger": "crawler",
	//     "purpose": "search"
	//   }
	// }
}
