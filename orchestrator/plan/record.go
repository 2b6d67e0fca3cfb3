package plan

import (
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// Record returns the DAG of a job that has run, with what became of each unit.
// Units come level by level, in order, with what they depend on.
func Record(mode Mode, units []*mapreduce.Unit) (*DAG, error) {
	d := &DAG{Mode: mode, Exact: true, Nodes: make([]Node, 0, len(units))}
	at := make(map[mapreduce.UnitID]int32, len(units))
	for i, u := range units {
		n := recorded(u)
		for _, id := range u.DependsOn {
			in, ok := at[id]
			if !ok {
				return nil, errs.New(errs.Invalid, "unit %q depends on %q, which does not come before it", u.ID, id)
			}
			n.Inputs = append(n.Inputs, in)
		}
		if last := len(d.Levels) - 1; last < 0 || d.Levels[last].Level != u.Level {
			if last >= 0 && d.Levels[last].Level > u.Level {
				return nil, errs.New(errs.Invalid, "unit %q of level %d comes after one of level %d", u.ID, u.Level, d.Levels[last].Level)
			}
			d.Levels = append(d.Levels, Level{Level: u.Level, First: i})
		}
		at[u.ID] = int32(i)
		d.Nodes = append(d.Nodes, n)
		d.Levels[len(d.Levels)-1].End = i + 1
	}
	d.Estimate = d.count()
	return d, nil
}

func recorded(u *mapreduce.Unit) Node {
	outcome := OutcomeOf(u)
	n := Node{ID: u.ID, Kind: u.Kind, Stage: u.Stage, Level: u.Level, Outcome: &outcome}
	if u.Kind == mapreduce.KindMap || u.Kind == mapreduce.KindDirect {
		n.Items = 1
	}
	return n
}

// OutcomeOf returns what became of a unit.
func OutcomeOf(u *mapreduce.Unit) Outcome {
	return Outcome{State: u.State, Attempts: u.Attempts, Tokens: u.Tokens, CostMicros: u.CostMicros, Elapsed: u.Elapsed}
}
