package robotstest_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gocolly/colly/v2"
)

// This file is a realistic spider that was written without robots.txt in mind. It creates its own
// collectors, one of them as a clone, sets a LimitRule, retries failed requests, posts a form,
// follows redirects, and writes a table. The file existing_test.go contains what its owner adds.

// A book is a row of the table.
type book struct {
	URL, Title, Author, ISBN string
	Cents                    int
	InStock                  bool
	Cover                    int // bytes
}

// A shopSpider reads a bookshop.
type shopSpider struct {
	Start    string
	Out      io.Writer
	MaxPages int
	Retries  int
	Language string

	list   *colly.Collector // categories, and their pages
	detail *colly.Collector // books
	covers *colly.Collector // pictures

	mu       sync.Mutex
	books    map[string]*book // by URL
	failures map[string]error
	tries    map[string]int
	pages    int
}

// newShopSpider returns a spider that is ready to run.
func newShopSpider(start string, out io.Writer) (*shopSpider, error) {
	s := &shopSpider{
		Start: start, Out: out, MaxPages: 100, Retries: 2, Language: "en",
		books: make(map[string]*book), failures: make(map[string]error), tries: make(map[string]int),
	}
	u, err := url.Parse(start)
	if err != nil {
		return nil, err
	}
	if u.Hostname() == "" {
		return nil, fmt.Errorf("%s has no host", start)
	}
	s.list = colly.NewCollector(
		colly.AllowedDomains(u.Hostname(), "www."+u.Hostname(), "img."+u.Hostname()),
		colly.UserAgent("ShopSpider/0.9 (+https://shopspider.example/about)"),
		colly.MaxDepth(6),
		colly.Async(),
	)
	s.list.SetRequestTimeout(20 * time.Second)
	if err := s.list.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: 4}); err != nil {
		return nil, err
	}
	s.detail = s.list.Clone()
	s.covers = colly.NewCollector(colly.Async(), colly.UserAgent(s.list.UserAgent))
	s.covers.AllowURLRevisit = false
	s.covers.MaxBodySize = 1 << 20
	s.hookList()
	s.hookDetail()
	s.hookCovers()
	return s, nil
}

// hookList registers the callbacks for lists of books.
func (s *shopSpider) hookList() {
	s.list.OnRequest(func(r *colly.Request) {
		r.Headers.Set("Accept-Language", s.Language)
		if s.tooMany() {
			r.Abort()
		}
	})
	s.list.OnHTML("a.category[href]", func(e *colly.HTMLElement) {
		e.Request.Visit(e.Attr("href"))
	})
	s.list.OnHTML("a.next[href]", func(e *colly.HTMLElement) {
		e.Request.Visit(e.Attr("href"))
	})
	s.list.OnHTML("a.book[href]", func(e *colly.HTMLElement) {
		link := e.Request.AbsoluteURL(e.Attr("href"))
		if link == "" || s.knows(link) {
			return
		}
		ctx := colly.NewContext()
		ctx.Put("list", e.Request.URL.String())
		s.detail.Request(http.MethodGet, link, nil, ctx, nil)
	})
	s.list.OnHTML("form#country", func(e *colly.HTMLElement) {
		e.Request.Post(e.Request.AbsoluteURL(e.Attr("action")), map[string]string{"country": "SE"})
	})
	s.list.OnError(s.again)
	s.list.OnScraped(func(*colly.Response) { s.count() })
}

// hookDetail registers the callbacks for books.
func (s *shopSpider) hookDetail() {
	s.detail.OnRequest(func(r *colly.Request) {
		r.Headers.Set("Accept-Language", s.Language)
		r.Headers.Set("Referer", r.Ctx.Get("list"))
		if s.tooMany() {
			r.Abort()
		}
	})
	s.detail.OnHTML("body", func(e *colly.HTMLElement) {
		b, err := parseBook(e)
		if err != nil {
			s.fail(e.Request.URL.String(), err)
			return
		}
		s.add(b)
		if src := e.ChildAttr("img.cover", "src"); src != "" {
			ctx := colly.NewContext()
			ctx.Put("book", b.URL)
			s.covers.Request(http.MethodGet, e.Request.AbsoluteURL(src), nil, ctx, nil)
		}
	})
	s.detail.OnHTML("a.edition[href]", func(e *colly.HTMLElement) {
		if link := e.Request.AbsoluteURL(e.Attr("href")); !s.knows(link) {
			e.Request.Visit(link)
		}
	})
	s.detail.OnError(s.again)
	s.detail.OnScraped(func(*colly.Response) { s.count() })
}

