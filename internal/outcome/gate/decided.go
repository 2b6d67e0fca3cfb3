package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/ascent"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
)

// What a record says of a field without a value that a person has decided about.
const (
	WhyRejected = "a review rejected the value"
	WhyAbsent   = "the document does not have it, as a review says"
)

// A Decided is what a person has decided about a value that waits.
type Decided struct {
	Record  mapreduce.RecordID      `json:"record"`
	Field   string                  `json:"field"`
	Verdict mapreduce.ReviewVerdict `json:"verdict"`
	// Value is the right one, as JSON: of ReviewAccept what was found. There is none of other verdicts but
	// ReviewCorrect.
	Value json.RawMessage `json:"value,omitempty"`
	// Passage is what was marked for the value; nil if nothing was.
	Passage *output.Citation `json:"passage,omitempty"`
}

// An Answer is what wakes a unit: what was decided about each value that it waited for.
type Answer struct {
	Decided []Decided `json:"decided"`
	// Over says that the time to wait is over, so there may be values about which nobody has decided.
	Over bool `json:"over,omitempty"`
	// Apart says that what was decided is not in it, as it is too much for a call: it is made of the decisions that
	// are stored when an attempt asks.
	Apart bool `json:"apart,omitempty"`
}

// Encode returns the encoding of an answer.
func (a *Answer) Encode() ([]byte, error) { return json.Marshal(a) }

// DecodeAnswer returns the answer that was encoded.
func DecodeAnswer(data []byte) (*Answer, error) {
	a := new(Answer)
	if err := json.Unmarshal(data, a); err != nil {
		return nil, fmt.Errorf("gate: the answer is none: %w", err)
	}
	return a, nil
}

// Open returns the values about which nobody has decided.
func Open(asks []mapreduce.WaitingValue, decided []Decided) []mapreduce.WaitingValue {
	return slices.DeleteFunc(slices.Clone(asks), func(a mapreduce.WaitingValue) bool {
		return slices.ContainsFunc(decided, func(d Decided) bool { return d.Record == a.Record && d.Field == a.Field })
	})
}

// Apply returns an output as people have decided about its values.
func Apply(s *schema.Schema, out *output.Output, decided []Decided) (*output.Output, error) {
	// The output may be read elsewhere.
	encoded, err := out.Encode()
	if err != nil {
		return nil, err
	}
	if out, err = output.Decode(encoded); err != nil {
		return nil, err
	}

	for i := range decided {
		if err := apply(s, out, &decided[i]); err != nil {
			return nil, err
		}
	}
	return out, ascent.Judge(s, out)
}

// apply applies one decision.
func apply(s *schema.Schema, out *output.Output, d *Decided) error {
	i := slices.IndexFunc(out.Entries, func(e output.Entry) bool {
		return mapreduce.NewRecordID(e.Members[0].Unit, e.Members[0].Record) == d.Record
	})
	p := s.Field(d.Field)
	if i < 0 || p == nil || len(out.Entries[i].Sources) == 0 {
		return fmt.Errorf("gate: the output has no value %q of record %s", d.Field, d.Record)
	}

	e := &out.Entries[i]
	r := merge.Review{
		Field: d.Field, Missing: WhyAbsent, Document: e.Sources[0].Document,
		Order: merge.Order{Unit: e.Members[0].Unit, Record: e.Members[0].Record},
	}
	switch d.Verdict {
	case mapreduce.ReviewAccept, mapreduce.ReviewCorrect:
		value, err := Value(p, d.Value)
		if err != nil {
			return fmt.Errorf("gate: %s of record %s: %w", d.Field, d.Record, err)
		}
		r.Value = value
	case mapreduce.ReviewReject:
		r.Missing = WhyRejected
	case mapreduce.ReviewAbsent:
	default:
		return fmt.Errorf("gate: %s of record %s: %s decides nothing", d.Field, d.Record, d.Verdict)
	}

	if d.Passage != nil {
		r.Citations = []merge.Citation{out.Cite(*d.Passage)}
	}
	e.Accumulator = e.Accumulator.Reviewed(s, r)
	return nil
}

// Value returns a value of a property that stands in JSON, with numbers as they are written.
func Value(p *schema.Property, raw []byte) (any, error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return p.Normalize(v)
}
