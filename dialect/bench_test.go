package dialect_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/collyrobots/collyrobots/dialect"
	"github.com/temoto/robotstxt"
)

// The benchmarks compare the package with temoto/robotstxt, which Colly uses, and with a bare
// search for line ends. Only compare results of the same run.

// realFiles returns the files of the corpus if it is available. Otherwise it returns generated
// files of similar sizes. The median file has 560 bytes and nine rules for *.
func realFiles(tb testing.TB) [][]byte {
	names, _ := filepath.Glob(filepath.Join("..", "..", "shared", "corpus", "*__*"))
	var files [][]byte
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		files = append(files, data)
	}
	if len(files) == 0 {
		for i := range 50 {
			files = append(files, literalFile(3+i/6), literalFile(40+i))
		}
	}
	return files
}

func totalSize(files [][]byte) (n int64) {
	for _, f := range files {
		n += int64(len(f))
	}
	return n
}

func literalFile(n int) []byte {
	var b bytes.Buffer
	b.WriteString("User-agent: *\n")
	for i := range n {
		fmt.Fprintf(&b, "Disallow: /directory%d/page\n", i*7919%100_000)
	}
	b.WriteString("Allow: /public/\n")
	return b.Bytes()
}

func wildcardFile(n int) []byte {
	var b bytes.Buffer
	b.WriteString("User-agent: *\n")
	for i := range n {
		switch i % 3 {
		case 0:
			fmt.Fprintf(&b, "Disallow: /*?param%d=\n", i)
		case 1:
			fmt.Fprintf(&b, "Disallow: /*/dir%d/*.html$\n", i)
		case 2:
			fmt.Fprintf(&b, "Disallow: /shop%d/*sort=\n", i)
		}
	}
	return b.Bytes()
}

// similarFile has literal rules that differ only in a few bytes in the middle.
func similarFile(n int) []byte {
	var b bytes.Buffer
	b.WriteString("User-agent: *\n")
	for i := range n {
		fmt.Fprintf(&b, "Disallow: /section%d/\n", 10_000+i*7919%90_000)
	}
	return b.Bytes()
}

// headFile has rules with a wildcard. The literal text before the wildcard is different for each
// rule.
func headFile(n int) []byte {
	var b bytes.Buffer
	b.WriteString("User-agent: *\n")
	for i := range n - 1 {
		fmt.Fprintf(&b, "Disallow: /section%d/*sort=\n", 10_000+i*7919%90_000)
	}
	b.WriteString("Disallow: /section7/*sort=\n") // the least specific rule
	return b.Bytes()
}

const benchTarget = "/directory/products/shoes/leather-boots?page=3"

func BenchmarkParse(b *testing.B) {
	files := realFiles(b)
	b.Run("scan", func(b *testing.B) {
		b.SetBytes(totalSize(files))
		for b.Loop() {
			for _, f := range files {
				lines = 0
				for i := bytes.IndexByte(f, '\n'); i >= 0; i = bytes.IndexByte(f, '\n') {
					f = f[i+1:]
					lines++
				}
			}
		}
	})
	for _, d := range published {
		b.Run(d.String(), func(b *testing.B) {
			b.SetBytes(totalSize(files))
			b.ReportAllocs()
			for b.Loop() {
				for _, f := range files {
					d.Parse(f)
				}
			}
		})
	}
	b.Run("temoto", func(b *testing.B) {
		b.SetBytes(totalSize(files))
		b.ReportAllocs()
		for b.Loop() {
			for _, f := range files {
				_, _ = robotstxt.FromBytes(f)
			}
		}
	})
}

var lines int

// BenchmarkFirstDecision parses files of about the median size and makes one decision for each.
func BenchmarkFirstDecision(b *testing.B) {
	files := realFiles(b)
	slices.SortFunc(files, func(x, y []byte) int { return len(x) - len(y) })
	files = files[len(files)*4/10 : len(files)*6/10]
	b.Run("rfc9309", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, f := range files {
				dialect.RFC9309().Parse(f).Group("ExampleBot").Decide(benchTarget)
			}
		}
	})
	b.Run("temoto", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, f := range files {
				if data, err := robotstxt.FromBytes(f); err == nil {
					data.FindGroup("ExampleBot").Test(benchTarget)
				}
			}
		}
	})
}

