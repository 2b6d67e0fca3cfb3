// Package unit is what units come to have in common whichever provider runs
// them: values with the places that they were read from become the output of a
// unit that extracts, and the inputs of one that merges are decoded and merged as
// far as schema and form decide.
//
// It wires pure packages together: internal/text/confidence says how sure a value is,
// internal/outcome/output and internal/outcome/merge keep what was found. It imports no provider.
package unit

import (
	"cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/api/schema/format"
	"github.com/coditect/mapreduce/api/schema/format/calendar"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/internal/text/confidence"
	"github.com/coditect/mapreduce/internal/text/derive"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/refs"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/agent"
)

// Bytes of what one reduce merges and passes on.
const (
	inputRoom = 32 << 20 // of all that one reduce is given, about
	mostRoom  = 4 << 20
	leastRoom = 64 << 10
)

// Room is how many bytes what a reduce merges may take, so that the reduce above
// it, which is given several of the kind, can hold them.
func Room(spec *mapreduce.JobSpec) int {
	group := int64(cmp.Or(spec.ReduceBatchSize, mapreduce.DefaultReduceBatchSize))
	if spec.ChunkSize != nil {
		group = max(group, *spec.ChunkSize)
	}
	return int(min(max(inputRoom/group, leastRoom), mostRoom))
}

// Reduce merges the outputs of a group of units as far as the schema decides, and
// where that leaves open whether two entities are one, as the judge does, if there
// is one. For room see output.Reduction.
func Reduce(s *schema.Schema, task *agent.Task, room int, judge output.Judge) (*output.Output, error) {
	inputs, referred, err := Inputs(task)
	if err != nil {
		return nil, err
	}
	return output.Reduction{Schema: s, Last: task.Kind == mapreduce.KindFinal, Room: room, Judge: judge}.Of(inputs, referred)
}

// Reduced is the result of a reduce.
func Reduced(out *output.Output) (*agent.Result, error) {
	data, err := out.Encode()
	if err != nil {
		return nil, agent.Permanent(err)
	}
	return &agent.Result{Output: data, Size: token.Unknown, Text: out.Text(), Confidence: 1}, nil
}

// Aligner returns what finds quotes in a stretch of the unit's text, of bytes
// [start,end). Offsets of what it finds are those of the document.
func Aligner(t *protocol.Text, start, end int) ground.Unit {
	before := string(t.Content[:start])
	return ground.Unit{
		Chunk:  ground.NewChunk(string(t.Content[start:end]), start > 0 || t.ByteOffset > 0, end < len(t.Content) || t.ChunkIndex+1 < t.Chunks),
		Points: int(t.CharOffset) + len([]rune(before)), Bytes: int(t.ByteOffset) + start,
	}
}

// A Value is one value of a field, or one element of a list, and where it was
// read.
type Value struct {
	Field  string // path
	Value  any    // normalised, see schema.Property.Normalize
	Said   float64
	Places []Place // none: it is not verified
	Whole  bool    // all of the document was read, not the unit's chunk alone
	Basis  confidence.Basis
	Rivals int // see confidence.Evidence

	Formula string // of a derived value, see package derive

	// Seen is where a model saw the value in a picture; nil if it did not, or if the value has places.
	Seen *merge.Sighting
}

// A Place is where a quote stands.
type Place struct {
	ground.Span
	Before string // the text before it, a line or two
	Quote  string // the text itself, whatever was looked for

	// Evidence is what the place is in; nil if it is in what the unit read.
	Evidence *output.Evidence
}

// At returns the place of what an aligner has found.
func At(u ground.Unit, s ground.Span) Place {
	text, start, end := u.Source(s)
	return Place{Span: s, Before: confidence.Before(text, start), Quote: text[start:end]}
}

// A Mapper collects what a map unit finds.
type Mapper struct {
	task       *agent.Task
	schema     *schema.Schema
	out        *output.Output
	base       int64 // number of the first record
	confidence float64
	values     int
}

// NewMapper returns a Mapper that has found nothing.
func NewMapper(task *agent.Task, s *schema.Schema) *Mapper {
	m := &Mapper{task: task, schema: s, out: &output.Output{}}

	t := task.Text
	if t == nil {
		return m
	}

	// Only the core counts: neighbours read what overlaps as well.
	core := string(t.Content[t.CoreStart:t.CoreEnd])
	if s.HasDates() {
		m.out.Dates = calendar.CountOrders(core)
	}
	if s.HasNumbers() {
		m.out.Numbers = format.CountNumbers(core)
	}
	return m
}

// StyleOf returns how the numbers of a text are written, if the mapper has counted them: those of a
// unit that has no context.
func (m *Mapper) StyleOf(text []byte) *format.NumberStyle {
	if t := m.task.Text; t == nil || !m.schema.HasNumbers() || t.CoreEnd-t.CoreStart != len(text) {
		return nil
	}
	style := m.out.Numbers.Style()
	return &style
}

