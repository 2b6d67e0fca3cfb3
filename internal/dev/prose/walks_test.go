package prose_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A hop of a walk is a file with one or more functions in it: `a/b.go` `One`, `Two`.
var hop = regexp.MustCompile("`([a-z0-9_/.-]+\\.go)` ((?:`[A-Za-z]+`(?:, )?)+)")

// The walks of ARCHITECTURE.md name functions where they are.
func TestWalks(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}

	hops := hop.FindAllStringSubmatch(string(text), -1)
	if len(hops) < 30 {
		t.Errorf("%d hops were found; want three walks of ten or more", len(hops))
	}
	for _, h := range hops {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, h[1]), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Error(err)
			continue
		}

		declared := make(map[string]bool)
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				declared[fn.Name.Name] = true
			}
		}
		for name := range strings.SplitSeq(h[2], ", ") {
			if name = strings.Trim(name, "` "); name != "" && !declared[name] {
				t.Errorf("ARCHITECTURE.md: %s has no function %s", h[1], name)
			}
		}
	}
}
