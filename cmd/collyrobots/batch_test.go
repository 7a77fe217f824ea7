package main

import (
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/cli"
)

const record = `{"robots":"User-agent: *\nDisallow: /*.gif\n","agent":"a","urls":["/x.gif","/x"]}` + "\n"

func TestBatch(t *testing.T) {
	status, out, errs := call(t, record, "batch")
	want := `{"record":1,"agent":"a","url":"/x.gif","allowed":false,"line":2,"sha256":"`
	if status != cli.OK || errs != "" || !strings.HasPrefix(out, want) || strings.Count(out, "\n") != 2 {
		t.Errorf("status %d, errors %q\n%s", status, errs, out)
	}
	status, out, _ = call(t, record, "batch", "-dialect", "original1994")
	if status != cli.OK || strings.Contains(out, `"allowed":false`) {
		t.Errorf("original1994: status %d\n%s", status, out)
	}
	status, out, _ = call(t, `{"robots":""}`, "batch", "-agent", "a,b", "-url", "/1", "-url", "/2")
	if status != cli.OK || strings.Count(out, "\n") != 4 || !strings.Contains(out, `"agent":"b","url":"/2"`) {
		t.Errorf("flags: status %d\n%s", status, out)
	}
	status, out, errs = call(t, record+"x\n", "batch")
	if status != cli.Negative || strings.Count(out, "\n") != 3 || !strings.Contains(errs, "1 of 3 records or URLs could not be read") {
		t.Errorf("bad record: status %d, errors %q\n%s", status, errs, out)
	}
}

func TestBatchPurpose(t *testing.T) {
	const input = `{"robots":"User-agent: *\nContent-Signal: ai-train=no\n","header":{"Content-Usage":["train-ai=y"]}}` + "\n"
	status, out, errs := call(t, input, "batch", "-purpose", "train-ai", "-agent", "a")
	want := `{"record":1,"agent":"a","url":"/","use":"disallowed","because":"Content-Signal in robots.txt, line 2",` +
		`"sources":[{"source":"Content-Signal in robots.txt","line":2,"says":"disallowed"},{"source":"header Content-Usage","says":"allowed"}],` +
		`"contradictions":["header Content-Usage allows it, Content-Signal in robots.txt, line 2 does not"]}` + "\n"
	if status != cli.OK || out != want || !strings.Contains(errs, "1 lines: 0 denied, 1 disallowed, 0 allowed, 0 unknown; 1 contradict themselves; 0 errors") {
		t.Errorf("status %d, errors %q\n%s", status, errs, out)
	}
	status, out, errs = call(t, "x\n", "batch", "-purpose", "search", "-agent", "a")
	if status != cli.Negative || !strings.Contains(out, `"error"`) || !strings.Contains(errs, "1 errors") {
		t.Errorf("bad record: status %d, errors %q\n%s", status, errs, out)
	}
}

func TestBatchBadArguments(t *testing.T) {
	for _, test := range []struct {
		args []string
		errs string
	}{
		{args: []string{"-dialect", "altavista"}, errs: `unknown name "altavista"`},
		{args: []string{"-purpose", "fun"}, errs: `-purpose fun: use search, ai-use or train-ai`},
		{args: []string{"records.jsonl"}, errs: `unexpected argument "records.jsonl"`},
	} {
		status, out, errs := call(t, "", append([]string{"batch"}, test.args...)...)
		if status != cli.Failed || out != "" || !strings.Contains(errs, test.errs) {
			t.Errorf("%v: status %d, output %q, errors %q", test.args, status, out, errs)
		}
	}
}
