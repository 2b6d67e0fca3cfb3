// Package merge combines records that describe the same entity, as the schema
// prescribes. Equal values become one. Where values differ, a strategy decides and
// the decision is reported. Citations are carried by id: merging adds none, and
// lists each one that it drops with its reason.
//
// Records become accumulators. Accumulators can be merged in any order and
// grouping with equal outcome. At the end each is resolved into one record. Only
// this last step decides, so the shape of the reduction tree does not matter.
//
// It is pure and imports nothing of the project but api/mapreduce, api/schema and other
// pure packages of the worker.
package merge

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/hint"
)

// A Citation is the id of a citation; its spelling is the caller's.
type Citation string

// An Order is the position of a value in the input.
type Order struct {
	Unit   int64 // index of the unit
	Record int64 // index of the record in the unit
	Item   int64 // index of the element in a list
}

// Compare orders by unit, then record, then item.
func (o Order) Compare(p Order) int {
	return cmp.Or(cmp.Compare(o.Unit, p.Unit), cmp.Compare(o.Record, p.Record), cmp.Compare(o.Item, p.Item))
}

// A Record is what one unit says about one record.
type Record struct {
	Document string
	Order    Order // Item is not used
	Values   []Value
	Missing  []Missing
	// Shared means that the neighbouring chunk may have found the record too,
	// because both chunks read the place.
	Shared bool
}

// A Value is one value of a field, or one element or all of a list. Several
// values of a list make one list, in their order.
type Value struct {
	Field      string     // path
	Value      any        // normalised, see schema.Property.Normalize
	Confidence float64    // for one reading, see package confidence
	Said       float64    // the confidence that the extractor states; 0 if none
	Citations  []Citation // none: the value is not verified
	Found, Of  int64      // how many of the unit's passes found it here; 0 of 0 stands for 1 of 1
	Unread     bool       // the unit cites a place that it did not read
	Formula    string     // of a derived value, see package derive
	Seen       *Sighting  // where a model saw it, if it has no citations
	Reviewed   bool       // a person has decided that it is right
}

// A Missing is a field that was not found, and why.
type Missing struct {
	Field, Reason string
}

// An Accumulator holds everything known about one entity. It is a value: no
// function of this package changes its arguments.
type Accumulator struct {
	Entity  string   // equal for records that belong together
	Sources []Source // by document
	Fields  []Field  // by path
}

// A Source is a document with information about the entity.
type Source struct {
	Document string
	First    Order
}

// A Field is the candidates for one field.
type Field struct {
	Path       string
	Candidates []Candidate // by key
	Missing    *Absence    // where the field was not found first, nil if nowhere
}

// An Absence is a reason why a field was not found, and where.
type Absence struct {
	Order  Order
	Reason string
}

// A Candidate is a value and its evidence.
type Candidate struct {
	Key      string // equal for values that mean the same
	Value    any    // in the spelling that was seen first
	Mentions []Mention

	// Readings are what an ambiguous date or number may mean. They are known only once all that
	// could tell its order was looked at, and never stored.
	Readings []any
}

// IsReviewed reports whether a person has decided that the value is right.
func (c *Candidate) IsReviewed() bool {
	return slices.ContainsFunc(c.Mentions, func(m Mention) bool { return m.Reviewed })
}

// toMillionths turns a confidence of [0,1] into millionths.
func toMillionths(confidence float64) int64 {
	if !(confidence > 0) { // also for NaN
		return 0
	}
	return int64(math.Round(min(confidence, 1) * 1e6))
}

// Accumulate returns the accumulator of one record. It leaves out values that the
// schema does not have, and null values.
func Accumulate(s *schema.Schema, r Record) Accumulator {
	byField := map[string][]Value{}
	for _, v := range r.Values {
		if v.Value != nil {
			byField[v.Field] = append(byField[v.Field], v)
		}
	}

	// The schema decides which fields there are: values of others are left out.
	a := Accumulator{Sources: []Source{{Document: r.Document, First: r.Order}}}

	for _, f := range s.Fields() {
		field := Field{Path: f.Path, Candidates: newCandidates(f.Property, byField[f.Path], r.Order)}

		for _, m := range r.Missing {
			if m.Field == f.Path && len(field.Candidates) == 0 {
				field.Missing = &Absence{Order: r.Order, Reason: m.Reason}
			}
		}

		if len(field.Candidates) > 0 || field.Missing != nil {
			a.Fields = append(a.Fields, field)
		}
	}

	slices.SortFunc(a.Fields, func(f, g Field) int { return strings.Compare(f.Path, g.Path) })
	a.Entity = entityOf(s, &a, r)
	return a
}

// newCandidates turns the values of one field of one record into candidates.
func newCandidates(p *schema.Property, values []Value, order Order) []Candidate {
	if len(values) == 0 {
		return nil
	}

	switch p.Type {
	case schema.Array:
		values = flattenLists(p, values)
	case schema.Map:
		values = splitMaps(values)
	}

	// A list that is merged as a whole is one candidate.
	strategy := p.Merge()
	if p.Type == schema.Array && strategy != hint.MergeUnion && strategy != hint.MergeConcat {
		values = []Value{joinElements(values)}
	}

	var all []Candidate
	for i, v := range values {
		order.Item = int64(i)
		c := Candidate{Key: Identity(p, v.Value), Value: v.Value, Mentions: []Mention{mentionOf(v, order)}}
		if p.Type == schema.Array && strategy == hint.MergeConcat {
			c.Key = placeOf(c.Mentions[0]) + c.Key // keeps equal elements apart
		}
		all = append(all, c)
	}

	return joinEqual(all)
}

