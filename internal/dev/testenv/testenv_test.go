package testenv_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// The Makefile reads sources line by line, from a line with the name of a test to the next: it
// finds what a test says of itself, and not what a function says that the test calls.
func TestTestsSayItThemselves(t *testing.T) {
	calls := 0
	forEachTestFile(t, func(name string, file *ast.File) {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			said := callsOfTestenv(f)
			calls += len(said)
			if len(said) > 0 && (f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test")) {
				t.Errorf("%s: %s calls testenv.%s; the tests that call it are to call that themselves", name, f.Name.Name, said[0])
			}
		}
	})
	if calls < 100 {
		t.Errorf("%d calls were found; were all files looked at?", calls)
	}
}

// forEachTestFile parses the files of tests of the project, but for those here.
func forEachTestFile(t *testing.T, look func(name string, file *ast.File)) {
	t.Helper()

	root := filepath.Join("..", "..", "..")
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == "testdata" || e.Name() == "testenv" || e.Name() == "bin" || e.Name() == ".git") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}

		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			look(path, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// callsOfTestenv returns the names of this package's functions that a function calls.
func callsOfTestenv(f *ast.FuncDecl) (names []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		s, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if p, ok := s.X.(*ast.Ident); ok && p.Name == "testenv" {
			names = append(names, s.Sel.Name)
		}
		return true
	})
	return names
}

// Without -short everything runs; with it a variant has one pass, and what is long none.
func TestPassesOfTests(t *testing.T) {
	if !testing.Short() {
		if !testenv.VariantRuns(true) || !testenv.VariantRuns(false) {
			t.Error("without -short, a variant does not run")
		}
	} else if testenv.VariantRuns(true) == testenv.VariantRuns(false) {
		t.Error("with -short, a variant runs in both passes or in none")
	}

	lengthy := false
	t.Run("lengthy", func(t *testing.T) {
		testenv.Lengthy(t)
		lengthy = true
	})
	if lengthy == testing.Short() {
		t.Errorf("with -short %t a lengthy test runs: %t", testing.Short(), lengthy)
	}
}

func TestStormsThatAreAskedFor(t *testing.T) {
	t.Setenv("CODITECT_STORM_TRIALS", "7")
	if n := testenv.Storms(t, 2); n != 7 {
		t.Errorf("%d runs, and 7 were asked for", n)
	}

	t.Setenv("CODITECT_STORM_TRIALS", "")
	if n := testenv.Storms(t, 2); n != 1 && n != 2 {
		t.Errorf("%d runs, want 2, or one with the race detector", n)
	}
}
