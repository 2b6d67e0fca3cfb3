package merge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/worker/confidence"
)

// A Result is the record of one entity.
type Result struct {
	Key        map[string]any // what identifies it: the values of the key, or {"document": …}; empty for a summary
	Sources    []string       // documents, in order of the input
	Values     map[string]any // by field path; what has no value is absent
	Citations  map[string][]Citation
	Confidence map[string]float64
	Said       map[string]float64 // what extractors say themselves of the values, where they do
	Missing    map[string]string  // why a field has no value
	Unverified map[string]any     // values without a citation, where there is no verified one
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
		Confidence: map[string]float64{}, Said: map[string]float64{}, Missing: map[string]string{}, Unverified: map[string]any{},
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
		if n := c.readings(); n > 1 {
			r.Duplicates[sf.Path] += n - 1
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
	if d.said > 0 {
		r.Said[sf.Path] = d.said
	}
	if len(f.Candidates) == 1 {
		return
	}
	r.drop(sf.Path, verified, d)
	if d.conflict {
		r.Conflicts = append(r.Conflicts, conflict(sf, verified, unverified, d))
	}
}

// An option is a candidate with what its mentions come to.
type option struct {
	Key       string
	Value     any
	Weight    int64 // sum of confidence over places, in millionths
	Best      int64 // the highest
	Count     int64 // places
	First     Order
	Last      Order
	Citations []Citation // sorted, each once
	said      int64      // sum over places that have it
	saying    int64      // how many those are
}

// split separates candidates with citations from those without, which never
// stand beside them. Of a candidate that has both the places without citations
// do not count.
func split(all []Candidate) (verified, unverified []option) {
	for i := range all {
		c := &all[i]
		cited := slices.ContainsFunc(c.Mentions, func(m Mention) bool { return len(m.Citations) > 0 })
		o := c.tally(cited)
		if cited {
			verified = append(verified, o)
		} else {
			unverified = append(unverified, o)
		}
	}
	return verified, unverified
}

// tally adds up the mentions of a candidate, those with citations or those
// without.
func (c *Candidate) tally(cited bool) option {
	o := option{Key: c.Key, Value: c.Value, First: c.first()}
	for _, m := range c.Mentions {
		if (len(m.Citations) > 0) != cited {
			continue
		}
		weight := m.weight()
		o.Weight += weight
		o.Best = max(o.Best, weight)
		o.Count++
		if o.Count == 1 || m.First.Compare(o.Last) > 0 {
			o.Last = m.First
		}
		o.Citations = append(o.Citations, m.Citations...)
		if m.Said > 0 {
			o.said += m.Said
			o.saying++
		}
	}
	slices.Sort(o.Citations)
	o.Citations = slices.Compact(o.Citations)
	return o
}

// weight is the confidence in one place, with the agreement of its readings.
func (m *Mention) weight() int64 {
	var found, of int64
	for _, r := range m.Readings {
		found, of = found+r.Found, of+r.Of
	}
	return million(confidence.Agreed(float64(m.Confidence)/1e6, found, of))
}

// readings counts how often a value was read: each unit that read a place.
func (c *Candidate) readings() int64 {
	n := 0
	for _, m := range c.Mentions {
		n += len(m.Readings)
	}
	return int64(n)
}

// drop lists the citations of values that were not chosen.
func (r *Result) drop(path string, all []option, d decision) {
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
func conflict(sf schema.Field, verified, unverified []option, d decision) Conflict {
	c := Conflict{Field: sf.Path, Chosen: d.value.display, Strategy: sf.Property.Merge(), Rationale: d.rationale}
	byWeight := func(a, b option) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(a.Key, b.Key))
	}
	for _, group := range [][]option{verified, unverified} {
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
func (c *option) mean() float64 { return meanOf(c.Weight, c.Count) }

// fullID matches an id as it is spelled inside, which nobody is to read.
var fullID = regexp.MustCompile(`REF_[0-9a-f]{64}`)

// show writes a value for a message, shortened.
func show(v any) string {
	const limit = 60
	b, _ := json.Marshal(v) // normalised values are always JSON
	b = fullID.ReplaceAll(b, []byte("REF…"))
	if text := []rune(string(b)); len(text) > limit {
		return string(text[:limit]) + "…"
	}
	return string(b)
}
