package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

const record = `{"robots":"User-agent: *\nDisallow: /*.gif\n","agent":"a","urls":["/x.gif","/x"]}` + "\n"

func TestBatch(t *testing.T) {
	status, out, errs := call(t, record, "batch")
	want := `{"record":1,"agent":"a","url":"/x.gif","allowed":false,"line":2,"sha256":"`
	if status != statusOK || errs != "" || !strings.HasPrefix(out, want) || strings.Count(out, "\n") != 2 {
		t.Errorf("status %d, errors %q\n%s", status, errs, out)
	}
	status, out, _ = call(t, record, "batch", "-dialect", "original1994")
	if status != statusOK || strings.Contains(out, `"allowed":false`) {
		t.Errorf("original1994: status %d\n%s", status, out)
	}
	status, out, _ = call(t, `{"robots":""}`, "batch", "-agent", "a,b", "-url", "/1", "-url", "/2")
	if status != statusOK || strings.Count(out, "\n") != 4 || !strings.Contains(out, `"agent":"b","url":"/2"`) {
		t.Errorf("flags: status %d\n%s", status, out)
	}
	status, out, errs = call(t, record+"x\n", "batch")
	if status != statusNegative || strings.Count(out, "\n") != 3 || !strings.Contains(errs, "1 of 3 records or URLs could not be read") {
		t.Errorf("bad record: status %d, errors %q\n%s", status, errs, out)
	}
}

func TestBatchPurpose(t *testing.T) {
	const input = `{"robots":"User-agent: *\nContent-Signal: ai-train=no\n","header":{"Content-Usage":["train-ai=y"]}}` + "\n"
	status, out, errs := call(t, input, "batch", "-purpose", "train-ai", "-agent", "a")
	want := `{"record":1,"agent":"a","url":"/","use":"disallowed","because":"Content-Signal in robots.txt, line 2",` +
		`"sources":[{"source":"Content-Signal in robots.txt","line":2,"says":"disallowed"},{"source":"header Content-Usage","says":"allowed"}],` +
		`"contradictions":["header Content-Usage allows it, Content-Signal in robots.txt, line 2 does not"]}` + "\n"
	if status != statusOK || out != want || !strings.Contains(errs, "1 lines: 0 denied, 1 disallowed, 0 allowed, 0 unknown; 1 contradict themselves; 0 errors") {
		t.Errorf("status %d, errors %q\n%s", status, errs, out)
	}
	status, out, errs = call(t, "x\n", "batch", "-purpose", "search", "-agent", "a")
	if status != statusNegative || !strings.Contains(out, `"error"`) || !strings.Contains(errs, "1 errors") {
		t.Errorf("bad record: status %d, errors %q\n%s", status, errs, out)
	}
}

func TestBatchBadArguments(t *testing.T) {
	for _, test := range []struct {
		args []string
		errs string
	}{
		{args: []string{"-dialect", "altavista"}, errs: `unknown name "altavista"`},
		{args: []string{"-purpose", "fun"}, errs: `unknown purpose "fun"`},
		{args: []string{"records.jsonl"}, errs: "read from standard input"},
	} {
		status, out, errs := call(t, "", append([]string{"batch"}, test.args...)...)
		if status != statusFailed || out != "" || !strings.Contains(errs, test.errs) {
			t.Errorf("%v: status %d, output %q, errors %q", test.args, status, out, errs)
		}
	}
}

func TestBatchClosedPipe(t *testing.T) {
	reader, writer := io.Pipe()
	reader.Close()
	var errs strings.Builder
	if status := run([]string{"batch"}, strings.NewReader(record), writer, &errs); status != statusFailed || errs.Len() > 0 {
		t.Errorf("status %d, errors %q", status, errs.String())
	}
}

// TestBatchProcess runs the program with a reader that closes its end of the pipe after one line.
func TestBatchProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("on Windows a closed pipe does not end a process by a signal")
	}
	cmd := exec.Command(program(t), "batch")
	cmd.Stdin = strings.NewReader(strings.Repeat(record, 200_000))
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stdout = writer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	if _, err := reader.Read(make([]byte, 100)); err != nil {
		t.Error(err)
	}
	reader.Close()
	if err := cmd.Wait(); err == nil || errs.Len() > 0 {
		t.Errorf("error %v, errors %q; want a failure without a message", err, errs.String())
	}
}
