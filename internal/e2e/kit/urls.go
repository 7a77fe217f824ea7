package kit

import "strings"

// An UnusualURL is a URL as pages, sitemaps and command lines contain it.
type UnusualURL struct {
	URL    string
	Reason string // a part of the reason why no request can be sent to it; "" if one can be sent
}

// NotWeb is the Reason of a URL with another scheme. Such a request is no business of robots.txt.
const NotWeb = "is not an http, https or ftp URL"

// UnusualURLs are the URLs that the tests pass through every door of the plugin and of the command.
// The hosts of the URLs without a Reason do not exist.
var UnusualURLs = []UnusualURL{
	// Ports.
	{"http://a.test:99999/", "the port 99999 is above 65535"},
	{"http://a.test:65536/", "the port 65536 is above 65535"},
	{"http://a.test:18446744073709551616/", "the port 18446744073709551616 is above 65535"},
	{"http://a.test:65535/", ""},
	{"http://a.test:0/", ""},
	{"http://a.test:00080/", ""},
	{"http://a.test:/", ""},
	{"http://a.test:x/", "invalid port"},
	{"http://a.test:-1/", "invalid port"},
	// Hosts.
	{"http:///x", "the host is empty"},
	{"http://:80/", "the host is empty"},
	{"http://.../", "the host is empty"},
	{"http://./", "the host is empty"},
	{"http://%20/", "the host is not a valid name"},
	{"http://a%zz.test/", "the host is not a valid name"},
	{"http://a_b.test/", ""},
	{"http://-a.test/", ""},
	{"http://a..test/", ""},
	{"http://a.test./", ""},
	{"http://A.TEST/", ""},
	{"http://" + strings.Repeat("a", 64) + ".test/", ""},
	{"http://" + strings.Repeat("a.", 600) + "test/", "at most 1024"},
	{"http://a b.test/", "invalid character"},
	{"http://[::1/", "missing ']'"},
	{"http://[fe80::1%25eth0]/", ""},
	{"http://[::ffff:127.0.0.1]/", ""},
	{"http://[v1.a]/", "the host is not a valid name"},
	{"http://0x7f.1/", ""},
	{"http://2130706433/", ""},
	{"http://256.1.1.1/", ""},
	// Internationalized names.
	{"http://bücher.test/", ""},
	{"http://xn--bcher-kva.test/", ""},
	{"http://ＡＢ.test/", ""},
	{"http://faß.test/", ""},
	{"http://xn--a/", "the host is not a valid name"},
	{"http://xn--0.pt/", "the host is not a valid name"},
	{"http://xn--/", "the host is not a valid name"},
	{"http://a\u202eb.test/", "the host is not a valid name"},
	{"http://\u0661\u0662\u0663.test/", "the host is not a valid name"},
	{"http://\xff.test/", "the host is not a valid name"},
	// Paths.
	{"http://a.test/100%", ""},
	{"http://a.test/\x00", ""},
	{"http://a.test/a b", ""},
	{"http://a.test/\xff", ""},
	{"http://a.test/" + strings.Repeat("a", 20_000), ""},
	{"http://a.test/#fragment", ""},
	{"http://joe:secret@a.test/", ""},
	// Schemes.
	{"HTTP://a.test/", ""},
	{"ftp://a.test/", ""},
	{"gopher://a.test/", NotWeb},
	{"file:///etc/passwd", NotWeb},
	{"javascript:alert(1)", NotWeb},
	{"data:text/plain,x", NotWeb},
	{"mailto:joe@a.test", NotWeb},
	{"a.test:99999", NotWeb},
}
