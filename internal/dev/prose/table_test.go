package prose_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/coditect/mapreduce/"

var tableRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// tableRows returns the row of each package that docs/packages.md names.
func tableRows(t *testing.T, root string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "packages.md"))
	if err != nil {
		t.Fatal(err)
	}

	rows := make(map[string]int)
	for row, match := range tableRow.FindAllStringSubmatch(string(text), -1) {
		rows[match[1]] = row
	}
	return rows
}

// docs/packages.md says that each package stands above those that it imports, and names each one.
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
		row, found := rows[from]
		if !found {
			t.Errorf("%s is in no row of docs/packages.md: run make generate", from)
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
			if below, found := rows[to]; !found || below <= row {
				t.Errorf("%s imports %s, which does not stand below it in docs/packages.md: run make generate", file, to)
			}
		}
		return nil
	})
	if checked < 1000 {
		t.Errorf("%d imports were found; want over a thousand", checked)
	}
	for name := range rows {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Errorf("docs/packages.md names a package that is not there: %v", err)
		}
	}
}
