package merge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/hint"
	"github.com/coditect/mapreduce/internal/text/derive"
)

// A Mention is one place at which a value stands. A neighbouring chunk or another
// pass that reads the place again finds the same mention. A value without
// citations is a mention of its own wherever it was found.
type Mention struct {
	Citations  []Citation // sorted, each once
	Confidence int64      // the highest of its readings, in millionths: sums of floats depend on their order
	Said       int64      // the highest confidence that an extractor stated, in millionths
	First      Order
	Readings   []Reading // by unit
	Formula    string    // of a derived value: how it follows from what stands there

	// Derived is what came of the formula. It is known only once the quotes were looked at,
	// and never stored.
	Derived *derive.Derivation

	// Seen is where a model saw what stands in no text; nil of a mention with citations.
	Seen *Sighting

	// Reviewed says that a person has decided that the value is right. It counts without citations,
	// and goes before values about which nobody has decided.
	Reviewed bool
}

// A Sighting is where a model read in a picture what recognition did not. It is no citation: nobody has
// found the words but the model.
type Sighting struct {
	Document string
	Page     int    // counted from 1
	Quote    string // as the model read it
	Read     string // what recognition read that comes next to it; empty if nothing does
}

// MaxSighting bounds each text of a sighting, in bytes.
const MaxSighting = 500

// A Reading is the result of one unit at a place. For a unit that cites the place
// without having read it, it is 0 of 0 passes.
type Reading struct {
	Unit      int64
	Found, Of int64 // passes
}

// NewMention returns a mention that no unit has read yet: see ReadAs.
func NewMention(citations []Citation, confidence, said float64) Mention {
	return Mention{Citations: sortedUnique(citations), Confidence: toMillionths(confidence), Said: toMillionths(said)}
}

// ReadAs returns m with the readings of other added.
func (m Mention) ReadAs(other Mention) Mention {
	if len(m.Readings) == 0 || other.First.Compare(m.First) < 0 {
		m.First = other.First
	}
	m.Readings = joinReadings(m.Readings, other.Readings)
	return m
}

// mentionOf returns the mention of one value.
func mentionOf(v Value, order Order) Mention {
	m := NewMention(v.Citations, v.Confidence, v.Said)
	m.First, m.Formula, m.Reviewed = order, v.Formula, v.Reviewed
	if len(m.Citations) == 0 {
		m.Seen = v.Seen
	}
	m.Readings = []Reading{{Unit: order.Unit, Found: 1, Of: 1}}

	switch {
	case v.Unread:
		m.Readings[0].Found, m.Readings[0].Of = 0, 0
	case v.Of > 0:
		m.Readings[0].Found, m.Readings[0].Of = min(v.Found, v.Of), v.Of
	}
	return m
}

// placeOf names the place of a mention: its citations, or without any, the record
// that holds it.
func placeOf(m Mention) string {
	if len(m.Citations) == 0 {
		return fmt.Sprintf("%d.%d.%d ", m.First.Unit, m.First.Record, m.First.Item)
	}

	var b strings.Builder
	for _, id := range m.Citations {
		fmt.Fprintf(&b, "%d:%s ", len(id), id)
	}
	return b.String()
}

// compareMentions orders mentions by their places; those without citations come
// last.
func compareMentions(a, b Mention) int {
	switch {
	case len(a.Citations) > 0 && len(b.Citations) > 0:
		return slices.Compare(a.Citations, b.Citations)
	case len(a.Citations) == 0 && len(b.Citations) == 0:
		return a.First.Compare(b.First)
	default:
		return cmp.Compare(len(b.Citations), len(a.Citations))
	}
}

// joinMentions joins two mentions of the same place.
func joinMentions(a, b Mention) Mention {
	a.Confidence, a.Said = max(a.Confidence, b.Confidence), max(a.Said, b.Said)
	if a.Formula == "" || b.Formula != "" && cmp.Or(cmp.Compare(len(b.Formula), len(a.Formula)), strings.Compare(b.Formula, a.Formula)) < 0 {
		a.Formula, a.Derived = b.Formula, b.Derived // of two, the shorter one
	}
	if a.Seen == nil || b.Seen != nil && compareSightings(b.Seen, a.Seen) < 0 {
		a.Seen = b.Seen
	}
	a.Reviewed = a.Reviewed || b.Reviewed
	return a.ReadAs(b)
}

// compareSightings orders sightings by their places.
func compareSightings(a, b *Sighting) int {
	return cmp.Or(strings.Compare(a.Document, b.Document), cmp.Compare(a.Page, b.Page), strings.Compare(a.Quote, b.Quote), strings.Compare(a.Read, b.Read))
}

// joinReadings keeps one reading of each unit: a unit that repeats a value counts
// once.
func joinReadings(a, b []Reading) []Reading {
	return mergeSorted(a, b,
		func(x, y Reading) int { return cmp.Compare(x.Unit, y.Unit) },
		func(x, y Reading) Reading { return Reading{x.Unit, max(x.Found, y.Found), max(x.Of, y.Of)} })
}

// Identity returns a text that is equal for values of a field that mean the
// same. v may be an element where p is a list.
func Identity(p *schema.Property, v any) string {
	if p.IsElement(v) {
		return p.Items.Identity(v)
	}
	return p.Identity(v)
}

// Elements returns the parts of a field's value that are candidates of their own:
// Elements returns the parts of a field's value that are candidates of their own: the
// entries of a map, the elements of a list that is merged by union or concat, otherwise the
// value.
func Elements(p *schema.Property, v any) []any {
	if entries, ok := v.(map[string]any); ok && p.Type == schema.Map {
		return entriesOf(entries)
	}
	list, ok := v.([]any)
	if !ok || p.Type != schema.Array || p.Merge() != hint.MergeUnion && p.Merge() != hint.MergeConcat {
		return []any{v}
	}
	return list
}

// Union sorts candidates by key and joins those of equal values, as a Field
// requires.
func Union(all []Candidate) []Candidate { return joinEqual(slices.Clone(all)) }
