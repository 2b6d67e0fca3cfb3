// Package rules has the steps of the provider that asks no model: it finds records
// in texts by the hints of the schema, and merges what units came to as far as
// schema and form decide. Equal units have equal outcomes.
//
// It wires packages together: internal/text/rules finds, internal/text/digest chooses sentences,
// internal/text/ground checks each quote against the text, worker/agent/unit does what is the same
// for every provider.
package rules

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/merge"
	"github.com/coditect/mapreduce/internal/outcome/output/check"
	"github.com/coditect/mapreduce/internal/text/confidence"
	"github.com/coditect/mapreduce/internal/text/ground"
	"github.com/coditect/mapreduce/internal/text/rules"
	"github.com/coditect/mapreduce/internal/text/rules/find"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/unit"
	"github.com/coditect/mapreduce/worker/step"
)

// Provider is the provider of these steps.
var Provider = mapreduce.Provider{Name: mapreduce.DefaultProvider}

// New returns the steps of the provider: extract, merge and write. Each is safe for
// concurrent use.
func New() step.Table {
	p := &programs{ready: make(map[[sha256.Size]byte]*program)}
	return step.Table{step.Extract: &extractor{programs: p}, step.Merge: &merger{p}, step.Write: writer{}}
}

// programs are the schemas that were made ready.
type programs struct {
	mu    sync.Mutex // guards ready
	ready map[[sha256.Size]byte]*program
}

// A program is a schema made ready.
type program struct {
	schema *schema.Schema
	rules  *rules.Program
}

// maxPrograms bounds the schemas that are kept ready.
const maxPrograms = 64

// programOf returns the program of a task's records.
func (a *programs) programOf(task *agent.Task) (*program, error) {
	source := task.RecordSchema()
	sum := sha256.Sum256(source)

	a.mu.Lock()
	defer a.mu.Unlock()

	if p := a.ready[sum]; p != nil {
		return p, nil
	}

	s, err := schema.Shared(source)
	if err != nil {
		return nil, agent.PermanentJob(err)
	}

	r, err := rules.Compile(s)
	if err != nil {
		return nil, agent.PermanentJob(err)
	}

	// Nothing tells which schemas are still in use, so all are let go.
	if len(a.ready) == maxPrograms {
		clear(a.ready)
	}

	p := &program{s, r}
	a.ready[sum] = p
	return p, nil
}

// An extractor finds records in texts.
type extractor struct {
	*programs
	readings readingCache
}

// Run implements step.Runner. It finds the records of all the documents that the
// unit has, those of one document, or what is a chunk's own of them.
func (x *extractor) Run(ctx context.Context, task *agent.Task, _ agent.Calls) (*agent.Result, error) {
	res, err := x.extract(ctx, task)
	if errors.Is(err, check.ErrSchema) {
		return nil, agent.Permanent(err) // the rules find the same again
	}
	return res, err
}

func (x *extractor) extract(ctx context.Context, task *agent.Task) (*agent.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	p, err := x.programOf(task)
	if err != nil {
		return nil, err
	}

	if task.Text == nil {
		return p.extractDirect(ctx, task)
	}

	// A document that is too long is read chunk by chunk.
	if task.Whole != nil {
		if res, err := x.extractWhole(ctx, p, task); res != nil || err != nil {
			return res, err
		}
	}

	return p.extractRecords(ctx, task)
}

// A merger merges what units came to.
type merger struct{ *programs }

// Run implements step.Runner.
func (m *merger) Run(ctx context.Context, task *agent.Task, _ agent.Calls) (*agent.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	if !task.MakesRecords() {
		return unit.MergeValues(task)
	}

	p, err := m.programOf(task)
	if err != nil {
		return nil, err
	}

	out, err := unit.Reduce(p.schema, task, unit.Room(task.Spec), nil)
	if err != nil {
		return nil, err
	}

	return unit.Reduced(out)
}

// extractRecords finds the records in what the unit was given, which may be a chunk with
// its context.
func (p *program) extractRecords(ctx context.Context, task *agent.Task) (*agent.Result, error) {
	m := unit.NewMapper(task, p.schema)
	reason, left, err := p.findRecords(ctx, task, m)
	if err != nil {
		return nil, err
	}
	return withErrors(left)(m.Result(reason))
}

// withErrors adds what went wrong without making a unit fail to its result.
func withErrors(texts []string) func(*agent.Result, error) (*agent.Result, error) {
	return func(res *agent.Result, err error) (*agent.Result, error) {
		if err == nil {
			res.Errors = append(res.Errors, texts...)
		}
		return res, err
	}
}

// extractDirect finds the records of all documents of a job.
func (p *program) extractDirect(ctx context.Context, task *agent.Task) (*agent.Result, error) {
	d, err := unit.NewDirect(task, p.schema)
	if err != nil {
		return nil, err
	}

	var left []string
	for i := range d.Documents() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}

		// Each document is read as if it were the only one.
		one := d.Task(i)
		m := d.Mapper(one)
		reason, leftHere, err := p.findRecords(ctx, one, m)
		if err != nil {
			return nil, err
		}

		for _, text := range leftHere {
			left = append(left, string(one.Text.Document)+": "+text)
		}
		d.Take(m, reason)
	}

	return withErrors(left)(d.Result())
}

// findRecords collects the records of a text in m, and says why there are none, and which
// rows of tables were left out.
func (p *program) findRecords(ctx context.Context, task *agent.Task, m *unit.Mapper) (reason string, left []string, err error) {
	t := task.Text
	found, err := p.extract(ctx, rules.Unit{
		Text: string(t.Content), CoreStart: t.CoreStart, CoreEnd: t.CoreEnd,
		First: t.ChunkIndex == 0, Last: t.ChunkIndex == t.Chunks-1, Style: m.StyleOf(t.Content),
	})
	if err != nil {
		return "", nil, err
	}

	aligner := unit.Aligner(t, 0, len(t.Content))
	for i, r := range found.Records {
		m.Add(int64(i), m.Accumulate(int64(i), locateValues(aligner, r.Found), toMissing(r.Missing)))
	}

	return found.Reason, rules.Summary(string(t.Content), found.LeftOut), nil
}

// extract runs the rules on a unit's text until ctx ends. A text that is too long
// for a pattern is so at every attempt.
func (p *program) extract(ctx context.Context, u rules.Unit) (rules.Output, error) {
	stop := func() error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	}

	out, err := p.rules.Extract(u, stop)
	if err != nil && ctx.Err() == nil {
		return out, agent.Permanent(err)
	}

	return out, err
}

// locateValues returns values with the places that their quotes were found at.
func locateValues(aligner ground.Unit, found []find.Found) []unit.Value {
	values := make([]unit.Value, len(found))
	for i, f := range found {
		values[i] = unit.Value{Field: f.Field, Value: f.Value, Basis: confidence.Basis(f.Basis), Rivals: f.Rivals}
		if span, _ := aligner.Find(f.Quote, f.Start); span.Verified() {
			values[i].Places = []unit.Place{unit.At(aligner, span)}
		}
	}
	return values
}

func toMissing(all []rules.Missing) []merge.Missing {
	var out []merge.Missing
	for _, m := range all {
		out = append(out, merge.Missing(m))
	}
	return out
}
