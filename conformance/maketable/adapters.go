package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// adapters is the folder of the programs, relative to the folder conformance.
const adapters = "../internal/interop/adapters/"

// An adapter is a parser or a crawler. It is a row of the summary and a column of the other tables.
type adapter struct {
	name    string
	build   []string // a command that is run first, in the folder adapters
	version []string // a command that prints the version; it fails if the machine does not have the parser
	args    []string // the program; empty for our own code
}

func parsersIn(dir string) []adapter {
	protego := pythonWith("protego")
	return []adapter{
		{name: "collyrobots"},
		goAdapter(dir, "temoto", "github.com/temoto/robotstxt"),
		goAdapter(dir, "grobotstxt", "github.com/jimsmart/grobotstxt"),
		goAdapter(dir, "benjaminestes", "github.com/benjaminestes/robots"),
		goAdapter(dir, "samclarke", "github.com/samclarke/robotstxt"),
		{
			name:    "Python",
			version: []string{"python3", "--version"},
			args:    []string{"python3", adapters + "python/adapter.py"},
		},
		{
			name:    "Python (Pyodide)",
			version: []string{"node", adapters + "npm/pyodide.mjs", "version"},
			args:    []string{"node", adapters + "npm/pyodide.mjs"},
		},
		{
			name:    "Protego",
			version: []string{protego, "-c", "import importlib.metadata as m; print(m.version('protego'))"},
			args:    []string{protego, adapters + "python/protego_adapter.py"},
		},
		npmAdapter("robots-parser", "robots-parser", "robots-parser.js"),
		npmAdapter("robots-txt-parser", "robots-txt-parser", "robots-txt-parser.js"),
		npmAdapter("robots-txt-guard", "robots-txt-guard", "robots-txt-guard.js"),
		npmAdapter("robots (npm)", "robots", "robots.js"),
		npmAdapter("exclusion", "exclusion", "exclusion.mjs"),
		{
			name:    "WWW::RobotRules",
			version: []string{"perl", "-MWWW::RobotRules", "-e", "print $WWW::RobotRules::VERSION"},
			args:    []string{"perl", adapters + "perl/adapter.pl"},
		},
		{
			name:    "webrobots",
			version: []string{"ruby", "-e", "require 'webrobots'; print Webrobots::VERSION"},
			args:    []string{"ruby", adapters + "ruby/adapter.rb"},
		},
		googleAdapter(os.Getenv("GOOGLE_ROBOTS")),
	}
}

func crawlersIn(dir string) []adapter {
	colly := goAdapter(dir, "colly", "github.com/gocolly/colly/v2")
	colly.name = "Colly"
	scrapy := pythonWith("scrapy")
	return []adapter{
		{name: "collyrobots"},
		colly,
		{
			name:    "Python",
			version: []string{"python3", "--version"},
			args:    []string{"python3", adapters + "python/crawler.py"},
		},
		{
			name:    "Scrapy",
			version: []string{scrapy, "-c", "import scrapy; print(scrapy.__version__)"},
			args:    []string{scrapy, adapters + "python/scrapy_crawler.py"},
		},
		npmAdapter("Crawlee", "@crawlee/cheerio", "crawlee.js"),
		{
			name:    "LWP::RobotUA",
			version: []string{"perl", "-MLWP::RobotUA", "-e", "print $LWP::RobotUA::VERSION"},
			args:    []string{"perl", adapters + "perl/crawler.pl"},
		},
		linkCrawler("Wget", "wget", "--recursive", "--level=1", "--tries=2", "--waitretry=0", "--timeout=5", "--user-agent={agent}", "{page}"),
		linkCrawler("Wget2", "wget2", "--recursive", "--level=1", "--tries=2", "--waitretry=0", "--timeout=5", "--max-threads=1", "--user-agent={agent}", "{page}"),
	}
}

// goAdapter returns the adapter that is a Go program in the folder adapters.
func goAdapter(dir, name, module string) adapter {
	file := filepath.Join(dir, name)
	if runtime.GOOS == "windows" {
		file += ".exe"
	}
	return adapter{
		name:    name,
		build:   []string{"go", "build", "-o", file, "./" + name},
		version: []string{"go", "list", "-C", adapters, "-m", "-f", "{{.Version}}", module},
		args:    []string{file},
	}
}

// npmAdapter returns the adapter for a package of npm that a file in the folder npm uses.
func npmAdapter(name, pkg, file string) adapter {
	return adapter{
		name:    name,
		version: []string{"node", "-p", fmt.Sprintf("JSON.parse(fs.readFileSync('%snpm/node_modules/%s/package.json')).version", adapters, pkg)},
		args:    []string{"node", adapters + "npm/" + file},
	}
}

// linkCrawler returns the adapter for a crawler that is a command and follows the links of a page.
// links.py describes the arguments.
func linkCrawler(name string, command ...string) adapter {
	return adapter{
		name:    name,
		version: []string{command[0], "--version"},
		args:    append([]string{"python3", adapters + "python/links.py"}, command...),
	}
}

// googleAdapter returns the adapter for Google's program. It prints no version.
func googleAdapter(program string) adapter {
	return adapter{
		name:    "google/robotstxt",
		version: []string{"test", "-x", program},
		args:    []string{"python3", adapters + "google/adapter.py", program},
	}
}

// pythonWith returns the Python that has a module. On Debian, packages are installed for
// /usr/bin/python3, which may not be the first one in PATH.
func pythonWith(module string) string {
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(python, "-c", "import "+module).Run() == nil {
			return python
		}
	}
	return "python3"
}

// prepare builds the adapter and returns the version of its parser. It returns an error if this
// machine cannot run it.
func (a *adapter) prepare() (version string, err error) {
	if len(a.args) == 0 {
		return "", nil
	}
	out, err := outputOf(".", a.version)
	if err == nil && a.build != nil {
		_, err = outputOf(adapters, a.build)
	}
	return versionIn(out), err
}

// outputOf runs a command in a folder and returns its output. It sets GOWORK=off, because the
// adapters in Go are not in go.work.
func outputOf(dir string, command []string) (string, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var faults strings.Builder
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", command[0], err, faults.String())
	}
	return string(out), nil
}

var versions = regexp.MustCompile(`\d+(\.\d+)+(-\d+|(a|b|rc)\d+)?`)

// versionIn returns the first version number in a text. Of the version of a Go module without a
// release, it returns the day.
func versionIn(text string) string {
	v := versions.FindString(text)
	if day, ok := strings.CutPrefix(v, "0.0.0-"); ok && len(day) >= 8 {
		return day[:8]
	}
	return v
}
