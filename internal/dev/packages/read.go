package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/internal/dev/prose"
)

// A Package is a package of the project as its files say what it is. Tests are left out.
type Package struct {
	Path    string   // below the module, such as store/jobs
	Is      string   // the first sentence of its comment
	Imports []string // paths of the packages of the project that it imports, sorted
}

// Read returns the packages of a repository in its folder, sorted by path. It is an error if one
// has no comment, unless its files are generated.
func Read(root fs.FS) ([]Package, error) {
	found := make(map[string]*reading)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && isLeftOut(name):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		return readFile(root, name, found)
	})
	if err != nil {
		return nil, err
	}

	var all []Package
	var faults []error
	for _, p := range slices.Sorted(maps.Keys(found)) {
		r := found[p]
		if r.is == "" {
			faults = append(faults, fmt.Errorf("%s: no file has a package comment", p))
		}
		all = append(all, Package{Path: p, Is: r.is, Imports: slices.Sorted(maps.Keys(r.imports))})
	}
	return all, errors.Join(faults...)
}

// isLeftOut reports whether a folder holds no packages of the program: only what rooms have is
// listed, and no tools of development.
func isLeftOut(name string) bool {
	base := path.Base(name)
	if name == "." {
		return false
	}
	return strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules" || name == "bin" || name == "internal/dev" || roomOf(name) < 0 && name != "cmd"
}

// A reading is what has been read of a package.
type reading struct {
	is      string
	imports map[string]bool
}

// readFile adds what a file says of its package.
func readFile(root fs.FS, name string, found map[string]*reading) error {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}

	dir := path.Dir(name)
	r := found[dir]
	if r == nil {
		r = &reading{imports: make(map[string]bool)}
		found[dir] = r
	}

	if file.Doc != nil {
		r.is = firstSentence(file)
	} else if r.is == "" && ast.IsGenerated(file) {
		r.is = "generated from the .proto file beside it."
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		if ours, isOurs := strings.CutPrefix(imported, prose.Module); isOurs {
			r.imports[ours] = true
		}
	}
	return nil
}

// firstSentence returns the first sentence of the comment of a package, without the words
// "Package NAME" before its verb.
func firstSentence(file *ast.File) string {
	sentence := new(doc.Package).Synopsis(file.Doc.Text())
	return strings.TrimPrefix(sentence, "Package "+file.Name.Name+" ")
}