// Accumulate makes an accumulator of what was found of the unit's nth record.
func (m *Mapper) Accumulate(n int64, values []Value, missing []merge.Missing) merge.Accumulator {
	rec := merge.Record{
		Document: string(m.task.Text.Document),
		Order:    merge.Order{Unit: m.task.Index, Record: m.base + n},
		Missing:  missing,
	}

	for _, found := range values {
		v := merge.Value{Field: found.Field, Value: found.Value, Said: found.Said, Formula: found.Formula}
		if len(found.Places) == 0 {
			v.Seen = found.Seen
		}
		// A value counts as unread if none of its places is in what the unit read.
		v.Unread = len(found.Places) > 0 && !found.Whole
		for _, at := range found.Places {
			v.Unread = v.Unread && at.Outside
			v.Citations = append(v.Citations, m.makeCitation(at))
			v.Confidence = max(v.Confidence, placeConfidence(m.schema.Field(found.Field), &found, at))
		}

		if p := m.schema.Field(found.Field); p != nil && p.Hints.Derived {
			v.Confidence = derivedConfidence(p, &found)
		}

		rec.Values = append(rec.Values, v)
		m.confidence += v.Confidence
		m.values++
	}

	return merge.Accumulate(m.schema, rec)
}

// Add puts a record into the output.
func (m *Mapper) Add(n int64, a merge.Accumulator) {
	entry := output.Entry{Members: []output.Member{{Unit: m.task.Index, Record: m.base + n}}, Accumulator: a}
	if m.schema.Kind == schema.KindRecord {
		entry.Chunks = m.task.Text.Chunks
	}
	m.out.Entries = append(m.out.Entries, entry)
}

// placeConfidence computes the confidence in a value that was read at a place.
func placeConfidence(p *schema.Property, v *Value, at Place) float64 {
	return confidence.Of(confidence.Evidence{
		Property: p, Value: v.Value, Quote: at.Quote, Grade: at.Grade, Before: at.Before, Basis: v.Basis, Rivals: v.Rivals,
	})
}

// Derive judges a derived value by its places.
func (v *Value) Derive(p *schema.Property) derive.Derivation {
	quotes := make([]derive.Quote, len(v.Places))
	for i, at := range v.Places {
		quotes[i].Text = at.Quote
	}
	return derive.Of(p, v.Value, v.Formula, quotes, false)
}

// derivedConfidence computes the confidence in a value that follows from all of its places.
func derivedConfidence(p *schema.Property, v *Value) float64 {
	if len(v.Places) == 0 {
		return 0
	}
	worst := 1.0
	for _, at := range v.Places {
		worst = min(worst, confidence.OfGrade(at.Grade))
	}
	d := v.Derive(p)
	return d.Confidence(worst)
}

// makeCitation makes the citation of a place in the document.
func (m *Mapper) makeCitation(at Place) merge.Citation {
	return m.out.Cite(Cite(m.task, at))
}

// Cite returns the citation of a place in what a unit read of its one document, or in
// evidence.
func Cite(task *agent.Task, at Place) output.Citation {
	if at.Evidence != nil {
		return at.Evidence.Cite(string(task.Unit), at.Span)
	}

	t := task.Text
	c := output.Citation{
		ID:       refs.New(output.HashDocument(string(t.Document), t.SHA256), at.ByteStart, at.ByteEnd, at.Quote),
		Document: string(t.Document), Unit: string(task.Unit),
		Start: int64(at.Start), End: int64(at.End), ByteStart: int64(at.ByteStart), ByteEnd: int64(at.ByteEnd),
		Quote: at.Quote, Grade: string(at.Grade), Outside: at.Outside, Others: at.Span.Places - 1,
	}

	if at.Grade == ground.Fuzzy {
		c.Coverage, c.Density = at.Coverage, at.Density
	}
	return c
}

// Result is the output as it stands. The reason says why there are no records. In a strict
// job the error wraps check.ErrSchema if a record breaks the schema.
func (m *Mapper) Result(reason string) (*agent.Result, error) {
	m.out.Reason = reason

	if m.task != nil && m.task.Spec != nil && m.task.Spec.StrictSchema {
		if err := check.Strict(m.schema, int64(m.task.Text.Chunks), m.out); err != nil {
			return nil, err
		}
	}

	data, err := m.out.Encode()
	if err != nil {
		return nil, agent.Permanent(err)
	}

	confidence := 0.0
	if m.values > 0 {
		confidence = m.confidence / float64(m.values)
	}

	return &agent.Result{Output: data, Size: token.Unknown, Text: m.out.Text(), Confidence: confidence}, nil
}
