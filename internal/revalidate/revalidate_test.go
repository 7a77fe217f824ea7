package revalidate

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

var (
	page    = &url.URL{Scheme: "http", Host: "a.test", Path: "/"}
	instant = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
)

// header returns a header: "Name: value" and so on.
func header(fields ...string) http.Header {
	h := make(http.Header)
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		h.Add(name, value)
	}
	return h
}

// TestValidators checks which ETags and dates are kept.
func TestValidators(t *testing.T) {
	for _, test := range []struct {
		name, field string
		kept        bool
	}{
		{"RFC 9110, section 8.8.3: strong", `ETag: "xyzzy"`, true},
		{"RFC 9110, section 8.8.3: weak", `ETag: W/"xyzzy"`, true},
		{"RFC 9110, section 8.8.3: empty", `ETag: ""`, true},
		{"RFC 9110, section 8.8.3: the weak prefix is case-sensitive", `ETag: w/"xyzzy"`, false},
		{"one quote", `ETag: "`, false},
		{"no quotes", `ETag: xyzzy`, false},
		{"every page matches", `ETag: *`, false},
		{"empty value", `ETag: `, false},
		{"a quote inside", `ETag: "a"b"`, false},
		{"a list", `ETag: "a", "b"`, false},
		{"a blank", `ETag: "a b"`, false},
		{"obs-text", "ETag: \"\xe4\"", false},
		{"as long as allowed", `ETag: "` + strings.Repeat("x", longest-2) + `"`, true},
		{"too long", `ETag: "` + strings.Repeat("x", longest-1) + `"`, false},
		{"RFC 9110, section 5.6.7: IMF-fixdate", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT", true},
		{"RFC 9110, section 5.6.7: rfc850-date", "Last-Modified: Sunday, 06-Nov-94 08:49:37 GMT", true},
		{"RFC 9110, section 5.6.7: asctime-date", "Last-Modified: Sun Nov  6 08:49:37 1994", true},
		{"another zone", "Last-Modified: Sun, 06 Nov 1994 08:49:37 +0100", false},
		{"a number", "Last-Modified: 784111777", false},
		{"the same second as the response", "Last-Modified: Sun, 22 Nov 2026 12:00:00 GMT", true},
		{"after the response", "Last-Modified: Sun, 22 Nov 2026 12:00:01 GMT", false},
	} {
		r, err := New(page, nil, header(test.field), instant)
		if kept := r != nil; kept != test.kept || (err == nil) != test.kept {
			t.Errorf("%s: %q: record %v, error %v", test.name, test.field, r, err)
		}
		if r == nil {
			continue
		}
		again, err := Decode(r.Encode())
		if err != nil || *again != *r {
			t.Errorf("%s: %s is read back as %+v, %v", test.name, r.Encode(), again, err)
		}
	}
}

// TestDecodeRejects checks that a record that another program has written cannot change a request.
func TestDecodeRejects(t *testing.T) {
	for _, text := range []string{
		"", "{}", "null", "[]", `{"etag":"\"1\""}`, `{"version":2,"etag":"\"1\""}`,
		`{"version":1,"etag":"*"}`, `{"version":1,"etag":"\"1\"\r\nX: y"}`, `{"version":1,"last_modified":"x\r\nX: y"}`,
	} {
		r, err := Decode([]byte(text))
		if err == nil {
			t.Errorf("%s is read as %+v", text, r)
		}
	}
}

// TestOutdates checks when a confirmed record is written again.
func TestOutdates(t *testing.T) {
	old, err := New(page, nil, header(`ETag: "1"`, "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT", "Vary: Accept"), instant)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		h    http.Header
		age  time.Duration
		want bool
	}{
		{"a 304 without headers", nil, time.Hour, false},
		{"the same headers", header(`ETag: "1"`, "Vary: accept"), time.Hour, false},
		{"another ETag", header(`ETag: W/"1"`), time.Hour, true},
		{"an old record", nil, RenewAfter + time.Second, true},
		{"a record of a clock that is ahead", nil, -time.Hour, false},
	} {
		r, err := New(page, nil, old.Confirm(test.h), instant.Add(test.age))
		if err != nil || r.Outdates(old) != test.want {
			t.Errorf("%s: %+v, %v", test.name, r, err)
		}
	}
}

// TestKey checks which URLs share a record.
func TestKey(t *testing.T) {
	key := func(collector int, raw string) string {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		return Key(collector, u)
	}
	first := key(0, "http://a.test/x?y")
	if first != key(0, "http://a.test/x?y#z") || len(first) > 40 {
		t.Errorf("key %q", first)
	}
	for _, other := range []string{key(1, "http://a.test/x?y"), key(0, "https://a.test/x?y"), key(0, "http://a.test/x"), key(0, "http://u:p@a.test/x?y")} {
		if other == first {
			t.Errorf("two pages have the key %q", other)
		}
	}
}

// FuzzNew checks that no header makes a record that is read back differently, or a condition that
// cannot be sent.
func FuzzNew(f *testing.F) {
	f.Add(`"1"`, "Sun, 06 Nov 1994 08:49:37 GMT", "Accept, Cookie", "max-age=60", "5")
	f.Add(`W/"`, "x", "*", `no-cache="a,b", max-age="`, "-1")
	f.Fuzz(func(t *testing.T, etag, modified, vary, control, age string) {
		h := http.Header{"Etag": {etag}, "Last-Modified": {modified}, "Vary": {vary}, "Cache-Control": {control}, "Age": {age}, "Date": {"Sun, 22 Nov 2026 12:00:00 GMT"}}
		r, _ := New(page, nil, h, instant)
		if r == nil {
			return
		}
		again, err := Decode(r.Encode())
		if err != nil || *again != *r {
			t.Fatalf("%+v is read back as %+v, %v", r, again, err)
		}
		for name, values := range r.Conditions(page, nil) {
			if strings.ContainsAny(values[0], "\r\n\x00") || len(values[0]) > longest {
				t.Fatalf("%s: %q", name, values[0])
			}
		}
		if r.Fresh.After(instant.Add(Life)) || len(r.Encode()) > 2048 {
			t.Fatalf("record %s", r.Encode())
		}
	})
}

// TestFreshWithoutValidator checks that a page with neither an ETag nor a Last-Modified has a record
// as long as it is fresh, and that nothing is left of it without its freshness.
func TestFreshWithoutValidator(t *testing.T) {
	date := "Date: " + instant.Format(http.TimeFormat)
	r, err := New(page, nil, header(date, "Cache-Control: max-age=60"), instant)
	if r == nil || err != nil || !r.IsFresh(page, nil, instant.Add(59*time.Second)) || r.Conditions(page, nil) != nil {
		t.Fatalf("got %+v, %v", r, err)
	}
	decoded, err := Decode(r.Encode())
	if err != nil || *decoded != *r {
		t.Errorf("decoded %+v, %v", decoded, err)
	}
	if rest := r.WithoutFreshness(); rest != nil {
		t.Errorf("without its freshness: %+v", rest)
	}
	r, err = New(page, nil, header(date), instant)
	if r != nil || err != nil {
		t.Errorf("a page that is not fresh: %+v, %v", r, err)
	}
}
