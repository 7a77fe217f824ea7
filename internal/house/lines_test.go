package house

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// lines is a number of lines of Go: those of the product, and those of its tests.
type lines struct {
	product, tests int
}

// budget is how many lines each module may have. Lower a number when the module has become smaller.
// A commit that raises a number says what the lines buy.
var budget = map[string]lines{
	".":                   {product: 54950, tests: 65950},
	".ci/tools":           {product: 1000, tests: 300},
	"audit":               {product: 4350, tests: 5850},
	"cmd/collyrobots":     {product: 11050, tests: 7500},
	"examples/more":       {product: 900, tests: 700},
	"frontier":            {product: 3550, tests: 2850},
	"hostqueue":           {product: 1600, tests: 1800},
	"internal/benchmarks": {product: 800, tests: 2500},
	"internal/interop":    {product: 200, tests: 2750},
	"metrics/robotsotel":  {product: 600, tests: 1000},
	"metrics/robotsprom":  {product: 200, tests: 700},
	"store/redisstore":    {product: 1050, tests: 2350},
}

// TestLines prints how many lines each module has, as wc -l counts them, and checks that no module
// has more than its budget.
func TestLines(t *testing.T) {
	var sum lines
	counted := countLines(t)
	for _, module := range slices.Sorted(maps.Keys(counted)) {
		have, most := counted[module], budget[module]
		t.Logf("%-20s product %6d of %6d, tests %6d of %6d", module, have.product, most.product, have.tests, most.tests)
		if have.product > most.product || have.tests > most.tests {
			t.Errorf("%s has %+v lines, its budget is %+v: make it smaller, or say in the commit what the lines buy", module, have, most)
		}
		sum.product += have.product
		sum.tests += have.tests
	}
	t.Logf("%-20s product %6d, tests %6d", "all", sum.product, sum.tests)
	for module := range budget {
		if _, ok := counted[module]; !ok {
			t.Errorf("there is a budget for %s, which is no module", module)
		}
	}
}

// countLines returns the lines of each module.
func countLines(t *testing.T) map[string]lines {
	t.Helper()
	folders := modulesOf(t)
	counted := make(map[string]lines)
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(skippedFolders, entry.Name()):
			return fs.SkipDir
		case filepath.Ext(name) != ".go":
			return nil
		}
		text, err := os.ReadFile(name)
		module := moduleOf(folders, filepath.ToSlash(name))
		of := counted[module]
		if strings.HasSuffix(name, "_test.go") {
			of.tests += bytes.Count(text, []byte("\n"))
		} else {
			of.product += bytes.Count(text, []byte("\n"))
		}
		counted[module] = of
		return err
	})
	must(t, err)
	return counted
}
