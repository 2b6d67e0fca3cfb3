package merge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
)

// A Result is the record of one entity.
type Result struct {
	Key        map[string]any // what identifies it: the values of the key, or {"document": …}; empty for a summary
	Sources    []string       // documents, in order of the input
	Values     map[string]any // by field path; what has no value is absent
	Citations  map[string][]Citation
	Confidence map[string]float64
	Missing    map[string]string // why a field has no value
	Unverified map[string]any    // values without a citation, where there is no verified one
	Conflicts  []Conflict
	Dropped    []Dropped
	Duplicates map[string]int64 // by field: equal values that became one
}

// A Conflict is a field with several values, and how it was decided.
type Conflict struct {
	Field      string
	Key        map[string]any
	Candidates []Choice // the most certain first
	Chosen     any
	Strategy   schema.Merge
	Rationale  string
}

// A Choice is one of several values.
type Choice struct {
	Value      any
	Citations  []Citation
	Confidence float64 // mean
	Count      int64
}

// A Dropped is a citation that the result does not carry for a field, and why.
type Dropped struct {
	Field    string
	Citation Citation
	Reason   string
}

// Resolve decides each field of an entity by the strategy of the schema. What
// ties is decided by the value and then by the order of the input, so equal
// accumulators give equal results.
func Resolve(s *schema.Schema, a Accumulator) Result {
	r := Result{
		Key: map[string]any{}, Values: map[string]any{}, Citations: map[string][]Citation{},
		Confidence: map[string]float64{}, Missing: map[string]string{}, Unverified: map[string]any{},
		Duplicates: map[string]int64{},
	}
	sources := slices.Clone(a.Sources)
	slices.SortFunc(sources, func(x, y Source) int {
		return cmp.Or(x.First.Compare(y.First), strings.Compare(x.Document, y.Document))
	})
	for _, source := range sources {
		r.Sources = append(r.Sources, source.Document)
	}
	for _, f := range s.Fields() {
		r.field(f, a.field(f.Path))
	}
	r.identify(s, a)
	for i := range r.Conflicts {
		r.Conflicts[i].Key = r.Key
	}
	return r
}

// identify fills in what the entity goes by.
func (r *Result) identify(s *schema.Schema, a Accumulator) {
	switch {
	case strings.HasPrefix(a.Entity, entityKey):
		for _, path := range s.Key {
			r.Key[path] = r.Values[path]
		}
	case a.Entity != entityAll && len(r.Sources) > 0:
		r.Key["document"] = r.Sources[0]
	}
}

// field decides one field.
func (r *Result) field(sf schema.Field, f *Field) {
	if f == nil || len(f.Candidates) == 0 {
		r.Missing[sf.Path] = "nothing was said about it"
		if f != nil && f.Missing != nil {
			r.Missing[sf.Path] = f.Missing.Reason
		}
		return
	}
	for _, c := range f.Candidates {
		if c.Count > 1 {
			r.Duplicates[sf.Path] += c.Count - 1
		}
	}
	verified, unverified := split(f.Candidates)
	if len(verified) == 0 {
		chosen := chooser{sf.Property, unverified}.choose()
		r.Unverified[sf.Path] = chosen.value.display
		r.Missing[sf.Path] = "no citation supports what was found"
		return
	}
	d := chooser{sf.Property, verified}.choose()
	r.Values[sf.Path] = d.value.display
	r.Citations[sf.Path] = d.citations
	r.Confidence[sf.Path] = d.confidence
	if len(f.Candidates) == 1 {
		return
	}
	r.drop(sf.Path, f.Candidates, d)
	if d.conflict {
		r.Conflicts = append(r.Conflicts, conflict(sf, verified, unverified, d))
	}
}

// split separates candidates with citations from those without, which never
// stand beside them.
func split(all []Candidate) (verified, unverified []Candidate) {
	for _, c := range all {
		if len(c.Citations) > 0 {
			verified = append(verified, c)
		} else {
			unverified = append(unverified, c)
		}
	}
	return verified, unverified
}

// drop lists the citations of values that were not chosen.
func (r *Result) drop(path string, all []Candidate, d decision) {
	kept := make(map[Citation]bool, len(d.citations))
	for _, id := range d.citations {
		kept[id] = true
	}
	for _, c := range all {
		for _, id := range c.Citations {
			if kept[id] {
				continue
			}
			kept[id] = true
			r.Dropped = append(r.Dropped, Dropped{
				Field: path, Citation: id, Reason: fmt.Sprintf("value %s: %s", show(c.Value), d.lost),
			})
		}
	}
}

// conflict reports a decision between several values.
func conflict(sf schema.Field, verified, unverified []Candidate, d decision) Conflict {
	c := Conflict{Field: sf.Path, Chosen: d.value.display, Strategy: sf.Property.Merge(), Rationale: d.rationale}
	byWeight := func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(a.Key, b.Key))
	}
	for _, group := range [][]Candidate{verified, unverified} {
		for _, one := range slices.SortedFunc(slices.Values(group), byWeight) {
			c.Candidates = append(c.Candidates, Choice{
				Value: one.Value, Citations: one.Citations, Confidence: one.mean(), Count: one.Count,
			})
		}
	}
	if len(unverified) > 0 {
		c.Rationale += "; values without a citation do not count"
	}
	return c
}

// mean returns the mean confidence.
func (c *Candidate) mean() float64 { return float64(c.Weight) / float64(c.Count) / 1e6 }

// show writes a value for a message, shortened.
func show(v any) string {
	const limit = 60
	b, _ := json.Marshal(v) // normalised values are always JSON
	if text := []rune(string(b)); len(text) > limit {
		return string(text[:limit]) + "…"
	}
	return string(b)
}
