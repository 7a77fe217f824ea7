package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/version"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// use is a program that uses the published modules.
//
//go:embed testdata/use/main.go
var use []byte

// prove builds a program for each module that requires only this module. It also builds and runs a
// program that requires all modules, and installs and runs the programs of the modules. If load is
// true, it only downloads the modules and loads their packages: it compiles and runs nothing.
func prove(modules []*mod, load bool) (err error) {
	tmp, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer func() {
		if e := os.RemoveAll(tmp); err == nil {
			err = e
		}
	}()
	for _, m := range modules {
		if err := serve(filepath.Join(tmp, "proxy"), m); err != nil {
			return fmt.Errorf("%s: %w", m.path, err)
		}
	}
	env, err := environment(tmp, modules)
	if err != nil {
		return err
	}
	for i, m := range modules {
		if len(m.packages) == 0 {
			continue
		}
		program := scratch{dir: filepath.Join(tmp, fmt.Sprint("alone", i)), requires: modules[i : i+1], env: env, load: load}
		if err := program.build(modules); err != nil {
			return fmt.Errorf("a program that requires only %s: %w", m.path, err)
		}
		fmt.Println("ok: a program can require", m.path, m.version)
	}
	all := scratch{dir: filepath.Join(tmp, "all"), requires: modules, env: env, load: load}
	if err := all.build(modules); err != nil {
		return fmt.Errorf("a program that requires all modules: %w", err)
	}
	if !load {
		if err := all.run(); err != nil {
			return fmt.Errorf("a program that uses all modules: %w", err)
		}
	}
	fmt.Println("ok: a program can require all modules")
	for _, m := range modules {
		for _, name := range m.programs {
			bin := scratch{dir: filepath.Join(tmp, "bin"), env: env, load: load}
			if err := bin.install(name, m.version); err != nil {
				return fmt.Errorf("go install %s: %w", name, err)
			}
			fmt.Printf("ok: go install %s@%s\n", name, m.version)
		}
	}
	return nil
}

// install installs a program into the folder of s, as users do, and runs its command version. The
// modules that it needs are in the module cache, or the go.sum files of this repository have their
// checksums, so the checksum database is not asked.
func (s scratch) install(name, version string) error {
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		return err
	}
	s.env = append(slices.Clip(s.env), "GOBIN="+s.dir, "GONOSUMDB=*")
	err := s.goCommand("install", name+"@"+version)
	if err != nil || s.load {
		return err
	}
	files, err := filepath.Glob(filepath.Join(s.dir, path.Base(name)+"*")) // Windows adds .exe
	if err != nil || len(files) != 1 {
		return fmt.Errorf("%v was installed, want one program: %w", files, err)
	}
	out, err := exec.Command(files[0], "version").Output()
	if want := path.Base(name) + " " + version + " "; err != nil || !strings.HasPrefix(string(out), want) {
		return fmt.Errorf("%s version prints %q (%v), want %q at its beginning", path.Base(name), out, err, want)
	}
	return nil
}

