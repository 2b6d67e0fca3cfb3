package prose_test

import (
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/coditect/mapreduce/"

var quoted = regexp.MustCompile("`([^`]+)`")

// tableRows returns the row of each package that the table of ARCHITECTURE.md names. The
// first name of a row is whole, and others may begin with a slash, or have none: they are
// beside the first.
func tableRows(t *testing.T, root string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| package | holds | |\n|---|---|---|\n")
	if !found {
		t.Fatal("ARCHITECTURE.md has no table of packages")
	}
	rows := make(map[string]int)
	for row, line := range strings.Split(table, "\n") {
		if !strings.HasPrefix(line, "| ") {
			break
		}
		names := quoted.FindAllStringSubmatch(strings.Split(line, "|")[1], -1)
		first := strings.TrimSuffix(names[0][1], "/…")
		rows[first] = row
		for _, n := range names[1:] {
			name := n[1]
			if !strings.Contains(strings.TrimPrefix(name, "/"), "/") {
				name = path.Join(path.Dir(first), name)
			}
			rows[name] = row
		}
	}
	return rows
}

// rowOf returns the row of a package, or that of the package it is below.
func rowOf(rows map[string]int, name string) (row int, found bool) {
	for ; name != "."; name = path.Dir(name) {
		if row, found = rows[name]; found {
			return row, true
		}
	}
	return 0, false
}

// ARCHITECTURE.md says that imports point down its table, and names each package in it.
func TestImportsPointDownTheTable(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	rows := tableRows(t, root)
	checked := 0
	each(t, ".go", func(file string, content []byte) error {
		rel, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		from := filepath.ToSlash(rel)
		if top, _, _ := strings.Cut(from, "/"); strings.HasPrefix(from, "internal/dev/") || top == "deploy" || top == "examples" || top == ".ci" || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		row, found := rowOf(rows, from)
		if !found {
			t.Errorf("%s is in no row of the table", from)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, content, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			to, ours := strings.CutPrefix(name, module)
			if !ours {
				continue
			}
			checked++
			if below, found := rowOf(rows, to); !found || below < row {
				t.Errorf("%s imports %s, which does not stand below it in the table", file, to)
			}
		}
		return nil
	})
	if checked < 1000 {
		t.Errorf("%d imports were found; want over a thousand", checked)
	}
	for name := range rows {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Errorf("the table names a package that is not there: %v", err)
		}
	}
}
