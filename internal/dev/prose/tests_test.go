package prose_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest     = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
	namedPackage  = regexp.MustCompile("\\(`([a-z0-9/]+)`\\)$")
	declaredTests = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(t \*testing\.T\)`)
)

// testsOf returns the names of the tests of a package.
func testsOf(t *testing.T, name string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", filepath.FromSlash(name), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}

	all := make(map[string]bool)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range declaredTests.FindAllStringSubmatch(string(text), -1) {
			all[match[1]] = true
		}
	}
	return all
}

// What docs/page.md says that pages have is shown by tests, and these exist in the packages that it names.
func TestPageIsShownByTests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "page.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(text), "## What is there, and which test shows it")

	packages := make(map[string]map[string]bool)
	rows, tests := 0, 0
	for line := range strings.Lines(tables) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") || len(cells) < 3 || strings.TrimSpace(cells[0]) == "" || strings.HasPrefix(cells[0], "---") {
			continue
		}
		rows++
		here, shown := strings.TrimSpace(cells[len(cells)-2]), cells[len(cells)-1]

		named := 0
		for group := range strings.SplitSeq(shown, ";") {
			in := "api/dashboard"
			if match := namedPackage.FindStringSubmatch(strings.TrimSpace(group)); match != nil {
				in = match[1]
			}
			if packages[in] == nil {
				packages[in] = testsOf(t, in)
			}
			for _, match := range namedTest.FindAllStringSubmatch(group, -1) {
				named++
				if !packages[in][match[1]] {
					t.Errorf("%s is shown by %s, which is no test of %s", strings.TrimSpace(cells[0]), match[1], in)
				}
			}
		}

		tests += named
		if is := here != "–"; is != (named > 0) {
			t.Errorf("%s: %q, and %d tests are named", strings.TrimSpace(cells[0]), here, named)
		}
	}
	if rows < 28 || tests < 50 {
		t.Errorf("%d rows with %d tests were found", rows, tests)
	}
}
