package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/report"
	"github.com/collyrobots/collyrobots/robotstest"
)

// The benchmarks measure a service on the loopback interface. The crawlers are in the same process, so a
// turn costs less processor time than they show.

// startBench starts a service for the sites, and returns its address.
func startBench(b *testing.B, sites robotstest.Sites) string {
	b.Helper()
	web := robotstest.New(b, sites)
	service, err := newService(settings{maxTurns: 20_000, expire: time.Minute},
		collyrobots.RobotsClient(&http.Client{Transport: web.Transport()}),
		collyrobots.Logger(slog.New(slog.DiscardHandler)))
	if err != nil {
		b.Fatal(err)
	}
	return startService(b, "127.0.0.1:0", service)
}

// post makes a request, and returns the body of the response.
func post(client *http.Client, url, body string) ([]byte, error) {
	resp, err := client.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("status %s: %s", resp.Status, text)
	}
	return text, err
}

// takeAndAnswer takes a turn and answers it.
func takeAndAnswer(client *http.Client, service string) error {
	text, err := post(client, service+"/v1/turns", `{"url": "http://a.test/page", "agent": "ExampleBot/1.0"}`)
	if err != nil {
		return err
	}
	var g grant
	err = json.Unmarshal(text, &g)
	if err != nil {
		return err
	}
	_, err = post(client, service+"/v1/turns/"+g.Turn, `{"status": 200, "headers": {"Content-Type": "text/html"}}`)
	return err
}

// BenchmarkTurn measures how long one crawler takes to get a turn and to answer it, without a delay.
func BenchmarkTurn(b *testing.B) {
	service := "http://" + startBench(b, robotstest.Sites{"a.test": {}})
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	for b.Loop() {
		err := takeAndAnswer(client, service)
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTurns measures the turns of 64 crawlers of one host without a delay.
func BenchmarkTurns(b *testing.B) {
	service := "http://" + startBench(b, robotstest.Sites{"a.test": {}})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	b.SetParallelism(64 / runtime.GOMAXPROCS(0))
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			err := takeAndAnswer(client, service)
			if err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
}

// BenchmarkWaiting measures the memory of 5,000 requests that wait for their turns.
func BenchmarkWaiting(b *testing.B) {
	const waiting = 5000
	address := startBench(b, robotstest.Sites{"a.test": {"/robots.txt": "User-agent: *\nCrawl-delay: 3600\n"}})
	for b.Loop() {
		before := memory()
		var conns []net.Conn
		for range waiting {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				b.Fatal(err)
			}
			conns = append(conns, conn)
			const body = `{"url": "http://a.test/page", "agent": "ExampleBot/1.0"}`
			fmt.Fprintf(conn, "POST /v1/turns HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
		awaitWaiting(b, address, waiting)
		b.ReportMetric(float64(memory()-before)/1000/waiting, "kB/request")
		for _, conn := range conns {
			conn.Close()
		}
		awaitWaiting(b, address, 0)
	}
}

// memory returns the bytes of the heap and of the stacks.
func memory() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// awaitWaiting waits until a number of requests wait for their turns.
func awaitWaiting(b *testing.B, address string, n int) {
	b.Helper()
	for range 600 {
		resp, err := http.Get("http://" + address + "/v1/stats")
		if err != nil {
			b.Fatal(err)
		}
		var stats report.Stats
		err = json.NewDecoder(resp.Body).Decode(&stats)
		discard(resp)
		if err != nil {
			b.Fatal(err)
		}
		if stats.Totals.Waiting == n {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.Fatalf("not %d requests wait", n)
}
