package schema

import (
	"github.com/coditect/mapreduce/api/schema/hint"
	"github.com/coditect/mapreduce/api/schema/source"
	"github.com/coditect/mapreduce/api/schema/view"
)

// Parse reads a schema file. The name is used in messages, and a name ending in
// .json makes the file JSON whatever it looks like. All faults are reported at
// once: the error is of type Errors.
func Parse(file string, data []byte) (*Schema, error) { return ParseIn("", file, data) }

// ParseIn reads a schema file as Parse does, for documents of a locale such as de-DE. The
// schema's own locale, if it states one, comes before it.
func ParseIn(locale, file string, data []byte) (*Schema, error) {
	found := &source.Faults{File: file}
	root := (&source.TreeParser{Faults: found}).Parse(data)

	if root == nil {
		return nil, found.Errs.SortedUnique()
	}

	root = view.Unwrap(root)
	if beyond := root.PartBeyond(maxParts); beyond != nil {
		found.RecordFault(beyond, "", "the schema has more than %d parts, mappings and booleans: leave out what is not to be extracted", maxParts)
		return nil, found.Errs.SortedUnique()
	}

	if locale != "" {
		root.AddLocale(locale)
	}

	all := view.NewReader(found, root)
	r := &shaper{Reader: all, hints: &hintReader{Reader: &hint.Reader{Reader: all}, hinted: map[*source.Node]bool{}}}
	s := r.readSchema()

	// The work is bounded in looks, as short schemas may refer to each other very often.
	if all.Looks > view.MaxLooks {
		return nil, source.Errors{{
			File: file, Line: root.Line, Column: root.Col, Msg: "its parts refer to each other so often that it would take too long to read",
		}}
	}

	if s != nil {
		if s.fields = s.listFields(); len(s.fields) == 0 {
			found.RecordFault(root, "", "nothing but null is allowed in any of its properties, so there is nothing to extract")
		}
		r.hints.checkPlacesOfDerived(s)
		r.hints.strayHints(root, "")
		(&source.TypoFinder{Faults: found, Formats: formatsOfSchemas}).WarnOfTypos(root, source.Keywords, "")
		r.compileSchema(s, root)
	}

	if len(found.Errs) > 0 {
		return nil, found.Errs.SortedUnique()
	}

	// Warnings are for schemas that can be used: after a fault only the faults are shown.
	s.Warnings = found.Warnings.SortedUnique()
	s.canonical, s.plain = source.EncodeSchema(root, false), source.EncodeSchema(root, true)
	s.asked = source.EncodeSchema(withoutGiven(root, s.Properties), true)

	return s, nil
}

// maxParts bounds what may be a schema within a schema: to compile so many takes a second, and twice as many four
// times as long. The largest of 9,557 public schemas that a job takes has 2,700.
const maxParts = 7_000
