package clients

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/collyrobots/collyrobots"
	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestWarningWithoutUserAgent checks that a client without a User-Agent header causes a warning, unless
// ProductToken says which name to look for.
func TestWarningWithoutUserAgent(t *testing.T) {
	for _, test := range []struct {
		name    string
		options []collyrobots.Option
		warned  bool
	}{
		{name: "no name", warned: true},
		{name: "ProductToken", options: []collyrobots.Option{collyrobots.ProductToken("ExampleBot")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				web := robotstest.New(t, robotstest.Sites{"a.test": robotstest.Pages(1, "")})
				var log strings.Builder
				p, err := collyrobots.New(append(test.options, kit.LogsTo(&log, slog.LevelWarn))...)
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				client := &http.Client{Transport: p.Transport(web.Transport())}
				resp, err := client.Get("http://a.test/")
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if warned := strings.Contains(log.String(), "no User-Agent header"); warned != test.warned {
					t.Errorf("warned: %t, want %t\n%s", warned, test.warned, log.String())
				}
			})
		})
	}
}
