package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
)

// TestAddresses checks the list of addresses, and that its token changes only with the prefixes.
func TestAddresses(t *testing.T) {
	now := time.Date(2026, 11, 24, 1, 0, 0, 5, time.FixedZone("", 3600))
	list := func(text string) string {
		out, err := readAddresses(fileOf(t, text), now)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	got := list("# ours\n203.0.113.7\n203.0.113.64/26\tNews & Shop\n\n2001:DB8::/32\n2001:db8:1::5 News\n")
	token := strings.Split(got, `"`)[7]
	want := `{
  "formatVersion": "1.0",
  "synctoken": "` + token + `",
  "creationTime": "2026-11-24T00:00:00Z",
  "prefixes": [
    {
      "ipv4Prefix": "203.0.113.7/32"
    },
    {
      "ipv4Prefix": "203.0.113.64/26",
      "service": "News & Shop"
    },
    {
      "ipv6Prefix": "2001:db8::/32"
    },
    {
      "ipv6Prefix": "2001:db8:1::5/128",
      "service": "News"
    }
  ]
}
`
	if got != want || len(token) != 32 {
		t.Errorf("got %s", got)
	}
	one := list("203.0.113.7")
	now = now.Add(time.Hour)
	if later := list("203.0.113.7\n"); strings.Split(later, `"`)[7] != strings.Split(one, `"`)[7] || later == one || strings.Contains(one, token) {
		t.Errorf("%s%s", one, later)
	}
	if empty := list("# none yet\n"); !strings.Contains(empty, `"prefixes": []`) {
		t.Errorf("no addresses: %s", empty)
	}
}

// TestAddressFaults checks the faults of the file, and of other flags beside it.
func TestAddressFaults(t *testing.T) {
	for text, want := range map[string]string{
		"203.0.113.7\n\nhere":          `line 3: "here" is not an IPv4 or IPv6 address or prefix`,
		"203.0.113.7/33":               "not an IPv4 or IPv6 address or prefix",
		"203.0.113.007":                "not an IPv4 or IPv6 address or prefix",
		"fe80::1%eth0":                 "not an IPv4 or IPv6 address or prefix",
		"::ffff:203.0.113.7":           "not an IPv4 or IPv6 address or prefix",
		"203.0.113.7/24":               "203.0.113.7/24 has bits after the prefix, want 203.0.113.0/24",
		"10.1.0.0/16":                  "10.1.0.0/16 is not part of the public internet",
		"0.0.0.0/0":                    "0.0.0.0/0 is not part of the public internet",
		"::/0":                         "::/0 is not part of the public internet",
		"127.0.0.1":                    "127.0.0.1 is not part of the public internet",
		"203.0.113.7 a\n203.0.113.7 a": "line 2: 203.0.113.7 a is there twice",
	} {
		status, out, errs := call(t, "", "card", "-addresses", fileOf(t, text))
		if status != cli.Failed || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%q: status %d, output %q, errors %q, want %q", text, status, out, errs, want)
		}
	}
	file := fileOf(t, "203.0.113.7\n")
	if status, out, _ := call(t, "", "card", "-addresses", file); status != cli.OK || !strings.HasPrefix(out, "{\n") {
		t.Errorf("status %d, output %q", status, out)
	}
	status, _, errs := call(t, "", "card", "-addresses", file, "-html")
	if status != cli.Failed || !strings.Contains(errs, "no other flag has an effect") {
		t.Errorf("status %d, errors %q", status, errs)
	}
	os.Remove(file)
	if status, _, errs := call(t, "", "card", "-addresses", file); status != cli.Failed || !strings.Contains(errs, "no such file") {
		t.Errorf("status %d, errors %q", status, errs)
	}
}
