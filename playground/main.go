// Command playground serves a page that reads a robots.txt in seven dialects. The page does all work
// in the browser, with the packages of this repository compiled to WebAssembly.
//
//	go run ./playground                # serves the page on this machine
//	go run ./playground -out FOLDER    # writes the files of the page to a folder, for any web server
//
// docs/tools/playground.md describes the page.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"time"
)

//go:embed page
var page embed.FS

func main() {
	log.SetFlags(0)
	addr := flag.String("addr", "localhost:8087", "serve the page on this `address`")
	out := flag.String("out", "", "write the files of the page to this `folder`, and do not serve them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *addr, *out); err != nil {
		stop()
		log.Fatal("playground: ", err)
	}
}

// run serves the page until ctx is done or, if out is not empty, writes its files to that folder.
func run(ctx context.Context, addr, out string) error {
	if out != "" {
		return build(ctx, out)
	}
	dir, err := os.MkdirTemp("", "playground")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	log.Print("compiling; the first time, this takes about a minute")
	if err := build(ctx, dir); err != nil {
		listener.Close()
		return err
	}
	log.Printf("serving http://%s/ until Ctrl-C", listener.Addr())
	return serve(ctx, listener, dir)
}

// serve serves the files of a folder until ctx is done.
func serve(ctx context.Context, listener net.Listener, dir string) error {
	server := &http.Server{Handler: http.FileServer(http.Dir(dir)), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// build writes the files of the page to a folder, and creates it if necessary.
func build(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	files, err := fs.Sub(page, "page")
	if err != nil {
		return err
	}
	if err := write(dir, files); err != nil {
		return err
	}
	return compile(ctx, dir)
}

// write writes files to a folder, and replaces those that exist.
func write(dir string, files fs.FS) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	names, err := fs.Glob(files, "*")
	if err != nil {
		return err
	}
	for _, name := range names {
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compile writes the compressed WebAssembly, and Go's JavaScript for it, to a folder.
func compile(ctx context.Context, dir string) error {
	env, err := exec.CommandContext(ctx, "go", "env", "GOMOD", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	module, goroot, _ := strings.Cut(strings.TrimSpace(string(env)), "\n")
	root := filepath.Dir(module)
	support, err := os.ReadFile(filepath.Join(goroot, "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return err
	}
	err = os.WriteFile(filepath.Join(dir, "wasm_exec.js"), support, 0o644)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "playground")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	overlay := filepath.Join(temp, "overlay.json")
	err = writeOverlay(overlay, root, goroot)
	if err != nil {
		return err
	}
	code := filepath.Join(temp, "collyrobots.wasm")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-overlay="+overlay, "-ldflags=-s -w", "-o", code, "./internal/wasm")
	cmd.Dir = filepath.Join(root, "cmd", "collyrobots")
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	cmd.Stderr = os.Stderr
	err = cmd.Run()
	if err != nil {
		return fmt.Errorf("go build in %s: %w", cmd.Dir, err)
	}
	return compress(filepath.Join(dir, "collyrobots.wasm.gz"), code)
}

// replaced are the packages of the standard library that the WebAssembly does not contain. A small
// package in playground/internal/std takes the place of each. They make the WebAssembly smaller by
// a third: net/http has 1.7 MB, of which the page uses nothing, and regexp has 0.5 MB, of which
// temoto/robotstxt uses the wildcard.
var replaced = []string{"net/http", "regexp"}

// writeOverlay writes the file for the flag -overlay of go build that replaces these packages.
func writeOverlay(name, root, goroot string) error {
	var overlay struct{ Replace map[string]string }
	overlay.Replace = make(map[string]string)
	for _, pkg := range replaced {
		files, err := fs.Glob(os.DirFS(goroot), path.Join("src", pkg, "*.go"))
		if err != nil {
			return err
		}
		for _, file := range files {
			overlay.Replace[filepath.Join(goroot, file)] = "" // go build ignores the file
		}
		own := path.Join(pkg, path.Base(pkg)+".go")
		overlay.Replace[filepath.Join(goroot, "src", own)] = filepath.Join(root, "playground", "internal", "std", own)
	}
	content, err := json.Marshal(overlay)
	if err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644)
}

// compress writes a compressed copy of the file from.
func compress(name, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	_, err = w.Write(content)
	err = errors.Join(err, w.Close())
	if err != nil {
		return err
	}
	return os.WriteFile(name, packed.Bytes(), 0o644)
}
