package crawl

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/collyrobots/collyrobots/audit"
	"github.com/collyrobots/collyrobots/internal/tooltest"
	"github.com/collyrobots/collyrobots/robotstest"
	"github.com/collyrobots/collyrobots/webbotauth"
)

// keyFile returns a file with a new key.
func keyFile(t *testing.T) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bot.pem")
	err = os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestOptions checks on the wire that the flags set their options: signatures, the User-Agent, the
// purpose, and the audit log. The list of sites comes from standard input.
func TestOptions(t *testing.T) {
	t.Parallel()
	web := tooltest.New(t, robotstest.Sites{
		"a.test": {"/robots.txt": "User-agent: *\nContent-Signal: ai-train=no\nAllow: /\n", "/": robotstest.Page("/1"), "/1": ""},
		"b.test": {"/robots.txt": "User-agent: *\nAllow: /\n", "/": ""},
	})
	logs := filepath.Join(t.TempDir(), "log")
	status, out, errs := web.Run(t, "# sites\nhttp://a.test/\n\nhttp://b.test/\n", "-from=-", "-delay=1ms", "-audit", logs, "-purpose=train-ai",
		"-pace-by=domain", "-adaptive=1", "-hours=00:00-23:59", "-agent=OtherBot/2.0", "-sign", keyFile(t), "-sign-agent=https://bot.test"+webbotauth.DirectoryPath)
	if status != 0 {
		t.Errorf("status %d\n%s", status, errs)
	}
	wantMatches(t, "the report", out, `\n  http://a\.test/ +its owner excludes it from -purpose\n`, `\nResponses: 1 × 200\n1 page in \d+\.\d s, 0 failed, 1 denied\n$`)
	for _, r := range web.Log("") {
		if r.Header.Get("Signature") == "" || r.Header.Get("User-Agent") != "OtherBot/2.0" {
			t.Errorf("%s%s: headers %v", r.Host, r.URI, r.Header)
		}
	}
	if report, err := audit.Verify(logs); err != nil || !report.OK() {
		t.Errorf("the audit log: %v, %+v", err, report)
	}
}
