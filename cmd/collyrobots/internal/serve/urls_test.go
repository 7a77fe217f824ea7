package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/internal/e2e/kit"
	"github.com/collyrobots/collyrobots/robotstest"
)

// TestUnusualURLs checks that no answer tells a crawler to repeat a request that can never succeed: a URL
// that no request can be sent to is a mistake of the crawler, and a host that does not exist is denied.
func TestUnusualURLs(t *testing.T) {
	inBubble(t, robotstest.Sites{}, settings{}, func(r *rig) {
		for _, test := range kit.UnusualURLs {
			body, err := json.Marshal(turnRequest{URL: test.URL, Agent: "a"})
			if err != nil {
				t.Fatal(err)
			}
			turn := r.post("/v1/turns", string(body))
			check := r.get("/v1/check?agent=a&url=" + url.QueryEscape(test.URL))
			want := []int{http.StatusForbidden, http.StatusOK}
			if test.Reason != "" || strings.HasPrefix(test.URL, "ftp:") || strings.Contains(test.URL, "\x00") {
				want = []int{http.StatusBadRequest, http.StatusBadRequest}
			}
			got := []int{turn.status, check.status}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%.60q: status %d, want %d\n%.300s%.300s", test.URL, got, want, turn.body, check.body)
			}
			if len(turn.body) > 600 && want[0] == http.StatusBadRequest {
				t.Errorf("%.60q: the error has %d bytes", test.URL, len(turn.body))
			}
		}
		r.at(0)
	})
}
