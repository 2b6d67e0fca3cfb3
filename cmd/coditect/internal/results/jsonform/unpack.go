package jsonform

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/habits"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/payload"
	"github.com/coditect/mapreduce/internal/text/refs"
)

// An Extract is the content of a unit's output, as JSON. Any field may be nil.
type Extract struct {
	Data      json.RawMessage // the record, or a list of several
	Citations json.RawMessage // a list
	Notes     []string        // on the document, of units that parse; nothing else of those
}

// An Unpacker decodes the outputs of the units of one job.
type Unpacker struct {
	schema *schema.Schema
}

// NewUnpacker returns the unpacker of a job.
func NewUnpacker(job *mapreduce.Job) (*Unpacker, error) {
	if len(job.Spec.Schema) == 0 {
		return &Unpacker{new(schema.Schema)}, nil // its stages make no records, or have schemas of their own
	}

	s, err := schema.Parse("schema", job.Spec.Schema)
	if err != nil {
		return nil, err
	}
	return &Unpacker{s}, nil
}

// Unpack returns the content of a unit's output. It is empty for units without output.
func (p *Unpacker) Unpack(u *mapreduce.Unit) (Extract, error) {
	if u.State != mapreduce.UnitComplete || len(u.Output) == 0 {
		return Extract{}, nil
	}

	if u.Kind == mapreduce.KindParse {
		parsed, err := payload.DecodeParsed(u.Output)
		if err != nil {
			return Extract{}, err
		}
		return Extract{Notes: parsed.Notes}, nil
	}

	out, err := output.Decode(u.Output)
	if err != nil {
		return Extract{}, err
	}

	names := refs.NewSpelling(func(yield func(refs.ID) bool) {
		for _, c := range out.Citations {
			if !yield(c.ID) {
				return
			}
		}
	})

	var e Extract
	// A step with a schema of its own has a value in place of records.
	if len(out.Value) > 0 {
		e.Data = output.Respelled(out.Value, names.Spell)
		e.Citations, err = citationsOf(out, names, u.Locations)
		return e, err
	}

	if e.Data, err = p.recordsOf(out, names); err != nil {
		return e, err
	}
	e.Citations, err = citationsOf(out, names, u.Locations)
	return e, err
}

// recordsOf returns the record that a unit found, or a list of records.
func (p *Unpacker) recordsOf(out *output.Output, names *refs.Spelling) (json.RawMessage, error) {
	list := make([]map[string]any, 0, len(out.Entries))

	var habits habits.Habits // as far as the unit can tell
	habits.Add(p.schema, "", out)

	for i := range out.Entries {
		r := merge.Resolve(p.schema, habits.Settle(p.schema, out.Entries[i].Accumulator, out.Citations))
		for field, v := range r.Values {
			r.Values[field] = output.Spelled(v, r.Citations[field], names.Spell)
		}

		rec := p.schema.Nest(r.Values)
		cited, derived := output.CitedOf(p.schema, &r, names.Spell)
		if len(derived) > 0 {
			rec["_derived"] = derived
		}
		rec["_sources"], rec["_citations"], rec["_confidence"] = r.Sources, cited, r.Confidence
		rec["_missing"], rec["_unverified"] = r.Missing, unverifiedOf(&r, names)
		if len(r.Said) > 0 {
			rec["_said"] = r.Said
		}

		list = append(list, rec)
	}

	switch {
	case len(list) == 1 && p.schema.Kind == schema.KindRecord:
		return resultfile.Encode(list[0])
	case len(list) == 0:
		return nil, nil
	}
	return resultfile.Encode(list)
}

// A refusedValue is a value in _unverified that the schema does not allow. It has been
// found with a quote.
type refusedValue struct {
	Value      any      `json:"value"`
	Constraint string   `json:"constraint"`
	Message    string   `json:"message"`
	Readings   []any    `json:"readings,omitempty"`
	Citations  []string `json:"citations"`
}

// unverifiedOf returns the values that were found and are not in the record.
func unverifiedOf(r *merge.Result, names *refs.Spelling) map[string]any {
	all := maps.Clone(r.Unverified)
	for field, v := range r.Refused {
		one := refusedValue{Value: output.Spelled(v.Value, v.Citations, names.Spell), Constraint: v.Constraint, Message: v.Message, Readings: v.Readings, Citations: []string{}}
		for _, id := range v.Citations {
			one.Citations = append(one.Citations, names.Spell(refs.ID([]byte(id))))
		}
		all[field] = one
	}
	return all
}

// A unitCitation is a citation in units.jsonl.
type unitCitation struct {
	Ref string `json:"ref"`
	resultfile.Citation
}

// citationsOf returns the citations of an output in the order of their
// documents' text, with their places.
func citationsOf(out *output.Output, names *refs.Spelling, places map[string]*mapreduce.Location) (json.RawMessage, error) {
	list := make([]unitCitation, 0, len(out.Citations))
	ordered := slices.SortedFunc(maps.Values(out.Citations), func(a, b output.Citation) int { return refs.Compare(a.ID, b.ID) })
	slices.SortStableFunc(ordered, func(a, b output.Citation) int { return int(a.Start - b.Start) })

	for _, c := range ordered {
		list = append(list, unitCitation{names.Spell(c.ID), resultfile.Citation{
			Document: mapreduce.DocumentID(c.Document), Start: c.Start, End: c.End, ByteStart: c.ByteStart, ByteEnd: c.ByteEnd,
			Quote: c.Quote, Grade: c.Grade, Unit: mapreduce.UnitID(c.Unit),
			Outside: c.Outside, Others: c.Others, Coverage: c.Coverage, Density: c.Density,
			Location: resultfile.LocationOf(places[string(c.ID[:])]),
		}})
	}
	return resultfile.Encode(list)
}
