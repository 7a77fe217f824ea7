package serve

import (
	"net/http"

	"github.com/collyrobots/collyrobots"
)

// A pauseRequest is the body of a request that pauses or resumes a host.
type pauseRequest struct {
	Host *string `json:"host"` // "" means all hosts
}

// pause returns the handler of POST /v1/pause or /v1/resume.
func (s *service) pause(act func(*collyrobots.Plugin, string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := new(pauseRequest)
		if fault := read(w, r, q); fault != nil {
			fail(w, fault.status, fault.text)
			return
		}
		if q.Host == nil {
			fail(w, http.StatusBadRequest, `host is missing; {"host": ""} means all hosts`)
			return
		}
		err := act(s.robots, *q.Host)
		if err != nil {
			fail(w, http.StatusBadRequest, plain(err))
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}
