// Package tooltest tests programs as users run them: the command collyrobots and the programs in
// examples/. It builds the program in the current directory once and runs it in a separate process
// or in a terminal. A proxy on this machine answers the requests of the program for a few sites.
package tooltest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/collyrobots/collyrobots/internal/leaktest"
	"github.com/collyrobots/collyrobots/robotstest"
)

// The program that is tested, and its first arguments.
var (
	folder = "."
	first  []string
)

// MainOf is like Main for a program in another folder. args come before the arguments of each run.
func MainOf(m *testing.M, programFolder string, args ...string) {
	folder = programFolder
	first = args
	Main(m)
}

// Main is the TestMain of a program. It runs the tests, and fails if they leave a goroutine behind.
func Main(m *testing.M) {
	before := leaktest.Count()
	status := m.Run()
	if file, err := program(); err == nil {
		os.RemoveAll(filepath.Dir(file))
	}
	if status == 0 && leaktest.Leaks(before) {
		status = 1
	}
	os.Exit(status)
}

// program builds the program and returns the name of the file.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "tool")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "tool")
	out, err := exec.Command("go", "build", "-o", file, folder).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return file, nil
})

// A World has the sites that a program can reach. They use http only. With a nil World, a program
// uses the network of the machine.
type World struct {
	*robotstest.Web
	proxy string
}

// New returns a world that is closed when the test ends.
func New(t *testing.T, sites robotstest.Sites) *World {
	t.Helper()
	web := robotstest.New(t, sites)
	reverse := &httputil.ReverseProxy{
		Transport:     web.Transport(),
		FlushInterval: -1, // at once
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.URL = r.In.URL },
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodConnect {
			panic(http.ErrAbortHandler)
		}
		reverse.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return &World{web, server.URL}
}

// Command returns a command that runs the program with the given arguments.
func (w *World) Command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	file, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), file, slices.Concat(first, args)...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	if w != nil {
		cmd.Env = append(cmd.Env, "HTTP_PROXY="+w.proxy, "HTTPS_PROXY="+w.proxy, "NO_PROXY=")
	}
	return cmd
}

// Run runs the program until it ends.
func (w *World) Run(t *testing.T, stdin string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	cmd := w.Command(t, args...)
	var out, err bytes.Buffer
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Stdout = &out
	cmd.Stderr = &err
	if fault := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(fault)
	}
	return cmd.ProcessState.ExitCode(), out.String(), err.String()
}
