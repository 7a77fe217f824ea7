// Package witness asks a witness of transparency logs to cosign the log of a crawl. It is
// experimental.
//
//	log, err := audit.Open("crawl.audit", witness.At("https://witness.example/", "witness.example/w1+..."))
//
// A witness is a server of another party. It keeps the size and root of the largest checkpoint that
// it has seen of each log. It cosigns a checkpoint only if the log continues that one, with the time
// of its own clock. So the owner of the log cannot later change what a witness has cosigned, and
// cannot claim that an entry is newer than its cosignature. The protocol is
// https://c2sp.org/tlog-witness, and the format https://c2sp.org/tlog-cosignature with Ed25519.
//
// The package is separate from package audit, which does not need net/http.
package witness

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/collyrobots/collyrobots/audit"
)

// maxResponse is the largest number of bytes in the body of a response.
const maxResponse = 64 << 10

// At returns the option of audit.Open that asks the witness at a URL, the submission prefix, to
// cosign the checkpoints of the log. key is the verifier key of the witness. See audit.Witness for
// times and errors. Several witnesses need an option each.
//
// The requests use http.DefaultTransport, follow no redirect, and read at most 64 KiB of a response.
func At(url, key string) audit.Option {
	return audit.Witness(url, key, post)
}

// client does not follow redirects: they are answers like others.
var client = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// post implements audit.Post.
func post(ctx context.Context, url string, body []byte) (status int, response []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("User-Agent", "collyrobots-audit")
	answer, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	response, err = io.ReadAll(io.LimitReader(answer.Body, maxResponse+1))
	if err == nil && len(response) > maxResponse {
		err = fmt.Errorf("its answer has more than %d bytes", maxResponse)
	}
	return answer.StatusCode, response, err
}
