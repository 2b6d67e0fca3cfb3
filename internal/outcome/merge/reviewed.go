package merge

import (
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema"
)

// A Review is what a person has decided about a field of a record.
type Review struct {
	Field string
	// Value is the right one, normalised; nil if there is none, and Missing says why.
	Value   any
	Missing string
	// Citations are those of the passage that was marked for the value. Without them a value that was
	// found keeps what it cites.
	Citations []Citation
	Document  string
	Order     Order // of the record; Item is not used
}

// Reviewed returns the accumulator of one record with a field as a person has decided about it.
// Candidates of which the value has no part are gone.
func (a Accumulator) Reviewed(s *schema.Schema, r Review) Accumulator {
	p := s.Field(r.Field)
	if p == nil {
		return a
	}

	field := Field{Path: r.Field}
	var had []Candidate
	if before := a.findField(r.Field); before != nil {
		had = before.Candidates
	}
	if r.Value != nil {
		field.Candidates = r.candidates(p, had)
	}
	if len(field.Candidates) == 0 {
		field.Missing = &Absence{Order: r.Order, Reason: r.Missing}
	}

	// The fields may be an input's, which others read.
	a.Fields = slices.DeleteFunc(slices.Clone(a.Fields), func(f Field) bool { return f.Path == r.Field })
	a.Fields = append(a.Fields, field)
	slices.SortFunc(a.Fields, func(f, g Field) int { return strings.Compare(f.Path, g.Path) })

	// The record may have another key now.
	a.Entity = entityOf(s, &a, Record{Document: r.Document, Order: r.Order, Shared: strings.HasPrefix(a.Entity, entityPlace)})
	return a
}

// candidates returns the candidates of the value, given those that were found.
func (r *Review) candidates(p *schema.Property, had []Candidate) []Candidate {
	all := newCandidates(p, []Value{{Field: r.Field, Value: r.Value, Confidence: 1, Citations: r.Citations, Reviewed: true}}, r.Order)
	if len(r.Citations) > 0 {
		return all
	}

	for i := range all {
		c := &all[i]
		for _, one := range had {
			if Identity(p, one.Value) != Identity(p, c.Value) {
				continue
			}
			c.Mentions = slices.Clone(one.Mentions)
			for j := range c.Mentions {
				c.Mentions[j].Reviewed = true
			}
			break
		}
	}
	return all
}
