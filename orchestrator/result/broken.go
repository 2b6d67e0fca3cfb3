package result

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
)

// A constraint is one that records break in a field.
type constraint struct{ field, name string }

// countBroken counts what a record breaks of the schema.
func (r *result) countBroken(f *merge.Result) {
	for field, refusal := range f.Refused {
		r.broken[constraint{field, refusal.Constraint}]++
	}
	for _, b := range f.Lacking {
		r.broken[constraint{b.Field, b.Constraint}]++
	}
}

func (r *result) brokenConstraints() []mapreduce.BrokenConstraint {
	var all []mapreduce.BrokenConstraint
	for c, n := range r.broken {
		all = append(all, mapreduce.BrokenConstraint{Field: c.field, Constraint: c.name, Records: n})
	}
	slices.SortFunc(all, func(a, b mapreduce.BrokenConstraint) int {
		return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Constraint, b.Constraint))
	})
	return all
}

// A refusal is a value in _unverified that the schema does not allow.
type refusal struct {
	Value      any      `json:"value"`
	Constraint string   `json:"constraint"`
	Message    string   `json:"message"`
	Readings   []any    `json:"readings,omitempty"`
	Citations  []string `json:"citations"`
}

// A sighting is where a model saw a value, in _seen.
type sighting struct {
	Document string `json:"document_id"`
	Page     int    `json:"page"`
	Quote    string `json:"quote"`                // as the model read it
	Read     string `json:"recognised,omitempty"` // what recognition has next to it
}

// seen returns where models saw values that stand in _unverified for that alone, by field.
func seen(f *merge.Result) map[string][]sighting {
	all := make(map[string][]sighting)
	for field, v := range f.Refused {
		for _, s := range v.Seen {
			all[field] = append(all[field], sighting{s.Document, s.Page, s.Quote, s.Read})
		}
	}
	return all
}

// unverified returns the values that were found and are not in the record: as they are
// if no citation supports them, and with the constraint that they break if the schema
// does not allow them.
func (r *result) unverified(f *merge.Result) map[string]any {
	all := maps.Clone(f.Unverified)
	for field, v := range f.Refused {
		all[field] = refusal{
			Value: output.Spelled(v.Value, v.Citations, r.names.Spell), Constraint: v.Constraint, Message: v.Message,
			Readings: v.Readings, Citations: r.names.SpellAll(v.Citations),
		}
	}
	return all
}
