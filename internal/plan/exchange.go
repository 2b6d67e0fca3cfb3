package plan

import (
	"fmt"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// maxWarnings is how many warnings a plan passes on: each of many outputs may be
// worth one.
const maxWarnings = 100

// Plan returns the DAG in the form of the vocabulary, for clients.
func (d *DAG) Plan() *mapreduce.Plan {
	e := d.Estimate
	p := &mapreduce.Plan{
		Strategy: strategies[d.Mode], Exact: d.Exact,
		Tasks: make([]mapreduce.PlanTask, len(d.Nodes)),
		Estimate: mapreduce.PlanEstimate{
			Parses: e.Parses, Maps: e.Maps, Reduces: e.Reduces, Levels: e.Levels,
			Low: e.Low.Spent(), Expected: e.Expected.Spent(), High: e.High.Spent(), Parallelism: e.Parallelism, Makespan: e.Makespan,
		},
	}

	for i := range d.Nodes {
		p.Tasks[i] = d.taskAt(i)
	}
	for _, l := range d.Levels {
		p.Levels = append(p.Levels, mapreduce.PlanLevel{Level: l.Level, Tasks: l.Count(), Expected: l.Expected})
	}
	for _, w := range d.Warnings[:min(len(d.Warnings), maxWarnings)] {
		p.Warnings = append(p.Warnings, mapreduce.PlanWarning{Kind: string(w.Kind), Message: w.String()})
	}

	if more := len(d.Warnings) - maxWarnings; more > 0 {
		p.Warnings = append(p.Warnings, mapreduce.PlanWarning{Kind: string(d.Warnings[maxWarnings].Kind), Message: fmt.Sprintf("and %d more warnings", more)})
	}
	return p
}

var strategies = map[Mode]mapreduce.Strategy{ModeStatic: mapreduce.StrategyStatic, ModeAdaptive: mapreduce.StrategyAdaptive}

// Spent returns what a job takes in the form of the vocabulary.
func (s Spend) Spent() mapreduce.PlanSpend {
	return mapreduce.PlanSpend{Calls: s.Calls, Tokens: mapreduce.Tokens{In: s.In, Out: s.Out}, CostMicros: s.CostMicros}
}

func (d *DAG) taskAt(i int) mapreduce.PlanTask {
	n := &d.Nodes[i]
	t := mapreduce.PlanTask{
		Unit: n.ID, Kind: n.Kind, Stage: n.Stage, Level: n.Level, Items: n.Items,
		Read: n.Load.Read, Written: n.Load.Size, Calls: n.Load.Calls, Tokens: mapreduce.Tokens{In: n.Load.In, Out: n.Load.Out},
	}
	for _, in := range n.Inputs {
		t.DependsOn = append(t.DependsOn, d.Nodes[in].ID)
	}
	return t
}

// From returns the DAG that was passed on as p, without what its calls take at
// most. Of a task that depends on what does not come before it, or is of no
// level, an error names it.
func From(p *mapreduce.Plan) (*DAG, error) {
	e := p.Estimate
	d := &DAG{
		Mode: ModeOf(p.Strategy), Exact: p.Exact, Nodes: make([]Node, 0, len(p.Tasks)),
		Estimate: Estimate{
			Parses: e.Parses, Maps: e.Maps, Reduces: e.Reduces, Levels: e.Levels, Tasks: len(p.Tasks),
			Low: spendFrom(e.Low), Expected: spendFrom(e.Expected), High: spendFrom(e.High), Parallelism: e.Parallelism, Makespan: e.Makespan,
		},
	}

	at := make(map[mapreduce.UnitID]int32, len(p.Tasks))
	for _, l := range p.Levels {
		first := len(d.Nodes)
		for range l.Tasks {
			if err := d.appendTask(p, l.Level, at); err != nil {
				return nil, err
			}
		}
		d.Levels = append(d.Levels, Level{Level: l.Level, First: first, End: len(d.Nodes), Expected: l.Expected})
	}

	if n := len(d.Nodes); n < len(p.Tasks) {
		return nil, errs.New(errs.Invalid, "task %q of a plan is of no level", p.Tasks[n].Unit)
	}

	for _, w := range p.Warnings {
		d.Warnings = append(d.Warnings, Warning{Kind: WarningKind(w.Kind), Text: w.Message})
	}
	return d, nil
}

// appendTask adds the next task of a plan, which has to be of a level.
func (d *DAG) appendTask(p *mapreduce.Plan, level int, at map[mapreduce.UnitID]int32) error {
	i := len(d.Nodes)
	if i == len(p.Tasks) || p.Tasks[i].Level != level {
		return errs.New(errs.Invalid, "level %d of a plan has fewer tasks than it says", level)
	}

	t := &p.Tasks[i]
	n := Node{
		ID: t.Unit, Kind: t.Kind, Stage: t.Stage, Level: t.Level, Items: t.Items,
		Load: Load{Calls: t.Calls, In: t.Tokens.In, Out: t.Tokens.Out, Read: t.Read, Size: t.Written},
	}

	for _, id := range t.DependsOn {
		in, ok := at[id]
		if !ok {
			return errs.New(errs.Invalid, "task %q of a plan depends on %q, which does not come before it", t.Unit, id)
		}
		n.Inputs = append(n.Inputs, in)
	}

	at[t.Unit] = int32(i)
	d.Nodes = append(d.Nodes, n)
	return nil
}

func spendFrom(s mapreduce.PlanSpend) Spend {
	return Spend{Calls: s.Calls, In: s.Tokens.In, Out: s.Tokens.Out, CostMicros: s.CostMicros}
}