// serve adds m to the folder of a module proxy.
func serve(proxy string, m *mod) error {
	v := m.version
	path, err := module.EscapePath(m.path)
	if err != nil {
		return err
	}
	dir := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	goMod, err := m.published()
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := pack(&archive, m, v, goMod); err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"list": []byte(v + "\n"), v + ".info": fmt.Appendf(nil, `{"Version":%q}`, v), v + ".mod": goMod, v + ".zip": archive.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pack writes the zip file of version v of m with the given go.mod.
func pack(w io.Writer, m *mod, v string, goMod []byte) error {
	found, err := zip.CheckDir(m.dir)
	if err != nil {
		return err
	}
	var files []zip.File
	for _, file := range found.Valid {
		name, err := filepath.Rel(m.dir, file)
		if err != nil {
			return err
		}
		f := packed{name: filepath.ToSlash(name), file: file}
		if name == "go.mod" {
			f.text = goMod
		}
		files = append(files, f)
	}
	return zip.Create(w, module.Version{Path: m.path, Version: v}, files)
}

// packed is a zip.File.
type packed struct {
	name string // in the zip file
	file string
	text []byte // if set, the contents, instead of those of the file
}

func (p packed) Path() string { return p.name }

func (p packed) Lstat() (os.FileInfo, error) {
	info, err := os.Lstat(p.file)
	if err == nil && p.text != nil {
		info = sized{info, int64(len(p.text))}
	}
	return info, err
}

func (p packed) Open() (io.ReadCloser, error) {
	if p.text != nil {
		return io.NopCloser(bytes.NewReader(p.text)), nil
	}
	return os.Open(p.file)
}

// sized is the information about a file that has another size.
type sized struct {
	os.FileInfo
	size int64
}

func (s sized) Size() int64 { return s.size }

// environment returns the environment of the go command. It has a module cache of its own, which is
// filled from the folder of the proxy, then from the module cache of this machine, and only then
// from the network.
func environment(tmp string, modules []*mod) ([]string, error) {
	out, err := exec.Command("go", "env", "GOPROXY", "GOMODCACHE", "GONOSUMDB").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	known := strings.Split(string(out), "\n")
	proxies := []string{fileURL(filepath.Join(tmp, "proxy")), fileURL(filepath.Join(known[1], "cache", "download")), known[0]}
	var own []string // these modules are not in a checksum database
	for _, m := range modules {
		own = append(own, m.path)
	}
	if known[2] != "" {
		own = append(own, known[2])
	}
	return append(os.Environ(), "GOWORK=off", "GOMODCACHE="+filepath.Join(tmp, "cache"),
		"GOPROXY="+strings.Join(proxies, ","), "GONOSUMDB="+strings.Join(own, ","), "GOPRIVATE="), nil
}

func fileURL(dir string) string {
	return "file:///" + strings.TrimPrefix(filepath.ToSlash(dir), "/")
}

// scratch is another module, which requires some modules of this repository.
type scratch struct {
	dir      string
	requires []*mod
	env      []string
	load     bool // load packages, but compile nothing
}

// build writes the module and builds it. Its program imports every package of the required modules.
// The checksums of other modules are those in this repository.
func (s scratch) build(modules []*mod) error {
	goVersion := ""
	for _, m := range s.requires {
		if v := m.file.Go; v != nil && version.Compare("go"+v.Version, "go"+goVersion) > 0 {
			goVersion = v.Version
		}
	}
	goMod := fmt.Sprintf("module example.com/scratch\n\ngo %s\n", goVersion)
	imports := "package main\n\nimport (\n"
	for _, m := range s.requires {
		goMod += fmt.Sprintf("\nrequire %s %s\n", m.path, m.version)
		for _, name := range m.packages {
			imports += fmt.Sprintf("\t_ %q\n", name)
		}
	}
	main := []byte("package main\n\nfunc main() {}\n")
	if len(s.requires) == len(modules) {
		main = use
	}
	sums, err := checksums(modules)
	if err != nil {
		return err
	}
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		return err
	}
	for name, data := range map[string][]byte{"go.mod": []byte(goMod), "go.sum": sums, "imports.go": []byte(imports + ")\n"), "main.go": main} {
		if err := os.WriteFile(filepath.Join(s.dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return s.goCommand("build", "-mod=mod", "-buildvcs=false", "-o", s.program(), ".")
}

// goCommand runs go build or go install. With -trimpath, the build cache can be used although the
// module cache is in another folder each time.
func (s scratch) goCommand(verb string, args ...string) error {
	flags := []string{verb, "-modcacherw", "-trimpath"}
	if s.load {
		flags = append(flags, "-n")
	}
	return s.command("go", append(flags, args...)...)
}

func (s scratch) program() string { return filepath.Join(s.dir, "program.exe") }

func (s scratch) run() error { return s.command(s.program()) }

func (s scratch) command(name string, args ...string) error {
	c := exec.Command(name, args...)
	c.Dir, c.Env = s.dir, s.env
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return nil
}

// checksums returns the lines of all go.sum files, each once.
func checksums(modules []*mod) ([]byte, error) {
	var lines []string
	for _, m := range modules {
		sums, err := os.ReadFile(filepath.Join(m.dir, "go.sum"))
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		lines = slices.AppendSeq(lines, strings.Lines(string(sums)))
	}
	slices.Sort(lines)
	return []byte(strings.Join(slices.Compact(lines), "")), nil
}
