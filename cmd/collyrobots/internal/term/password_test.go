package term

import "testing"

func TestPasswords(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "plain": "plain", "a: b://": "a: b://", "://": "://",
		"http://a.test/@joe:x":       "http://a.test/@joe:x",
		"http://a.test:80/@joe":      "http://a.test:80/@joe",
		"http://joe@a.test/":         "http://joe@a.test/",
		"http://joe:secret@a.test/x": "http://joe:xxxxx@a.test/x",
		`to "http://joe:secret@a.test/x", and https://ann:secret@b.test, not c`: `to "http://joe:xxxxx@a.test/x", and https://ann:xxxxx@b.test, not c`,
		"http://joe:sec/ret@a.test/":     "http://xxxxx@a.test/",
		"http://joe:secret@a.test:x/":    "http://xxxxx@a.test:x/",
		"http://joe:secret@[a.test/":     "http://xxxxx@[a.test/",
		"http://joe:sec%zzret@a.test/":   "http://xxxxx@a.test/",
		"x\xff http://joe:s@a.test \xff": "x\xff http://joe:xxxxx@a.test \xff",
	} {
		if got := withoutPasswords(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
