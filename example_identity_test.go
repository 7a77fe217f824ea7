package collyrobots_test

import (
	"crypto/ed25519"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/sigverify"
	"github.com/collyrobots/collyrobots/webbotauth"
)

// This example has three parts: a server with the key directory of the crawler, a site that fetches
// the directory and verifies each request, and the crawler.
func ExampleSignRequests() {
	_, key, err := ed25519.GenerateKey(nil) // a real crawler reads its key from a file
	if err != nil {
		log.Fatal(err)
	}
	directory, err := webbotauth.Directory(webbotauth.Key{Private: key})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(webbotauth.DirectoryPath, directory) // a real crawler puts its host name before the path
	bot := httptest.NewTLSServer(mux)
	defer bot.Close()
	agent := bot.URL + webbotauth.DirectoryPath

	site := httptest.NewServer(verifying(bot.Client(), agent))
	defer site.Close()

	signer, err := webbotauth.NewSigner(key, agent, webbotauth.Draft)
	if err != nil {
		log.Fatal(err)
	}
	c := collyrobots.NewCollector(colly.UserAgent("ExampleBot/1.0"))
	robots, err := c.WithRobots(collyrobots.SignRequests(signer))
	if err != nil {
		log.Fatal(err)
	}
	defer robots.Close()
	c.OnResponse(func(r *colly.Response) { fmt.Printf("%s", r.Body) })
	if err := c.Visit(site.URL + "/old"); err != nil {
		log.Fatal(err)
	}
	unsigned, err := http.Get(site.URL + "/new")
	if err != nil {
		log.Fatal(err)
	}
	defer unsigned.Body.Close()
	fmt.Println("without a signature:", unsigned.StatusCode)
	// Output:
	// the site has verified /robots.txt
	// the site has verified /old
	// the site has verified /new
	// welcome
	// without a signature: 403
}

// verifying returns a site that responds to requests with a valid signature of one crawler. A real
// site uses a library, or a service, that verifies the signatures of many.
func verifying(client *http.Client, agent string) http.Handler {
	v := &sigverify.Verifier{
		Key:      func(id string) ed25519.PublicKey { return keyOf(client, agent, id) },
		Tag:      "web-bot-auth",
		Required: []string{`"@method"`, `"@authority"`, `"@path"`, `"signature-agent";key="sig1"`},
		MaxAge:   24 * time.Hour,
		Agent:    fmt.Sprintf("sig1=%q", agent),
	}
	pages := http.NewServeMux()
	pages.HandleFunc("/robots.txt", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "User-agent: *\nDisallow: /private\n") })
	pages.Handle("/old", http.RedirectHandler("/new", http.StatusFound))
	pages.HandleFunc("/new", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "welcome\n") })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := v.Verify(sigverify.OfRequest(r), time.Now())
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		fmt.Println("the site has verified", r.URL.Path)
		pages.ServeHTTP(w, r)
	})
}

// keyOf returns a key of a directory, or nil.
func keyOf(client *http.Client, agent, id string) ed25519.PublicKey {
	resp, err := client.Get(agent)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil
	}
	keys, err := sigverify.Keys(body)
	if err != nil {
		return nil
	}
	return keys[id]
}
