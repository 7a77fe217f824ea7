package robotstest_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gocolly/colly/v2"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/dialect"
	"github.com/collyrobots/collyrobots/robotstest"
)

// obey contains what the owner of the spider adds to obey robots.txt.
func (s *shopSpider) obey() (*collyrobots.Plugin, error) {
	robots, err := collyrobots.WithRobots(s.list)
	for _, c := range []*colly.Collector{s.detail, s.covers} {
		if err == nil {
			err = robots.Attach(c)
		}
	}
	return robots, err
}

// bookshop returns the sites of a bookshop.
func bookshop() robotstest.Sites {
	page := func(n int) string {
		return fmt.Sprintf(`<body><h1>Book %d</h1><p class=author>A. Writer</p><p class=price>EUR 12.50</p><p class=stock>In stock</p>
			<img class=cover src="//img.shop.test/%d.png"><a class=edition href="/book/%d?edition=2">2nd</a></body>`, n, n, n)
	}
	png := []byte("\x89PNG\r\n\x1a\n a picture")
	failed := false
	return robotstest.Sites{
		"shop.test": {
			"/robots.txt": "User-agent: *\nCrawl-delay: 10\nDisallow: /*?edition=\nDisallow: /country\n",
			"/":           `<a class=category href=/novels>Novels</a> <form id=country action=/country></form> <a class=book href=/book/9>9</a>`,
			"/novels":     `<a class=book href=/book/1>1</a> <a class=next href="/novels?page=2">next</a>`,
			"/novels?page=2": func(w http.ResponseWriter, r *http.Request) {
				if failed = !failed; failed {
					w.WriteHeader(http.StatusBadGateway)
					return
				}
				io.WriteString(w, `<html><a class=book href=/book/2>2</a></html>`)
			},
			"/book/1": page(1), "/book/2": robotstest.Redirect("http://www.shop.test/book/2"), "/book/9": 404,
			"/book/1?edition=2": page(1), "/country": "<html>Hej</html>",
		},
		"www.shop.test": {"/robots.txt": "User-agent: *\nDisallow: /book/3\n", "/book/2": page(2)},
		"img.shop.test": {"/robots.txt": "User-agent: ShopSpider\nCrawl-delay: 7\nDisallow: /2.png\n", "/1.png": png, "/2.png": png},
	}
}

// readShop runs the spider on a web and returns its table.
func readShop(t *testing.T, web *robotstest.Web, obey func(*shopSpider) (*collyrobots.Plugin, error)) string {
	t.Helper()
	var out strings.Builder
	spider, err := newShopSpider("http://shop.test/", &out)
	if err != nil {
		t.Fatal(err)
	}
	spider.list.WithTransport(web.Transport()) // its clone uses the same transport
	spider.covers.WithTransport(web.Transport())
	robots, err := obey(spider)
	if err != nil {
		t.Fatal(err)
	}
	defer robots.Close()
	if err := spider.Run(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestExistingSpider is the test that the owner of the spider writes. It takes 70 seconds of the
// bubble's time.
func TestExistingSpider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, bookshop())
		table := readShop(t, web, (*shopSpider).obey)
		robotstest.Verify(t, web, dialect.RFC9309())
		if !strings.Contains(table, "Book 1,A. Writer,,1250,true,18,http://shop.test/book/1\nBook 2,A. Writer,,1250,true,0,http://www.shop.test/book/2\n") {
			t.Error(table)
		}
		const want = "0s /robots.txt\n10s /\n20s /novels\n30s /book/9\n40s /book/1\n50s /novels?page=2\n1m0s /novels?page=2\n1m10s /book/2"
		got := web.Log("shop.test")
		if len(got) != 8 || got.MinGap() < 10*time.Second || !strings.HasPrefix(got.String(), want[:20]) {
			t.Errorf("requests to shop.test:\n%s\nwant, in any order,\n%s", got, want)
		}
	})
}

// TestExistingSpiderByDefaultTransport tests the spider by replacing http.DefaultTransport.
func TestExistingSpiderByDefaultTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web := robotstest.New(t, bookshop())
		before := http.DefaultTransport
		http.DefaultTransport = web.Transport()
		defer func() { http.DefaultTransport = before }()

		spider, err := newShopSpider("http://shop.test/", io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		robots, err := spider.obey()
		if err != nil {
			t.Fatal(err)
		}
		defer robots.Close()
		if err := spider.Run(); err != nil {
			t.Fatal(err)
		}
		robotstest.Verify(t, web, dialect.RFC9309())
		if n := len(web.Log("")); n != 13 {
			t.Errorf("%d requests:\n%s", n, web.Log(""))
		}
	})
}

// TestVerifyFindsWhatTheOwnerForgets checks that Verify finds each part that the owner forgets.
func TestVerifyFindsWhatTheOwnerForgets(t *testing.T) {
	for _, test := range []struct {
		forgotten string
		obey      func(*shopSpider) (*collyrobots.Plugin, error)
		hosts     string // the hosts that Verify reports errors about
	}{
		{"everything", func(*shopSpider) (*collyrobots.Plugin, error) { return nil, nil }, "img.shop.test shop.test"},
		{"the collector that is no clone", func(s *shopSpider) (*collyrobots.Plugin, error) {
			robots, err := collyrobots.WithRobots(s.list)
			if err == nil {
				err = robots.Attach(s.detail)
			}
			return robots, err
		}, "img.shop.test"},
		{"the clone, which was made before", func(s *shopSpider) (*collyrobots.Plugin, error) {
			robots, err := collyrobots.WithRobots(s.list)
			if err == nil {
				err = robots.Attach(s.covers)
			}
			return robots, err
		}, "shop.test"},
	} {
		synctest.Test(t, func(t *testing.T) {
			web := robotstest.New(t, bookshop())
			readShop(t, web, test.obey)
			caught := &faults{TB: t, hosts: make(map[string]bool)}
			robotstest.Verify(caught, web, dialect.RFC9309())
			if got := strings.Join(slices.Sorted(maps.Keys(caught.hosts)), " "); got != test.hosts {
				t.Errorf("without %s there are errors for %q, want %q", test.forgotten, got, test.hosts)
			}
		})
	}
}

// faults is a test that records the hosts of the reported errors.
type faults struct {
	testing.TB
	hosts map[string]bool
}

func (f *faults) Helper() {}

func (f *faults) Errorf(format string, args ...any) {
	_, rest, _ := strings.Cut(fmt.Sprintf(format, args...), "://")
	host, _, _ := strings.Cut(rest, "/")
	f.hosts[host] = true
}
