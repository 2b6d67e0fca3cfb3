package prose_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

// A function may be a wall of fewer lines, or of fewer steps: a switch, a table, a loop.
const (
	longFunction = 20 // lines
	manySteps    = 6  // statements of its body
)

// CONTRIBUTING.md asks for paragraphs. A long function of many steps has a blank line
// between some of them.
func TestLongFunctionsHaveParagraphs(t *testing.T) {
	checked := 0
	each(t, ".go", func(file string, content []byte) error {
		positions := token.NewFileSet()
		parsed, err := parser.ParseFile(positions, file, content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if ast.IsGenerated(parsed) || strings.HasSuffix(file, "_test.go") {
			return nil
		}

		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil || len(f.Body.List) < manySteps {
				continue
			}
			begin, end := positions.Position(f.Body.Lbrace), positions.Position(f.Body.Rbrace)
			if end.Line-begin.Line+1 < longFunction {
				continue
			}

			checked++
			if !bytes.Contains(content[begin.Offset:end.Offset], []byte("\n\n")) {
				t.Errorf("%s: %s has %d lines and no paragraph: a blank line belongs between its steps", positions.Position(f.Pos()), f.Name.Name, end.Line-begin.Line+1)
			}
		}
		return nil
	})
	if checked < 1000 {
		t.Errorf("%d long functions were looked at; want over a thousand", checked)
	}
}
