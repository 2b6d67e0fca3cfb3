package prose_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/prose"
)

// each calls fn with every file of the repository that has an extension.
func each(t *testing.T, extension string, fn func(path string, content []byte) error) {
	t.Helper()
	root := filepath.Join("..", "..", "..")
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(name, ".") && path != root || name == "bin" || name == "testdata" || name == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != extension:
			return nil
		}
		files++
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return fn(path, content)
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 20 {
		t.Errorf("only %d files were looked at", files)
	}
}

// Every document of the repository does without the words of the list.
func TestDocuments(t *testing.T) {
	each(t, ".md", func(path string, content []byte) error {
		found, err := prose.Check(path, string(content))
		for _, line := range found {
			t.Error(line)
		}
		return err
	})
}

// lexicon lists words for comparing statements; nobody reads it as a text.
const lexicon = "internal/text/claims/words.go"

// So does everything that the program may print: each text of its code with several words.
func TestTextsOfTheProgram(t *testing.T) {
	files := token.NewFileSet()
	each(t, ".go", func(path string, content []byte) error {
		if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".pb.go") || filepath.ToSlash(path) == "../../../"+lexicon {
			return nil
		}
		file, err := parser.ParseFile(files, path, content, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil || len(strings.Fields(text)) < 4 {
				return true
			}
			found, err := prose.Check(files.Position(lit.Pos()).String(), text)
			if err != nil {
				t.Error(err)
			}
			for _, line := range found {
				t.Error(line)
			}
			return true
		})
		return nil
	})
}

func TestCheck(t *testing.T) {
	found, err := prose.Check("a.md", "In order\nto see it,\n`utilize` the \"robust\" way.\n\n```\nleverage\n```\nSimply put: e.g. this.\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`a.md:1: "in order to"; write: to`, `a.md:8: "simply"; write: nothing`, `a.md:8: "e.g."; write: for example`}
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}
