// Package extract is the agent of the rules provider: it parses documents into
// text, finds records in them by the hints of the schema, and merges what was
// found, all without a model. Equal units have equal outcomes.
//
// It wires packages together and holds no logic of its own: worker/rules finds,
// worker/ground checks each quote against the text, worker/agent/unit does what
// is the same for every provider.
package extract

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/unit"
	"github.com/coditect/mapreduce/worker/ground"
	"github.com/coditect/mapreduce/worker/merge"
	"github.com/coditect/mapreduce/worker/rules"
)

// An Agent runs units by rules. It is safe for concurrent use.
type Agent struct {
	mu       sync.Mutex // guards programs
	programs map[[sha256.Size]byte]*program
	readings readings
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
		return unit.Parse(task)
	}
	p, err := a.program(task.Spec)
	if err != nil {
		return nil, err
	}
	switch task.Kind {
	case mapreduce.KindMap:
		return a.extract(ctx, p, task)
	case mapreduce.KindReduce, mapreduce.KindFinal:
		return p.reduce(task)
	case mapreduce.KindDirect:
		return p.direct(ctx, task)
	}
	return nil, agent.PermanentJob(fmt.Errorf("the rules provider has no units of kind %v", task.Kind))
}

// extract finds the records of a document, or what is a chunk's own of them.
func (a *Agent) extract(ctx context.Context, p *program, task *agent.Task) (*agent.Result, error) {
	if task.Whole != nil {
		if res, err := a.extractWhole(ctx, p, task); res != nil || err != nil {
			return res, err
		}
	}
	return p.extract(task)
}

// extract finds the records in what the unit was given, which may be a chunk with
// its context.
func (p *program) extract(task *agent.Task) (*agent.Result, error) {
	m := unit.NewMapper(task, p.schema)
	return m.Result(p.find(task, m))
}

// direct finds the records of all documents of a job.
func (p *program) direct(ctx context.Context, task *agent.Task) (*agent.Result, error) {
	d, err := unit.NewDirect(task, p.schema)
	if err != nil {
		return nil, err
	}
	for i := range d.Documents() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		one := d.Task(i)
		m := d.Mapper(one)
		d.Take(m, p.find(one, m))
	}
	return d.Result()
}

// find collects the records of a text in m, and says why there are none.
func (p *program) find(task *agent.Task, m *unit.Mapper) string {
	t := task.Text
	found := p.rules.Extract(rules.Unit{
		Text: string(t.Content), CoreStart: t.CoreStart, CoreEnd: t.CoreEnd,
		First: t.ChunkIndex == 0, Last: t.ChunkIndex == t.Chunks-1,
	})
	aligner := unit.Aligner(t, 0, len(t.Content))
	for i, r := range found.Records {
		m.Add(int64(i), m.Accumulate(int64(i), located(aligner, r.Found), missing(r.Missing)))
	}
	return found.Reason
}

// located returns values with the places that their quotes were found at.
func located(aligner ground.Unit, found []rules.Found) []unit.Value {
	values := make([]unit.Value, len(found))
	for i, f := range found {
		values[i] = unit.Value{Field: f.Field, Value: f.Value, Said: f.Confidence}
		if span, _ := aligner.Find(f.Quote, f.Start); span.Verified() {
			values[i].Places = []unit.Place{unit.At(aligner, span)}
		}
	}
	return values
}

func missing(all []rules.Missing) []merge.Missing {
	var out []merge.Missing
	for _, m := range all {
		out = append(out, merge.Missing(m))
	}
	return out
}

// reduce merges the outputs of a group of units.
func (p *program) reduce(task *agent.Task) (*agent.Result, error) {
	out, err := unit.Reduce(p.schema, task, unit.Room(task.Spec), nil)
	if err != nil {
		return nil, err
	}
	return unit.Reduced(out)
}
