// Package input reads the arguments of commands: lists of items from files, hosts and URLs of sites,
// and the values of flags that several commands have.
package input

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/readings"
	"github.com/collyrobots/collyrobots/cmd/collyrobots/internal/term"
	"github.com/collyrobots/collyrobots/dialect"
)

// longestLine is the maximum length of a line of a list, in bytes.
const longestLine = 1 << 20

// Open opens a file, or standard input if the name is "-".
func Open(name string, stdin io.Reader) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(stdin), nil
	}
	return os.Open(name)
}

// List reads a list, one item in a line, from a file, or from standard input if the name is "-". Blank
// lines and lines that begin with # are omitted, and so are byte order marks.
func List(name string, stdin io.Reader) (items []string, err error) {
	in, err := Open(name, stdin)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if name == "-" {
		name = "standard input"
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		text := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if text != "" && text[0] != '#' {
			items = append(items, text)
		}
	}
	err = lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("%s: a line has more than %d bytes", name, longestLine)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return items, nil
}

// Arguments returns the arguments of a command and the items of the list from, if that is not
// empty. Flags after the first argument are an error.
func Arguments(args []string, from string, stdin io.Reader) ([]string, error) {
	for _, arg := range args {
		if len(arg) > 1 && arg[0] == '-' {
			return nil, fmt.Errorf("%s: flags must come before the arguments", term.Safe(arg))
		}
	}
	if from == "" {
		return args, nil
	}
	items, err := List(from, stdin)
	return append(slices.Clone(args), items...), err
}

// Sites is like Arguments for arguments that are sites or URLs, of which there must be at least one. The
// argument - stands for the list on standard input.
func Sites(args []string, from string, stdin io.Reader) ([]string, error) {
	items, err := Arguments(args, from, stdin)
	if err != nil {
		return nil, err
	}
	if at := slices.Index(items, "-"); at >= 0 {
		if from == "-" || slices.Contains(items[at+1:], "-") {
			return nil, errors.New("- is given twice, but standard input has one list only")
		}
		list, err := List("-", stdin)
		if err != nil {
			return nil, err
		}
		items = slices.Replace(slices.Clone(items), at, at+1, list...)
	}
	if len(items) == 0 {
		return nil, errors.New("no URL given; -h prints the usage")
	}
	return items, nil
}

// URL returns the URL of a page for an argument. An argument without a scheme is a host, perhaps
// with a path, and means https.
func URL(arg string) (string, error) {
	text := arg
	if !strings.Contains(text, "://") && !strings.Contains(text, "@") { // an address of mail has no scheme
		text = "https://" + text
	}
	_, err := webURL(text, arg)
	if err != nil {
		return "", err
	}
	return text, nil
}

// WebURL parses the URL of a web page. The error says why no request can be sent to it.
func WebURL(text string) (*url.URL, error) { return webURL(text, text) }

// webURL is like WebURL. The error has the URL as the user has written it.
func webURL(text, written string) (*url.URL, error) {
	u := readings.SentURL(text)
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.ContainsAny(u.Host, " \t,;\"'<>()!?*") {
		return nil, fmt.Errorf(`"%.200s" is not a host or a URL of a web page, such as https://example.com/`, term.Safe(written))
	}
	_, err := dialect.AuthorityOf(u)
	var unusable *dialect.URLError
	if errors.As(err, &unusable) {
		return nil, fmt.Errorf("no request can be sent to %.200s: %s", term.Safe(written), unusable.Reason)
	}
	return u, err
}

// IsFile reports whether an argument is the name of a file and not of a host: a file with this name
// exists, or the argument looks like a path.
func IsFile(arg string) bool {
	if strings.Contains(arg, "://") {
		return false
	}
	_, err := os.Stat(arg)
	return err == nil || strings.HasPrefix(arg, "/") || strings.HasPrefix(arg, ".") || strings.HasSuffix(arg, ".txt")
}