// flattenLists replaces values that are lists of elements by these.
func flattenLists(p *schema.Property, values []Value) []Value {
	var all []Value
	for _, v := range values {
		list, ok := v.Value.([]any)
		if !ok || p.IsElement(v.Value) {
			all = append(all, v)
			continue
		}

		for _, item := range list {
			one := v
			one.Value = item
			all = append(all, one)
		}
	}
	return all
}

// joinElements joins elements into one list with their mean confidence.
func joinElements(values []Value) Value {
	list := make([]any, 0, len(values))
	all := Value{}
	for _, v := range values {
		list = append(list, v.Value)
		all.Confidence += v.Confidence / float64(len(values))
		all.Said += v.Said / float64(len(values))
		all.Citations = append(all.Citations, v.Citations...)
		all.Reviewed = all.Reviewed || v.Reviewed
	}

	all.Value = list
	return all
}

// sortedUnique returns ids sorted, each once.
func sortedUnique(ids []Citation) []Citation {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// joinEqual sorts candidates by key and joins equal ones.
func joinEqual(all []Candidate) []Candidate {
	slices.SortStableFunc(all, func(a, b Candidate) int { return strings.Compare(a.Key, b.Key) })

	out := all[:0]
	for _, c := range all {
		if n := len(out); n > 0 && out[n-1].Key == c.Key {
			out[n-1] = joinCandidates(out[n-1], c)
			continue
		}

		out = append(out, c)
	}
	return slices.Clip(out)
}

// joinCandidates joins the mentions of equal values, each place once. It keeps the
// spelling that was seen first.
func joinCandidates(a, b Candidate) Candidate {
	if c := cmp.Or(b.firstOrder().Compare(a.firstOrder()), compareSpelling(b.Value, a.Value)); c < 0 {
		a, b = b, a
	}
	a.Mentions = mergeSorted(a.Mentions, b.Mentions, compareMentions, joinMentions)
	return a
}

// firstOrder returns where the value was seen first.
func (c *Candidate) firstOrder() Order {
	first := c.Mentions[0].First
	for _, m := range c.Mentions[1:] {
		if m.First.Compare(first) < 0 {
			first = m.First
		}
	}
	return first
}

// compareSpelling orders values that mean the same by their spelling.
func compareSpelling(a, b any) int { return strings.Compare(spellingOf(a), spellingOf(b)) }

func spellingOf(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, _ := json.Marshal(v) // normalised values are always JSON
	return string(b)
}

// mergeSorted merges two sorted lists into a new one; equal items are joined.
func mergeSorted[T any](a, b []T, compare func(a, b T) int, join func(a, b T) T) []T {
	if len(b) == 0 {
		return a
	}
	if len(a) == 0 {
		return b
	}

	// Arguments are values: the lists are never written into.
	out := make([]T, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch c := compare(a[0], b[0]); {
		case c < 0:
			out, a = append(out, a[0]), a[1:]
		case c > 0:
			out, b = append(out, b[0]), b[1:]
		default:
			out, a, b = append(out, join(a[0], b[0])), a[1:], b[1:]
		}
	}

	out = append(out, a...)
	return append(out, b...)
}

// Merge joins two accumulators of the same entity. It is commutative and
// associative.
func Merge(a, b Accumulator) Accumulator {
	return Accumulator{
		Entity: a.Entity,
		Sources: mergeSorted(a.Sources, b.Sources,
			func(x, y Source) int { return strings.Compare(x.Document, y.Document) }, joinSources),
		Fields: mergeSorted(a.Fields, b.Fields,
			func(x, y Field) int { return strings.Compare(x.Path, y.Path) }, joinFields),
	}
}

func joinSources(a, b Source) Source {
	if b.First.Compare(a.First) < 0 {
		return b
	}
	return a
}

func joinFields(a, b Field) Field {
	return Field{
		Path: a.Path,
		Candidates: mergeSorted(a.Candidates, b.Candidates,
			func(x, y Candidate) int { return strings.Compare(x.Key, y.Key) }, joinCandidates),
		Missing: joinAbsences(a.Missing, b.Missing),
	}
}

// joinAbsences keeps the reason that was seen first.
func joinAbsences(a, b *Absence) *Absence {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case cmp.Or(b.Order.Compare(a.Order), strings.Compare(b.Reason, a.Reason)) < 0:
		return b
	default:
		return a
	}
}

// First returns where the entity was seen first.
func (a *Accumulator) First() Order {
	if len(a.Sources) == 0 {
		return Order{}
	}
	first := a.Sources[0].First

	for _, s := range a.Sources[1:] {
		if s.First.Compare(first) < 0 {
			first = s.First
		}
	}
	return first
}
