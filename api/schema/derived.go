package schema

import (
	"slices"

	"github.com/coditect/mapreduce/api/schema/hint"
	"github.com/coditect/mapreduce/api/schema/source"
)

// readDerived reads whether a value follows from quotes.
func (r *hintReader) readDerived(n *source.Node, path string, p *Property) bool {
	if !slices.Contains([]Type{String, Number, Integer, Boolean}, p.Type) {
		r.RecordFault(n, path, "derived is for single texts, numbers and answers, and %s is of type %s", p.Name, p.Type)
		return false
	}
	return r.ReadYes(n, path)
}

// hintsOfDerived are the hints that a derived property may have beside derived.
var hintsOfDerived = []string{"derived", "merge", "date_order"}

// mergesOfDerived choose one value as it was derived.
var mergesOfDerived = []hint.Merge{"", hint.MergeVote, hint.MergeFirst, hint.MergeLatest, hint.MergeLongest, hint.MergeMax, hint.MergeMin, hint.MergeConfidence}

// checkDerived refuses hints that say where a value stands which stands nowhere, and merges that
// would make one which no formula gives.
func (r *hintReader) checkDerived(n *source.Node, path string, p *Property, h *hint.Hints) {
	if !h.Derived {
		return
	}

	if r.derived == nil {
		r.derived = map[string]*source.Node{}
	}
	// The place is kept for checkPlacesOfDerived, which reads the schema as a whole.
	r.derived[p.Name] = n.Get("derived")

	for _, key := range n.Keys {
		if !slices.Contains(hintsOfDerived, key.Text) {
			r.RecordFault(key, source.JoinPath(path, key.Text), "%s is derived: it stands nowhere, and %s would look for it", p.Name, key.Text)
		}
	}

	if !slices.Contains(mergesOfDerived, h.Merge) {
		r.RecordFault(n.Get("merge"), source.JoinPath(path, "merge"), "%s is derived: merge %s would make a value that follows from no quotes", p.Name, h.Merge)
	}
}

// checkPlacesOfDerived refuses derived values that are parts of others: of elements of lists and
// of entries of maps.
func (r *hintReader) checkPlacesOfDerived(s *Schema) {
	visitParts(s.Fields(), func(p *Property) {
		if n := r.derived[p.Name]; p.Hints.Derived && n != nil {
			r.RecordFault(n, source.HintKey, "%s is a part of a list or of a map; derived is for fields of a record", p.Name)
		}
	})
}

// visitParts visits the properties of the parts of fields.
func visitParts(fields []Field, visit func(*Property)) {
	for _, f := range fields {
		visitInner(f.Property, visit)
	}
}

func visitInner(p *Property, visit func(*Property)) {
	for _, of := range []*Property{p.Items, p.Rest} {
		if of != nil {
			visit(of)
			visitInner(of, visit)
		}
	}

	for _, list := range [][]Property{p.Properties, p.Prefix, p.Options} {
		for i := range list {
			visit(&list[i])
			visitInner(&list[i], visit)
		}
	}
}

// HasDerived reports whether fields of the schema are derived.
func (s *Schema) HasDerived() bool {
	return slices.ContainsFunc(s.Fields(), func(f Field) bool { return f.Property.Hints.Derived })
}
