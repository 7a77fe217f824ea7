package browsertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/view"
)

// A fields is an object of a message, as in docs/reference/view.md.
type fields map[string]any

// showing returns the URL of a page that shows one message of the stream.
func showing(t *testing.T, message fields, options view.Options) string {
	t.Helper()
	body, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	p, err := collyrobots.New()
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/robots/", http.StripPrefix("/robots", view.New(p, options)))
	mux.HandleFunc("/robots/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\n", body)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		p.Close()
	})
	return server.URL + "/robots/"
}

// operatorStates are hosts in the states that the options for operators lead to, at 13:20 UTC on a
// Sunday. want is the text of the column with the delay, in a browser in Berlin.
var operatorStates = []struct {
	stats fields
	want  string
}{
	{fields{"host": "night.example", "source": "hours", "delay": 1, "opens": "2026-11-22T21:00:00Z", "waiting": 12},
		"closed until 22:00 (CrawlHours of this crawl)"},
	{fields{"host": "monday.example", "source": "visit_time", "line": 7, "opens": "2026-11-23T08:30:00+01:00"},
		"closed until Mon 08:30 (Visit-time, robots.txt line 7)"},
	{fields{"host": "open.example", "source": "min_delay", "delay": 0.25, "closes": "2026-11-22T17:00:00Z"},
		"0.25 s MinDelay of this crawl closes at 18:00"},
	{fields{"host": "refusing.example", "source": "min_delay", "delay": 1, "stopped": "2026-11-22T13:05:00Z", "next_try": "2026-11-22T14:05:00Z", "refusals_in_row": 10, "last_status": 403},
		"refusing since 14:05, next try 15:05"},
	{fields{"host": "probed.example", "stopped": "2026-11-21T13:05:00Z", "next_try": "2026-11-22T13:05:00Z", "refusals_in_row": 10},
		"refusing since Sat 14:05, next try now"},
	{fields{"host": "rude.example", "refusals_in_row": 3},
		"none no delay requested refused 3 requests in a row"},
	{fields{"host": "shop7.example", "source": "crawl_delay", "delay": 5, "line": 2, "group": "192.0.2.7", "shared_with": 499},
		"5 s Crawl-delay, robots.txt line 2 shares its pace with 499 other hosts (192.0.2.7)"},
	{fields{"host": "two.example.co.uk", "source": "min_delay", "delay": 1, "group": "example.co.uk", "shared_with": 1},
		"1 s MinDelay of this crawl shares its pace with 1 other host (example.co.uk)"},
	{fields{"host": "budget.example", "source": "min_delay", "delay": 1, "max_pages_per_host": 1000, "pages_sent": 1000},
		"1 s MinDelay of this crawl budget used up: 1,000 pages"},
	{fields{"host": "half.example", "source": "min_delay", "delay": 1, "max_pages_per_host": 1000, "pages_sent": 500},
		"1 s MinDelay of this crawl 500 of 1,000 pages sent"},
	{fields{"host": "again.example", "source": "min_delay", "delay": 1, "unchanged": 1234},
		"1 s MinDelay of this crawl 1,234 pages unchanged"},
	{fields{"host": "slow.example", "source": "adaptive", "delay": 1.6, "response_time": 0.8},
		"1.6 s AdaptiveDelay, the host responds in 0.8 s"},
	{fields{"host": "all." + fmt.Sprintf("%060d", 7) + ".example", "source": "adaptive", "delay": 1.6, "response_time": 0.8, "closes": "2026-11-23T06:00:00Z",
		"group": "example.example", "shared_with": 12, "max_pages_per_host": 10, "pages_sent": 10, "unchanged": 3, "refusals_in_row": 2},
		"1.6 s AdaptiveDelay, the host responds in 0.8 s closes at Mon 07:00 · shares its pace with 12 other hosts (example.example) · " +
			"budget used up: 10 pages · refused 2 requests in a row · 3 pages unchanged"},
}

