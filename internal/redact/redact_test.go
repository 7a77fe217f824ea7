package redact

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "plain": "plain", "a: b://": "a: b://", "://": "://",
		"http://a.test/@joe:x":       "http://a.test/@joe:x",
		"http://a.test:80/@joe":      "http://a.test:80/@joe",
		"http://joe@a.test/":         "http://joe@a.test/",
		"http://joe:secret@a.test/x": "http://joe:xxxxx@a.test/x",
		`to "http://joe:secret@a.test/x", and https://ann:secret@b.test, not c`: `to "http://joe:xxxxx@a.test/x", and https://ann:xxxxx@b.test, not c`,
		"http://joe:sec/ret@a.test/":   "http://xxxxx@a.test/",
		"http://joe:secret@a.test:x/":  "http://xxxxx@a.test:x/",
		"http://joe:secret@[a.test/":   "http://xxxxx@[a.test/",
		"http://joe:sec%zzret@a.test/": "http://xxxxx@a.test/",
	} {
		if got := Text(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestParseError(t *testing.T) {
	for _, s := range []string{"http://joe:secret@a.test:x/", "http://joe:secret/@a.test", "http://[joe:secret@", "http://joe:secret@a.test/%zz", "http://joe:top secret@a.test:x/", `http://joe:"secret"@a.test:x/`} {
		_, err := url.Parse(s)
		if err == nil {
			t.Errorf("url.Parse accepts %q", s)
			continue
		}
		if got := ParseError(err).Error(); strings.Contains(got, "secret") {
			t.Errorf("the error contains the password: %s", got)
		}
	}
	// The URL is not a constant, because staticcheck reports constants that url.Parse rejects.
	_, err := url.Parse("http://a.test/" + strings.Repeat("%zz", 1))
	if ParseError(err) != err {
		t.Error("ParseError changed an error without a password")
	}
}

func FuzzText(f *testing.F) {
	f.Add("see http://joe:secret@a.test:x/ and //")
	f.Fuzz(func(t *testing.T, text string) {
		once := Text(text)
		if again := Text(once); again != once {
			t.Errorf("Text of %q is %q, and Text of that is %q", text, once, again)
		}
	})
}

func TestError(t *testing.T) {
	if Error(nil) != nil || Error(io.EOF) != io.EOF {
		t.Error("Error changed an error without a password")
	}
	err := Error(fmt.Errorf("Get http://joe:secret@a.test/: %w", io.EOF))
	if err.Error() != "Get http://joe:xxxxx@a.test/: EOF" || !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
