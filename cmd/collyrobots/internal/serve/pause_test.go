package serve

import (
	"net/http"
	"testing"
	"time"
)

// TestPause pauses a host while a turn of it is open and another one is waited for.
func TestPause(t *testing.T) {
	inBubble(t, slow(), settings{}, func(r *rig) {
		first := r.take("http://slow.test/1")
		want204 := func(got reply) {
			if got.status != http.StatusNoContent {
				t.Errorf("status %d: %s", got.status, got.body)
			}
		}
		want204(r.post("/v1/pause", `{"host": "slow.test"}`))
		r.answer(first, `{"status": 200}`)
		late := new(problem)
		r.post("/v1/turns", `{"url": "http://slow.test/2", "agent": "ExampleBot", "wait": 3600}`).decode(t, http.StatusServiceUnavailable, late)
		r.at(time.Hour + 10*time.Second)
		time.AfterFunc(time.Minute, func() { want204(r.post("/v1/resume", `{"host": ""}`)) })
		r.answer(r.take("http://slow.test/2"), `{"status": 200}`)
		r.at(time.Hour + time.Minute + 10*time.Second)
	})
}
