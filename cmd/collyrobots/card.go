package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/keyfile"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/webbotauth"
)

const cardUsage = `Usage: collyrobots card [flags]

Prints the Signature Agent Card of a crawler, which describes it to the owners of sites, or with -html
a web page with the same facts. Publish the page under the URL in the User-Agent of the crawler. With
-addresses, it prints the list of the IP addresses of the crawler instead.

The exit status is 0, or 2 if a flag has a fault.`

// cardFlags has the flags of the command card.
type cardFlags struct {
	card     webbotauth.Card
	agent    string
	token    string
	contacts string
	dialect  dialect.Dialect
	delay    time.Duration
	key      string // a file
	html     bool

	addresses string // a file
}

// runCard runs the command card.
func runCard(_ context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) (status int) {
	f := new(cardFlags)
	flags := flag.NewFlagSet("card", flag.ContinueOnError)
	f.define(flags)
	if err := cli.ParseOnly(flags, cardUsage, args, stderr); err != nil {
		return cli.Fail(stderr, "card", err)
	}
	if f.addresses != "" && flags.NFlag() > 1 {
		return cli.Fail(stderr, "card", errors.New("-addresses prints a list of addresses, so no other flag has an effect"))
	}
	text, err := f.text()
	if err == nil && f.key != "" {
		err = f.printKey(stderr)
	}
	if err == nil {
		_, err = stdout.Write(text)
	}
	if err != nil {
		return cli.Fail(stderr, "card", err)
	}
	return cli.OK
}

// define defines the flags.
func (f *cardFlags) define(flags *flag.FlagSet) {
	flags.StringVar(&f.agent, "agent", "", "User-Agent `header` of the crawler")
	flags.StringVar(&f.token, "token", "", "`name` of the crawler in robots.txt; without it, it is taken from -agent")
	flags.StringVar(&f.card.Name, "name", "", "`name` of the crawler for people, such as Example Bot")
	flags.StringVar(&f.contacts, "contact", "", "comma-separated mail `addresses` or URIs of the owner of the crawler")
	flags.StringVar(&f.card.Bot.Purpose, "purpose", "", "what the pages are used for, in a few `words`")
	flags.StringVar(&f.card.Page, "page", "", "https `URL` of the page about the crawler")
	flags.StringVar(&f.card.ID, "id", "", "https `URL` at which the card is served")
	flags.StringVar(&f.card.KeySet, "keys", "", "https `URL` of the directory with the public keys of the crawler")
	flags.StringVar(&f.card.Bot.Addresses, "address-list", "", "https `URL` of the list of the IP addresses of the crawler")
	flags.StringVar(&f.addresses, "addresses", "", "print the list of the IP addresses in this `file`, one address or prefix in a line; no other flag may be given")
	flags.StringVar(&f.key, "key", "", "PEM `file` with the Ed25519 key that signs the requests; its ID is printed to standard error")
	flags.TextVar(&f.dialect, "dialect", dialect.RFC9309(), "the crawler reads robots.txt in this `dialect`: "+term.List(dialect.All()))
	flags.DurationVar(&f.delay, "delay", 0, "minimum delay between two requests to one host")
	flags.BoolVar(&f.html, "html", false, "print the web page instead of the card")
}

// text returns the list of addresses, the card or the page.
func (f *cardFlags) text() ([]byte, error) {
	if f.addresses != "" {
		return readAddresses(f.addresses, time.Now())
	}
	card, err := f.build()
	if err != nil {
		return nil, err
	}
	if f.html {
		return card.HTML()
	}
	return card.JSON()
}

// build returns the card: the facts that options of a crawl determine, and those of the flags.
func (f *cardFlags) build() (card webbotauth.Card, err error) {
	if f.agent == "" {
		return card, errors.New("-agent is missing: the User-Agent of the crawler, such as \"ExampleBot/1.0 (+https://example.com/bot)\"")
	}
	options := []collyrobots.Option{collyrobots.Dialect(f.dialect)}
	if f.delay != 0 {
		options = append(options, collyrobots.MinDelay(f.delay))
	}
	if f.token != "" {
		options = append(options, collyrobots.ProductToken(f.token))
	}
	robots, err := collyrobots.WithRobots(colly.NewCollector(colly.UserAgent(f.agent)), options...)
	if err != nil {
		return card, err
	}
	facts := robots.Card().Bot
	card = f.card
	card.Contacts = contactsOf(f.contacts)
	facts.Purpose = card.Bot.Purpose
	facts.Addresses = card.Bot.Addresses
	card.Bot = facts
	return card, robots.Close()
}

// contactsOf returns the URIs of a comma-separated list. A mail address becomes a mailto URI.
func contactsOf(list string) (contacts []string) {
	for contact := range strings.SplitSeq(list, ",") {
		contact = strings.TrimSpace(contact)
		if strings.Contains(contact, "@") && !strings.Contains(contact, ":") {
			contact = "mailto:" + contact
		}
		if contact != "" {
			contacts = append(contacts, contact)
		}
	}
	return contacts
}

// printKey prints the ID of the key in signatures.
func (f *cardFlags) printKey(w io.Writer) error {
	key, err := keyfile.Read(f.key)
	if err != nil {
		return fmt.Errorf("-key: %w", err)
	}
	// NewSigner refuses the published test key.
	_, err = webbotauth.NewSigner(key, "https://example.com"+webbotauth.DirectoryPath, webbotauth.Draft)
	if err != nil {
		return fmt.Errorf("-key: %w", err)
	}
	_, err = fmt.Fprintf(w, "The signatures have the keyid %s.\n", webbotauth.KeyID(key.Public().(ed25519.PublicKey)))
	return err
}
