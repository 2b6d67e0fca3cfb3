package merge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/hint"
	"github.com/coditect/mapreduce/api/schema/judge"
	"github.com/coditect/mapreduce/api/shorten"
	"github.com/coditect/mapreduce/internal/text/confidence"
	"github.com/coditect/mapreduce/internal/text/derive"
)

// A Result is the record of one entity.
type Result struct {
	Key        map[string]any // identifies the entity: the values of the key, or {"document": …}; empty for a summary
	Sources    []string       // documents, in order of the input
	Values     map[string]any // by field path; a field without a value is absent
	Citations  map[string][]Citation
	Confidence map[string]float64
	Said       map[string]float64 // confidence that extractors state, where they do
	Missing    map[string]string  // why a field has no value
	Unverified map[string]any     // values without a citation, for fields without a verified value
	Refused    map[string]Refusal // values that break the schema, whatever they cite
	Lacking    []judge.Breach     // what the schema asks for and the record lacks
	Conflicts  []Conflict
	Dropped    []Dropped
	Duplicates map[string]int64 // by field: equal values that became one

	// Derived says how the values of derived fields follow from their citations.
	Derived map[string]derive.Derivation
}

// A Conflict is a field with several values, and the decision between them.
type Conflict struct {
	Field      string
	Key        map[string]any
	Candidates []Choice // the most certain first
	Chosen     any
	Strategy   hint.Merge
	Rationale  string
}

// A Choice is one of several values.
type Choice struct {
	Value      any
	Citations  []Citation
	Confidence float64 // mean
	Count      int64
}

// A Refusal is a value that the schema does not allow, and why. A list has one for all
// of its elements that are refused.
type Refusal struct {
	Value      any
	Constraint string // the keyword of JSON Schema that is broken first, DateOrder, NumberForm, DerivedFalsely, mapreduce.LeastConfidence or mapreduce.SeenOnly
	Message    string
	Readings   []any      // what an ambiguous value may mean
	Citations  []Citation // sorted
	Seen       []Sighting // where a model saw it, if it was not found; the constraint is mapreduce.SeenOnly then
}

// DateOrder is the constraint that a date breaks of which nothing tells whether day or
// month comes first.
const DateOrder = "date_order"

// NumberForm is the constraint that a number breaks of which nothing tells how it is read.
const NumberForm = "number_form"

// DerivedFalsely is the constraint that a derived value breaks which does not follow from its
// quotes.
const DerivedFalsely = "derived"

// mostDoubtful is the confidence, in millionths, up to which what was found is no value. Rules have it for a
// text beside a word that is the name of the property too, for a number that nothing but its form led to,
// and for one of many that might be meant.
const mostDoubtful = 100_000

// A Dropped is a citation that the result leaves out of a field, with the reason.
type Dropped struct {
	Field    string
	Citation Citation
	Reason   string
}

// Resolve decides each field of an entity by the strategy of the schema, among the
// values that the schema allows, and then judges the record as a whole: Values breaks
// no constraint but those that ask for values which are missing. It breaks ties by the
// value and then by the order of the input, so that equal accumulators give equal
// results.
func Resolve(s *schema.Schema, a Accumulator) Result {
	r := Result{
		Key: map[string]any{}, Values: map[string]any{}, Citations: map[string][]Citation{},
		Confidence: map[string]float64{}, Said: map[string]float64{}, Missing: map[string]string{}, Unverified: map[string]any{},
		Refused: map[string]Refusal{}, Duplicates: map[string]int64{}, Derived: map[string]derive.Derivation{},
	}

	sources := slices.Clone(a.Sources)
	slices.SortFunc(sources, func(x, y Source) int {
		return cmp.Or(x.First.Compare(y.First), strings.Compare(x.Document, y.Document))
	})
	for _, source := range sources {
		r.Sources = append(r.Sources, source.Document)
	}

	for _, f := range s.Fields() {
		r.resolveField(s, f, a.findField(f.Path))
	}

	r.judgeRecord(s)
	r.listDropsOnce()
	// The key is made of values, and those are final only now.
	r.setKey(s, a)

	for i := range r.Conflicts {
		r.Conflicts[i].Key = r.Key
	}
	return r
}