// BenchmarkForeignGroups parses the same number of bytes with one group and with a thousand groups.
func BenchmarkForeignGroups(b *testing.B) {
	group := "User-agent: Foreign%c%c\nDisallow: /a/b/c\nDisallow: /d/e/f/g\n\n"
	var many, one strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, group, 'a'+i/26%26, 'a'+i%26)
	}
	one.WriteString("User-agent: *\n")
	for one.Len() < many.Len() {
		one.WriteString("Disallow: /a/b/c/d/e\n")
	}
	for name, file := range map[string]string{"one": one.String(), "thousand": many.String()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			for b.Loop() {
				dialect.RFC9309().Parse([]byte(file)).Group("ExampleBot")
			}
		})
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, kind := range []struct {
		name, target string
		file         func(int) []byte
	}{
		{"literal", benchTarget, literalFile},
		{"literal similar", "/section10042/shoes?page=3", similarFile},
		{"wildcard", benchTarget, wildcardFile},
		{"head", benchTarget, headFile},
		{"head similar", "/section10042/shoes?page=3&sort=price", headFile},
		{"head matched", "/section7/shoes?page=3&sort=price", headFile}, // by the last rule
	} {
		for _, n := range []int{1, 10, 1000, 10_000} {
			file := kind.file(n)
			b.Run(fmt.Sprintf("%s/%d/rfc9309", kind.name, n), func(b *testing.B) {
				benchmarkDecide(b, dialect.RFC9309().Parse(file).Group("ExampleBot"), kind.target)
			})
			b.Run(fmt.Sprintf("%s/%d/temoto", kind.name, n), func(b *testing.B) {
				data, err := robotstxt.FromBytes(file)
				if err != nil {
					b.Fatal(err)
				}
				group := data.FindGroup("ExampleBot")
				for b.Loop() {
					group.Test(kind.target)
				}
			})
		}
	}
}

func benchmarkDecide(b *testing.B, group *dialect.Group, target string) {
	b.ReportAllocs()
	for b.Loop() {
		group.Decide(target)
	}
}

// hostileFiles are files of 500 KiB that are as expensive as possible.
func hostileFiles() map[string][]byte {
	fill := func(line func(i int) string) []byte {
		b := []byte("User-agent: *\n")
		for i := 0; len(b) < dialect.SizeLimit; i++ {
			b = append(b, line(i)...)
		}
		return b[:dialect.SizeLimit]
	}
	return map[string][]byte{
		"stars":       fill(func(int) string { return "Disallow: /*a*a*a*a*a*b\n" }),
		"stars apart": fill(func(i int) string { return fmt.Sprintf("Disallow: /*a*a*a*a*a*b%d\n", i) }),
		"binary": fill(func(i int) string {
			return "Disallow: /*b*" + strings.NewReplacer("0", "a*", "1", "aa*").Replace(fmt.Sprintf("%b", i)) + "ab\n"
		}),
		"present":      fill(func(i int) string { return fmt.Sprintf("Disallow: /*a*aaaaaaa*ab*%d\n", i) }),
		"long pieces":  fill(func(i int) string { return fmt.Sprintf("Disallow: /*aaaaaaaaaaaaaaaaaaaaaaaaaaaab%d\n", i) }),
		"nested":       fill(func(i int) string { return "Disallow: /" + strings.Repeat("a", i) + "\n" }),
		"nested stars": fill(func(i int) string { return "Disallow: /" + strings.Repeat("a", i%1000) + "*b\n" }),
		"same heads":   fill(func(i int) string { return fmt.Sprintf("Disallow: /aaaa*a*%d\n", i) }),
		"many heads":   fill(func(i int) string { return "Disallow: /" + strings.Repeat("a", i%100) + "*b*c\n" }),
		"one pattern":  []byte("User-agent: *\nDisallow: /" + strings.Repeat("*a", dialect.SizeLimit/2-20) + "b\n"),
		"escapes":      fill(func(i int) string { return fmt.Sprintf("Disallow: /*%%2F%%2f\xE9%d\n", i) }),
		"short":        fill(func(i int) string { return fmt.Sprintf("Disallow: /%x\n", i) }),
		"empty":        fill(func(int) string { return "Allow:\n" }),
		"agents":       fill(func(int) string { return "User-agent:a\n" }),
		"breaks":       fill(func(int) string { return "\r" }),
		"mixed breaks": fill(func(int) string { return "\r\n\n\r" }),
		"colons":       fill(func(int) string { return "a:" }),
		"hashes":       fill(func(int) string { return "Disallow: /####\n" }),
		"sitemaps":     fill(func(int) string { return "Sitemap: http://a\n" }),
		"blanks":       fill(func(int) string { return "Disallow                   \n" }),
	}
}

var hostileTarget = "/" + strings.Repeat("a", 1000) + "b" + strings.Repeat("a", 999)

func BenchmarkHostile(b *testing.B) {
	for name, file := range hostileFiles() {
		for _, d := range []dialect.Dialect{dialect.RFC9309(), dialect.Google()} {
			b.Run(fmt.Sprintf("parse/%s/%v", name, d), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					d.Parse(file).Group("ExampleBot").Decide(hostileTarget)
				}
			})
			group := d.Parse(file).Group("ExampleBot")
			b.Run(fmt.Sprintf("decide/%s/%v", name, d), func(b *testing.B) {
				benchmarkDecide(b, group, hostileTarget)
			})
		}
	}
}
