package main

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
)

// Code is what was counted in a folder.
type Code struct {
	Functions []int // lines of each function and method, from its declaration to its last brace, in ascending order
	Files     []int // lines of each file, in ascending order
	Exported  int   // names that other packages can use: functions, methods of exported types, types, constants, variables
	Explained int   // those of them that have a comment
	Long      int   // functions of LongFrom lines or more
	Unbroken  int   // those of them without a blank line
	Silent    int   // those of them without a comment inside
	Private   int   // distinct names of functions and methods that other packages cannot use
	OneWord   int   // those of them that are one word: without a capital letter or an underscore

	Packages []Package // the largest first
	Types    []Type    // those with methods, the largest first
}

// LongFrom is how many lines a function has that ought to have paragraphs.
const LongFrom = 20

// A Package is a folder with Go files.
type Package struct {
	Path  string // below the folder that was measured, with slashes
	Lines int
}

// A Type is a type with its methods.
type Type struct {
	Package string // its path, as in Package
	Name    string
	Methods int
	Lines   int // of its methods
}

// Folder measures all packages in a folder and below it.
func Folder(dir string) (Code, error) {
	m := newMeter()
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && isLeftOut(entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}

		source, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		return m.addFile(name, source)
	})

	return m.code(), err
}

// isLeftOut reports whether a folder holds no code of the project, as the go
// command has it.
func isLeftOut(folder string) bool {
	return folder == "vendor" || folder == "testdata" || folder != "." && (folder[0] == '.' || folder[0] == '_')
}

// A meter adds up what the files of a folder have.
type meter struct {
	counted  Code
	private  map[string]bool // names of functions and methods
	packages map[string]*Package
	types    map[typeKey]*Type
}

type typeKey struct{ folder, name string }

func newMeter() *meter {
	return &meter{private: make(map[string]bool), packages: make(map[string]*Package), types: make(map[typeKey]*Type)}
}

func (m *meter) addFile(name string, source []byte) error {
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(file) {
		return nil
	}

	folder, lines := path.Dir(name), positions.File(file.FileStart).LineCount()
	m.counted.Files = append(m.counted.Files, lines)
	if m.packages[folder] == nil {
		m.packages[folder] = &Package{Path: folder}
	}
	m.packages[folder].Lines += lines

	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			lines := positions.Position(d.End()).Line - positions.Position(d.Pos()).Line + 1
			m.addFunction(folder, d, lines)
			if lines >= LongFrom && d.Body != nil {
				m.addLong(file, d, source[positions.Position(d.Body.Lbrace).Offset:positions.Position(d.Body.Rbrace).Offset])
			}
		case *ast.GenDecl:
			m.addNames(d)
		}
	}
	return nil
}

func (m *meter) addFunction(folder string, f *ast.FuncDecl, lines int) {
	m.counted.Functions = append(m.counted.Functions, lines)
	of := receiver(f)
	if of != "" {
		key := typeKey{folder, of}
		if m.types[key] == nil {
			m.types[key] = &Type{Package: folder, Name: of}
		}
		m.types[key].Methods++
		m.types[key].Lines += lines
	}

	switch name := f.Name.Name; {
	case ast.IsExported(name):
		if of == "" || ast.IsExported(of) {
			m.addExported(f.Doc)
		}
	case name == "_" || of == "" && (name == "main" || name == "init"): // the language has named them
	default:
		m.private[name] = true
	}
}

// addLong counts whether a long function, whose body has a text, has paragraphs and comments.
func (m *meter) addLong(file *ast.File, f *ast.FuncDecl, body []byte) {
	m.counted.Long++
	if !hasBlankLine(body) {
		m.counted.Unbroken++
	}
	if !slices.ContainsFunc(file.Comments, func(c *ast.CommentGroup) bool { return f.Body.Lbrace < c.Pos() && c.End() <= f.Body.Rbrace }) {
		m.counted.Silent++
	}
}

// hasBlankLine reports whether a line within text is blank.
func hasBlankLine(text []byte) bool {
	lines := bytes.Split(text, []byte("\n"))
	return slices.ContainsFunc(lines[1:max(1, len(lines)-1)], func(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 })
}

// receiver returns the name of the type that a method is of, or nothing.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return ""
	}

	t := f.Recv.List[0].Type
	// Parentheses, a pointer and type parameters stand around the name.
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// addNames counts the types, constants and variables of a declaration. A comment
// explains what it stands above or beside; one above a group explains all of it.
func (m *meter) addNames(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				m.addExported(s.Doc, s.Comment, d.Doc)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if name.IsExported() {
					m.addExported(s.Doc, s.Comment, d.Doc)
				}
			}
		}
	}
}

func (m *meter) addExported(comments ...*ast.CommentGroup) {
	m.counted.Exported++
	if slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return c.Text() != "" }) {
		m.counted.Explained++
	}
}

// code returns what was counted, in order.
func (m *meter) code() Code {
	c := m.counted
	slices.Sort(c.Functions)
	slices.Sort(c.Files)

	for name := range m.private {
		c.Private++
		if isOneWord(name) {
			c.OneWord++
		}
	}

	for _, p := range m.packages {
		c.Packages = append(c.Packages, *p)
	}
	slices.SortFunc(c.Packages, func(a, b Package) int {
		return cmp.Or(cmp.Compare(b.Lines, a.Lines), cmp.Compare(a.Path, b.Path))
	})

	// In one order, as the sort by methods keeps it for types that are equal.
	for _, key := range slices.SortedFunc(maps.Keys(m.types), func(a, b typeKey) int {
		return cmp.Or(cmp.Compare(a.folder, b.folder), cmp.Compare(a.name, b.name))
	}) {
		c.Types = append(c.Types, *m.types[key])
	}
	slices.SortStableFunc(c.Types, func(a, b Type) int { return cmp.Compare(b.Methods, a.Methods) })
	return c
}

// isOneWord reports whether no second word begins in a name.
func isOneWord(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return unicode.IsUpper(r) || r == '_' })
}

// Quantile returns the number behind the share q, from 0 to 1, of all numbers, which
// are in ascending order. The last number is behind all of them, and 0 behind none.
func Quantile(numbers []int, q float64) int {
	if len(numbers) == 0 {
		return 0
	}
	return numbers[min(int(q*float64(len(numbers))), len(numbers)-1)]
}