// hookCovers registers the callbacks for pictures.
func (s *shopSpider) hookCovers() {
	s.covers.OnResponse(func(r *colly.Response) {
		if !strings.HasPrefix(r.Headers.Get("Content-Type"), "image/") {
			s.fail(r.Request.URL.String(), errors.New("no picture"))
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if b := s.books[r.Ctx.Get("book")]; b != nil {
			b.Cover = len(r.Body)
		}
	})
	s.covers.OnError(func(r *colly.Response, err error) { s.fail(r.Request.URL.String(), err) })
}

// Run crawls the shop and writes the table.
func (s *shopSpider) Run() error {
	if err := s.list.Visit(s.Start); err != nil {
		return fmt.Errorf("the start page: %w", err)
	}
	s.list.Wait()
	s.detail.Wait()
	s.covers.Wait()
	return s.write()
}

// again retries a request once if it failed for a temporary reason.
func (s *shopSpider) again(r *colly.Response, err error) {
	link := r.Request.URL.String()
	if r.StatusCode < 500 && r.StatusCode != 0 || !s.mayTry(link) {
		s.fail(link, err)
		return
	}
	r.Request.Retry()
}

func (s *shopSpider) mayTry(link string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tries[link]++
	return s.tries[link] <= s.Retries
}

func (s *shopSpider) tooMany() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pages >= s.MaxPages
}

func (s *shopSpider) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages++
}

func (s *shopSpider) knows(link string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.books[link]
	return ok
}

func (s *shopSpider) add(b *book) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.books[b.URL]; old != nil {
		b.Cover = old.Cover
	}
	s.books[b.URL] = b
}

func (s *shopSpider) fail(link string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures[link] = err
}

var (
	isbnPattern  = regexp.MustCompile(`\b97[89][0-9]{10}\b`)
	pricePattern = regexp.MustCompile(`([0-9]+)[.,]([0-9]{2})`)
)

// parseBook parses the page of a book.
func parseBook(e *colly.HTMLElement) (*book, error) {
	b := &book{
		URL:    e.Request.URL.String(),
		Title:  strings.TrimSpace(e.ChildText("h1")),
		Author: strings.TrimSpace(e.ChildText(".author")),
		ISBN:   isbnPattern.FindString(e.ChildText(".isbn")),
	}
	if b.Title == "" {
		return nil, errors.New("no title")
	}
	if b.ISBN != "" && !isISBN(b.ISBN) {
		return nil, fmt.Errorf("bad ISBN %s", b.ISBN)
	}
	cents, err := parsePrice(e.ChildText(".price"))
	if err != nil {
		return nil, err
	}
	b.Cents = cents
	b.InStock = strings.Contains(strings.ToLower(e.ChildText(".stock")), "in stock")
	return b, nil
}

// parsePrice parses "EUR 12.50" as 1250.
func parsePrice(text string) (cents int, err error) {
	m := pricePattern.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("no price in %q", text)
	}
	whole, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, err
	}
	rest, err := strconv.Atoi(m[2])
	return whole*100 + rest, err
}

// isISBN reports whether the check digit of an ISBN-13 is correct.
func isISBN(s string) bool {
	sum := 0
	for i, c := range s {
		digit := int(c - '0')
		if i%2 == 1 {
			digit *= 3
		}
		sum += digit
	}
	return len(s) == 13 && sum%10 == 0
}

// write writes the table, sorted by title, followed by the failures.
func (s *shopSpider) write() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []*book
	for _, b := range s.books {
		rows = append(rows, b)
	}
	slices.SortFunc(rows, func(a, b *book) int { return strings.Compare(a.Title, b.Title) })
	w := csv.NewWriter(s.Out)
	w.Write([]string{"title", "author", "isbn", "cents", "in stock", "cover", "url"})
	for _, b := range rows {
		w.Write([]string{b.Title, b.Author, b.ISBN, strconv.Itoa(b.Cents), strconv.FormatBool(b.InStock), strconv.Itoa(b.Cover), b.URL})
	}
	var links []string
	for link := range s.failures {
		links = append(links, link)
	}
	slices.Sort(links)
	for _, link := range links {
		w.Write([]string{"failed", s.failures[link].Error(), "", "", "", "", link})
	}
	w.Flush()
	return w.Error()
}
