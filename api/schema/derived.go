package schema

import "slices"

// readDerived reads whether a value follows from quotes.
func (r *hintReader) readDerived(n *node, path string, p *Property) bool {
	if !slices.Contains([]Type{String, Number, Integer, Boolean}, p.Type) {
		r.recordFault(n, path, "derived is for single texts, numbers and answers, and %s is of type %s", p.Name, p.Type)
		return false
	}
	return r.readYes(n, path)
}

// hintsOfDerived are the hints that a derived property may have beside derived.
var hintsOfDerived = []string{"derived", "merge", "date_order"}

// mergesOfDerived choose one value as it was derived.
var mergesOfDerived = []Merge{"", MergeVote, MergeFirst, MergeLatest, MergeLongest, MergeMax, MergeMin, MergeConfidence}

// checkDerived refuses hints that say where a value stands which stands nowhere, and merges that
// would make one which no formula gives.
func (r *hintReader) checkDerived(n *node, path string, p *Property, h *Hints) {
	if !h.Derived {
		return
	}

	if r.derived == nil {
		r.derived = map[string]*node{}
	}
	// The place is kept for checkPlacesOfDerived, which reads the schema as a whole.
	r.derived[p.Name] = n.get("derived")

	for _, key := range n.keys {
		if !slices.Contains(hintsOfDerived, key.text) {
			r.recordFault(key, joinPath(path, key.text), "%s is derived: it stands nowhere, and %s would look for it", p.Name, key.text)
		}
	}

	if !slices.Contains(mergesOfDerived, h.Merge) {
		r.recordFault(n.get("merge"), joinPath(path, "merge"), "%s is derived: merge %s would make a value that follows from no quotes", p.Name, h.Merge)
	}
}

// checkPlacesOfDerived refuses derived values that are parts of others: of elements of lists and
// of entries of maps.
func (r *hintReader) checkPlacesOfDerived(s *Schema) {
	visitParts(s.Fields(), func(p *Property) {
		if n := r.derived[p.Name]; p.Hints.Derived && n != nil {
			r.recordFault(n, HintKey, "%s is a part of a list or of a map; derived is for fields of a record", p.Name)
		}
	})
}

// visitParts visits the properties of the parts of fields.
func visitParts(fields []Field, visit func(*Property)) {
	for _, f := range fields {
		f.Property.visitInner(visit)
	}
}

func (p *Property) visitInner(visit func(*Property)) {
	for _, of := range []*Property{p.Items, p.Rest} {
		if of != nil {
			visit(of)
			of.visitInner(visit)
		}
	}

	for _, list := range [][]Property{p.Properties, p.Prefix, p.Options} {
		for i := range list {
			visit(&list[i])
			list[i].visitInner(visit)
		}
	}
}

// HasDerived reports whether fields of the schema are derived.
func (s *Schema) HasDerived() bool {
	return slices.ContainsFunc(s.Fields(), func(f Field) bool { return f.Property.Hints.Derived })
}