// operatorMessage returns a message with operatorStates.
func operatorMessage() fields {
	var hosts []fields
	for _, s := range operatorStates {
		hosts = append(hosts, fields{"stats": s.stats, "time_left": 0, "fresh": true, "starts": []any{}})
	}
	denial := func(reason string) fields {
		return fields{"host": "denied.example", "robots_url": "https://denied.example/robots.txt", "reason": reason, "count": 2,
			"first": "2026-11-22T13:00:00Z", "last": "2026-11-22T13:00:00Z", "urls": []string{"https://denied.example/1"}}
	}
	return fields{
		"time": "2026-11-22T13:20:00Z", "started": "2026-11-22T12:00:00Z", "rate": 0.5, "gap_over_delay": 1,
		"totals": fields{"pages": 40, "waiting": 12, "denied": 10, "unchanged": 1237},
		"known":  len(hosts), "matching": len(hosts), "busy": 1, "hosts": hosts,
		"denials": []fields{denial("refused"), denial("budget"), denial("usage"), denial("nofollow")},
		"denied_rules": []fields{{"reason": "refused", "count": 2, "hosts": 1}, {"reason": "budget", "count": 3, "hosts": 1},
			{"reason": "usage", "count": 4, "hosts": 1}, {"reason": "nofollow", "count": 1, "hosts": 1}},
		"denied_by": fields{"refused": 2, "budget": 3, "usage": 4, "nofollow": 1},
		"ended":     fields{"done": 9, "budget": 2, "refused": 1},
		"sitemaps":  fields{"stats": fields{"entries": 0}, "files": []any{}},
	}
}

// TestOperatorStates checks what the page says about the states of hosts, and that it fits into
// windows of several widths.
func TestOperatorStates(t *testing.T) {
	page := showing(t, operatorMessage(), view.Options{})
	b := open(t)
	b.run(timezone("Europe/Berlin"), chromedp.EmulateViewport(1280, 900), chromedp.Navigate(page))
	b.within(soon, fmt.Sprintf(`document.querySelectorAll("#rows tr").length === %d`, len(operatorStates)))
	for _, s := range operatorStates {
		host := s.stats["host"].(string)
		cell := fmt.Sprintf(`([...document.querySelectorAll("#rows tr")].find(r => r.querySelector(".name").title.startsWith(%q)).querySelector(".c-delay").innerText).replace(/\s+/g, " ").trim()`, host)
		if got := eval[string](b, cell); got != s.want {
			t.Errorf("%s: got  %s\nwant %s", host, got, s.want)
		}
	}
	for element, want := range map[string]string{
		"#denied-why": "4 × the owner disallows this use, 1 × the page with the link says nofollow, 2 × the host refuses requests, 3 × the budget of pages is used up",
		"#left-why":   "No page is waiting. Hosts: 9 done, 2 over the budget, 1 refusing.",
		"#pages-why":  "12 waiting · 1,237 unchanged · 0.5 requests per second",
	} {
		b.within(soon, has(fmt.Sprintf(`document.querySelector(%q).textContent`, element), want))
	}
	for _, want := range []string{"the host refuses requests", "the budget of pages is used up", "the owner disallows this use", "the page with the link says nofollow"} {
		b.within(soon, has(denialList, want))
	}
	for _, width := range []int64{375, 800, 1280} {
		b.run(chromedp.EmulateViewport(width, 900), chromedp.Sleep(300*time.Millisecond))
		if over := eval[float64](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("%d px wide: %v px too wide", width, over)
		}
		if hidden := eval[string](b, `[...document.querySelectorAll("#rows .c-delay")].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.innerText).join("; ")`); hidden != "" {
			t.Errorf("%d px wide: the text is cut off: %s", width, hidden)
		}
		b.picture(fmt.Sprintf("operators-%d.png", width))
	}
	b.quiet(page)
}
