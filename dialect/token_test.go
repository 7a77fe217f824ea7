package dialect_test

import (
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
)

func TestProductToken(t *testing.T) {
	for _, test := range []struct{ userAgent, want string }{
		{"ExampleBot", "ExampleBot"},
		{"ExampleBot/1.0 (+https://example.com/bot)", "ExampleBot"},
		{"Mozilla/5.0 (compatible; ExampleBot/0.1; https://www.example.com/bot.html)", "ExampleBot"},
		{"Mozilla/5.0 (Compatible;ExampleBot/0.1)", "ExampleBot"},
		{"colly - https://github.com/gocolly/colly", "colly"},
		{"Googlebot-Image/1.0", "Googlebot-Image"},
		{"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Googlebot"},
		{"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Googlebot/2.1; +http://www.google.com/bot.html) Chrome/1.2.3.4 Safari/537.36", "Googlebot"},
		{"Mozilla/5.0 (Linux; Android 6.0.1) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/1.2.3.4 Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "Googlebot"},
		{"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_5) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/13.1.1 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)", "Applebot"},
		{"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/1 Safari/537.36 ExampleBot/1.0 (+https://example.com/bot)", "ExampleBot"},
		{"Mozilla/5.0 (compatible; coccocbot-web/1.0; +http://help.coccoc.com/searchengine)", "coccocbot-web"},
		{"Mozilla/5.0 (compatible; MJ12bot/v1.4.8; http://mj12bot.com/)", "MJ12bot"},
		{"Mozilla/5.0 (compatible; archive.org_bot +http://archive.org/details/archive.org_bot)", "archive.org_bot"},
		{"Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)", "Slurp"},
		{"Baiduspider+(+http://www.baidu.com/search/spider.htm)", "Baiduspider"},
		{"Go-http-client/1.1", "Go-http-client"},
		{"python-requests/2.31.0", "python-requests"},
		{"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36", ""},
		{"Mozilla/5.0 (Windows NT 10.0; rv:120.0) Gecko/20100101 Firefox/120.0", ""},
		{"Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; Trident/4.0)", ""},
		{"Opera/9.80 (Windows NT 6.1) Presto/2.12.388 Version/12.18", ""},
		{"", ""},
		{"   ", ""},
		{"(+https://example.com)", ""},
		{"compatible;", ""},
		{"compatible;;;(", ""},
		{"://", ""},
	} {
		if got := dialect.TokenOf(test.userAgent); got != test.want {
			t.Errorf("%q: %q, want %q", test.userAgent, got, test.want)
		}
	}
}
