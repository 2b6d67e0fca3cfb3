// Package extract is the agent of the rules provider: it parses documents into
// text, finds records in them by the hints of the schema, and merges what was
// found, all without a model. Equal units have equal outcomes.
//
// It wires pure packages together and holds no logic of its own: worker/document
// reads, worker/rules finds, worker/ground checks each quote against the text,
// worker/confidence says how sure that is, worker/output and worker/merge reduce.
package extract

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/confidence"
	"github.com/coditect/mapreduce/worker/document"
	"github.com/coditect/mapreduce/worker/ground"
	"github.com/coditect/mapreduce/worker/merge"
	"github.com/coditect/mapreduce/worker/output"
	"github.com/coditect/mapreduce/worker/refs"
	"github.com/coditect/mapreduce/worker/rules"
)

// An Agent runs units by rules. It is safe for concurrent use.
type Agent struct {
	mu       sync.Mutex // guards programs
	programs map[[sha256.Size]byte]*program
}

var _ agent.Agent = (*Agent)(nil)

// New returns an agent.
func New() *Agent { return &Agent{programs: make(map[[sha256.Size]byte]*program)} }

// A program is a schema made ready.
type program struct {
	schema *schema.Schema
	rules  *rules.Program
}

// maxPrograms bounds the schemas that are kept ready.
const maxPrograms = 64

func (a *Agent) program(spec *mapreduce.JobSpec) (*program, error) {
	sum := sha256.Sum256(spec.Schema)
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.programs[sum]; p != nil {
		return p, nil
	}
	s, err := schema.Parse("schema", spec.Schema)
	if err != nil {
		return nil, agent.PermanentJob(err)
	}
	r, err := rules.Compile(s)
	if err != nil {
		return nil, agent.PermanentJob(err)
	}
	if len(a.programs) == maxPrograms {
		clear(a.programs)
	}
	p := &program{s, r}
	a.programs[sum] = p
	return p, nil
}

// Run implements agent.Agent.
func (a *Agent) Run(ctx context.Context, task *agent.Task, _ agent.Calls) (*agent.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if task.Kind == mapreduce.KindParse {
		return parse(task)
	}
	p, err := a.program(task.Spec)
	if err != nil {
		return nil, err
	}
	switch task.Kind {
	case mapreduce.KindMap:
		return p.extract(task)
	case mapreduce.KindReduce, mapreduce.KindFinal:
		return p.reduce(task)
	}
	return nil, agent.PermanentJob(fmt.Errorf("the rules provider has no units of kind %v", task.Kind))
}

// parse turns a document's bytes into text. One that has none gives an empty
// output, by which it is skipped.
func parse(task *agent.Task) (*agent.Result, error) {
	d, err := document.Read(string(task.Text.Document), task.Text.Content, task.Text.MediaType)
	if errors.Is(err, document.ErrNoText) {
		return &agent.Result{Confidence: 1}, nil
	}
	if err != nil {
		return nil, agent.Permanent(err)
	}
	return &agent.Result{Output: []byte(d.Text), Size: tokens(len(d.Text)), Confidence: 1}, nil
}

// tokens estimates the tokens of a text by its bytes.
func tokens(n int) int64 { return int64(n) / 4 }

// extract finds the records of a document, or of a chunk of one.
func (p *program) extract(task *agent.Task) (*agent.Result, error) {
	t := task.Text
	text := string(t.Content)
	found := p.rules.Extract(rules.Unit{
		Text: text, CoreStart: t.CoreStart, CoreEnd: t.CoreEnd,
		First: t.ChunkIndex == 0, Last: t.ChunkIndex == t.Chunks-1,
	})
	m := &mapper{
		task:    task,
		aligner: ground.Unit{Chunk: ground.New(text), Points: int(t.CharOffset), Bytes: int(t.ByteOffset)},
		out:     &output.Output{Reason: found.Reason},
	}
	for i, r := range found.Records {
		m.record(p.schema, int64(i), r)
	}
	return m.result()
}

// A mapper collects what a map unit found.
type mapper struct {
	task       *agent.Task
	aligner    ground.Unit
	out        *output.Output
	size       int
	confidence float64
	values     int
}

func (m *mapper) record(s *schema.Schema, n int64, r rules.Record) {
	rec := merge.Record{
		Document: string(m.task.Text.Document),
		Order:    merge.Order{Unit: m.task.Index, Record: n},
	}
	for _, f := range r.Found {
		v := merge.Value{Field: f.Field, Value: f.Value, Said: f.Confidence}
		if span, _ := m.aligner.Find(f.Quote, f.Start); span.Verified() {
			v.Citations = []merge.Citation{m.cite(span)}
			v.Confidence = m.sure(s.Field(f.Field), f.Value, span)
		}
		rec.Values = append(rec.Values, v)
		m.size += len(f.Field) + len(f.Quote) + len(fmt.Sprint(f.Value)) + 16
		m.confidence += v.Confidence
		m.values++
	}
	for _, missing := range r.Missing {
		rec.Missing = append(rec.Missing, merge.Missing{Field: missing.Field, Reason: missing.Reason})
	}
	entry := output.Entry{
		Members:     []output.Member{{Unit: m.task.Index, Record: n}},
		Accumulator: merge.Accumulate(s, rec),
	}
	if s.Kind == schema.KindRecord {
		entry.Chunks = m.task.Text.Chunks
	}
	m.out.Entries = append(m.out.Entries, entry)
}

// sure computes the confidence in a value that was read at a place.
func (m *mapper) sure(p *schema.Property, value any, span ground.Span) float64 {
	text, start, end := m.aligner.Source(span)
	return confidence.Of(confidence.Evidence{
		Property: p, Value: value, Quote: text[start:end], Grade: span.Grade, Before: confidence.Before(text, start),
	})
}

// cite makes the citation of a place in the document. Its quote is what stands
// there, whatever was looked for.
func (m *mapper) cite(at ground.Span) merge.Citation {
	t := m.task.Text
	text, start, end := m.aligner.Source(at)
	quote := text[start:end]
	return m.out.Cite(output.Citation{
		ID:       refs.New(output.HashDocument(string(t.Document), t.SHA256), at.ByteStart, at.ByteEnd, quote),
		Document: string(t.Document), Unit: string(m.task.Unit),
		Start: int64(at.Start), End: int64(at.End), ByteStart: int64(at.ByteStart), ByteEnd: int64(at.ByteEnd),
		Quote: quote, Grade: string(at.Grade),
	})
}

func (m *mapper) result() (*agent.Result, error) {
	data, err := m.out.Encode()
	if err != nil {
		return nil, agent.Permanent(err)
	}
	confidence := 0.0
	if m.values > 0 {
		confidence = m.confidence / float64(m.values)
	}
	return &agent.Result{Output: data, Size: tokens(m.size), Confidence: confidence}, nil
}

// reduce merges the outputs of a group of units.
func (p *program) reduce(task *agent.Task) (*agent.Result, error) {
	var inputs, referred []*output.Output
	for _, in := range task.Inputs {
		if in.Failed {
			continue
		}
		out, err := output.Decode(in.Data)
		if err != nil {
			return nil, agent.Permanent(fmt.Errorf("output of %s: %w", in.Unit, err))
		}
		if in.Referred {
			referred = append(referred, out)
		} else {
			inputs = append(inputs, out)
		}
	}
	data, err := output.Reduce(p.schema, inputs, referred, task.Kind == mapreduce.KindFinal).Encode()
	if err != nil {
		return nil, agent.Permanent(err)
	}
	return &agent.Result{Output: data, Size: tokens(len(data)), Confidence: 1}, nil
}