// setKey sets the values that identify the entity.
func (r *Result) setKey(s *schema.Schema, a Accumulator) {
	switch {
	case strings.HasPrefix(a.Entity, entityKey):
		for _, path := range s.Key {
			r.Key[path] = r.Values[path]
		}
	case a.Entity != entityAll && len(r.Sources) > 0:
		r.Key["document"] = r.Sources[0]
	}
}

// resolveField decides one field.
func (r *Result) resolveField(s *schema.Schema, sf schema.Field, f *Field) {
	if f == nil || len(f.Candidates) == 0 {
		r.Missing[sf.Path] = "nothing was found"
		if f != nil && f.Missing != nil {
			r.Missing[sf.Path] = f.Missing.Reason
		}
		return
	}

	for _, c := range f.Candidates {
		if n := c.countReadings(); n > 1 {
			r.Duplicates[sf.Path] += n - 1
		}
	}

	// A value that something is cited for never competes with one without.
	verified, unverified := splitVerified(f.Candidates)
	if len(verified) == 0 {
		r.resolveUncited(s, sf, unverified)
		return
	}

	verified, refused := judgeOptions(s, sf, verified)
	verified, doubtful := splitDoubtful(verified)
	r.refuseOptions(sf, slices.Concat(refused, doubtful), len(verified) > 0)
	if len(verified) == 0 {
		return
	}

	d := chooser{sf.Property, verified}.runStrategy()
	r.Values[sf.Path] = d.value.display
	r.Citations[sf.Path] = d.citations
	r.Confidence[sf.Path] = d.confidence

	if d.said > 0 {
		r.Said[sf.Path] = d.said
	}
	if d.derived != nil {
		r.Derived[sf.Path] = *d.derived
	}

	// Of a list the elements that were found do not stand for those that a model saw.
	if hasParts(sf.Property) {
		allowed, _ := judgeOptions(s, sf, unverified)
		r.resolveSeen(sf, allowed)
	}

	if len(verified)+len(unverified) == 1 {
		return
	}

	r.dropCitations(sf.Path, verified, d)
	if d.conflict {
		r.Conflicts = append(r.Conflicts, newConflict(sf, verified, unverified, d))
	}
}

// resolveUncited decides a field of which no value has a citation. What breaks the
// schema too is refused for that, as no citation would help it.
func (r *Result) resolveUncited(s *schema.Schema, sf schema.Field, all []option) {
	allowed, refused := judgeOptions(s, sf, all)
	if len(allowed) == 0 {
		r.refuseOptions(sf, refused, false)
		return
	}
	if r.resolveSeen(sf, allowed) {
		return
	}
	r.Unverified[sf.Path] = chooser{sf.Property, allowed}.runStrategy().value.display
	r.Missing[sf.Path] = "no citation supports what was found"
}

// An option is a candidate with the totals of its mentions.
type option struct {
	Key       string
	Value     any
	Weight    int64 // sum of confidence over places, in millionths
	Best      int64 // the highest
	Count     int64 // places
	First     Order
	Last      Order
	Citations []Citation // sorted, each once
	readings  []any      // of a date or a number of which nothing tells how it is read
	derived   *derive.Derivation
	seen      *Sighting // where a model saw it first, of an option without citations; nil if none did
	reviewed  bool      // a person has decided that it is right
	said      int64     // sum of the confidence that extractors state
	saidCount int64     // how many places state one
}

// verifies reports whether a mention speaks for its value: it cites something, or a person has decided.
func (m *Mention) verifies() bool { return len(m.Citations) > 0 || m.Reviewed }

// splitVerified separates candidates with citations from those without, which never
// compete with them. If a candidate has both kinds of places, those without
// citations do not count. What a person has decided needs none.
func splitVerified(all []Candidate) (verified, unverified []option) {
	for i := range all {
		c := &all[i]

		cited := slices.ContainsFunc(c.Mentions, func(m Mention) bool { return m.verifies() })
		o := c.withoutFaults().tallyMentions(cited)

		if cited {
			verified = append(verified, o)
		} else {
			unverified = append(unverified, o)
		}
	}
	return verified, unverified
}

