package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
)

// An addressList is a list of the IP addresses of a crawler, in the format of
// draft-illyes-webbotauth-jafar-00.
type addressList struct {
	FormatVersion string          `json:"formatVersion"`
	SyncToken     string          `json:"synctoken"` // changes if and only if the prefixes change
	CreationTime  time.Time       `json:"creationTime"`
	Prefixes      []addressPrefix `json:"prefixes"`
}

// An addressPrefix has one of the two prefixes.
type addressPrefix struct {
	IPv4    string `json:"ipv4Prefix,omitempty"`
	IPv6    string `json:"ipv6Prefix,omitempty"`
	Service string `json:"service,omitempty"`
}

// readAddresses returns the list of the addresses in a file, as JSON. Lines that begin with # are comments.
func readAddresses(file string, now time.Time) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	prefixes, err := parseAddresses(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	content, err := json.Marshal(prefixes)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	list := addressList{FormatVersion: "1.0", SyncToken: hex.EncodeToString(sum[:16]), CreationTime: now.UTC().Truncate(time.Second), Prefixes: prefixes}
	var out bytes.Buffer
	err = term.JSON(&out, list)
	return out.Bytes(), err
}

// parseAddresses parses the lines of a file. Its result is not nil.
func parseAddresses(text string) ([]addressPrefix, error) {
	prefixes := []addressPrefix{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		first, service, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
		p, err := parsePrefix(first)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		entry := addressPrefix{IPv4: p.String(), Service: strings.TrimSpace(service)}
		if p.Addr().Is6() {
			entry.IPv4, entry.IPv6 = "", p.String()
		}
		if slices.Contains(prefixes, entry) {
			return nil, fmt.Errorf("line %d: %s is there twice", n, line)
		}
		prefixes = append(prefixes, entry)
	}
	return prefixes, nil
}

// parsePrefix parses an address or a prefix of the public internet.
func parsePrefix(text string) (p netip.Prefix, err error) {
	if strings.Contains(text, "/") {
		p, err = netip.ParsePrefix(text)
	} else {
		var a netip.Addr
		a, err = netip.ParseAddr(text)
		p = netip.PrefixFrom(a, a.BitLen())
	}
	a := p.Addr()
	switch {
	case err != nil || strings.Contains(text, "%") || a.Is4In6():
		return p, fmt.Errorf("%q is not an IPv4 or IPv6 address or prefix", text)
	case p != p.Masked():
		return p, fmt.Errorf("%s has bits after the prefix, want %v", text, p.Masked())
	case !a.IsGlobalUnicast() || a.IsPrivate():
		return p, fmt.Errorf("%s is not part of the public internet", text)
	}
	return p, nil
}
