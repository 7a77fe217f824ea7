package crawl

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/conformance"
	"github.com/collyrobots/collyrobots/dialect"
)

// Own is the Crawler of this module: an http.Client with the plugin.
func Own(ctx context.Context, questions []conformance.FetchQuestion) ([]conformance.FetchAnswer, error) {
	answers := make([]conformance.FetchAnswer, len(questions))
	for i, q := range questions {
		if err := fetch(ctx, q); err != nil {
			answers[i].Error = err.Error()
		}
	}
	return answers, nil
}

// requestLimit is the maximum time of one request.
const requestLimit = 30 * time.Second

// fetch fetches the URLs of a question that robots.txt allows.
func fetch(ctx context.Context, q conformance.FetchQuestion) error {
	var d dialect.Dialect
	if err := d.UnmarshalText([]byte(q.Dialect)); err != nil {
		return err
	}
	robots, err := collyrobots.New(
		collyrobots.Dialect(d),
		collyrobots.ProductToken(q.Agent),
		collyrobots.PrivateNetworks(collyrobots.AllowAll),
		collyrobots.Logger(slog.New(slog.DiscardHandler)),
	)
	if err != nil {
		return err
	}
	defer robots.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: robots.Transport(transport)}
	for _, u := range q.Fetch {
		get(ctx, client, u, q.Agent)
	}
	return nil
}

// get requests a URL. It ignores errors, because the result depends only on the requests that the
// servers have logged.
func get(ctx context.Context, client *http.Client, u, agent string) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return
	}
	req.Header.Set("User-Agent", agent+"/1.0")
	resp, err := client.Do(req)
	if err != nil {
		return
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}