// withoutFaults returns a derived candidate without the mentions that do not follow from their
// quotes, if others do.
func (c *Candidate) withoutFaults() *Candidate {
	isFaulty := func(m Mention) bool { return m.Derived != nil && m.Derived.Fault != "" && !m.Reviewed }
	sound := func(m Mention) bool { return m.Derived != nil && !isFaulty(m) && len(m.Citations) > 0 }

	if !slices.ContainsFunc(c.Mentions, isFaulty) || !slices.ContainsFunc(c.Mentions, sound) {
		return c
	}

	kept := *c
	kept.Mentions = slices.DeleteFunc(slices.Clone(c.Mentions), isFaulty)
	return &kept
}

// tallyMentions adds up the mentions of a candidate, those with citations or those
// without.
func (c *Candidate) tallyMentions(cited bool) option {
	o := option{Key: c.Key, Value: c.Value, First: c.firstOrder(), readings: c.Readings}

	for _, m := range c.Mentions {
		if m.verifies() != cited {
			continue
		}
		o.reviewed = o.reviewed || m.Reviewed

		// A derivation that was computed says more than one that was not.
		if m.Derived != nil && (o.derived == nil || o.derived.Computed == "" && m.Derived.Computed != "") {
			o.derived = m.Derived
		}

		weight := m.agreedConfidence()
		o.Weight += weight
		o.Best = max(o.Best, weight)
		o.Count++

		if o.Count == 1 || m.First.Compare(o.Last) > 0 {
			o.Last = m.First
		}

		o.Citations = append(o.Citations, m.Citations...)
		if o.seen == nil {
			o.seen = m.Seen
		}
		if m.Said > 0 {
			o.said += m.Said
			o.saidCount++
		}
	}

	slices.Sort(o.Citations)
	o.Citations = slices.Compact(o.Citations)
	return o
}

// agreedConfidence returns the confidence in one place, in millionths, adjusted by
// the agreement of its readings.
func (m *Mention) agreedConfidence() int64 {
	var found, of int64
	for _, r := range m.Readings {
		found, of = found+r.Found, of+r.Of
	}
	return toMillionths(confidence.Agreed(float64(m.Confidence)/1e6, found, of))
}

// countReadings counts the units that read the value, once for each place.
func (c *Candidate) countReadings() int64 {
	n := 0
	for _, m := range c.Mentions {
		n += len(m.Readings)
	}
	return int64(n)
}

// dropCitations lists the citations of values that were not chosen.
func (r *Result) dropCitations(path string, all []option, d decision) {
	kept := make(map[Citation]bool, len(d.citations))
	for _, id := range d.citations {
		kept[id] = true
	}
	for _, c := range all {
		for _, id := range c.Citations {
			if kept[id] {
				continue
			}

			// A citation of several lost values is listed once.
			kept[id] = true
			r.Dropped = append(r.Dropped, Dropped{
				Field: path, Citation: id, Reason: fmt.Sprintf("value %s: %s", displayValue(c.Value), d.lossReason),
			})
		}
	}
}

// newConflict reports a decision between several values.
func newConflict(sf schema.Field, verified, unverified []option, d decision) Conflict {
	c := Conflict{Field: sf.Path, Chosen: d.value.display, Strategy: sf.Property.Merge(), Rationale: d.rationale}

	byWeight := func(a, b option) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(a.Key, b.Key))
	}

	// Values without a citation are listed last, whatever their weight.
	for _, group := range [][]option{verified, unverified} {
		for _, one := range slices.SortedFunc(slices.Values(group), byWeight) {
			c.Candidates = append(c.Candidates, Choice{
				Value: one.Value, Citations: one.Citations, Confidence: one.meanConfidence(), Count: one.Count,
			})
		}
	}

	if len(unverified) > 0 {
		c.Rationale += "; values without a citation do not count"
	}
	return c
}

// meanConfidence returns the mean confidence.
func (c *option) meanConfidence() float64 { return meanOf(c.Weight, c.Count) }

// fullID matches an internal id, which messages must not show.
var fullID = regexp.MustCompile(`REF_[0-9a-f]{64}`)

// displayValue formats a value for a message, shortened.
func displayValue(v any) string {
	const limit = 60

	b, _ := json.Marshal(v) // normalised values are always JSON
	b = fullID.ReplaceAll(b, []byte("REF…"))
	return shorten.Text(string(b), limit)
}
