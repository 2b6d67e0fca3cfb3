// Package plantest makes plans for tests, in memory, of what the program reads page
// by page.
package plantest

import (
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/plan"
)

// Record returns the DAG of a job that has run, with what became of each unit.
// Units come level by level, in order, with what they depend on.
func Record(mode plan.Mode, units []*mapreduce.Unit) (*plan.DAG, error) {
	d := &plan.DAG{Mode: mode, Exact: true, Nodes: make([]plan.Node, 0, len(units))}
	at := make(map[mapreduce.UnitID]int32, len(units))

	for i, u := range units {
		n := recordedNode(u)
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
			d.Levels = append(d.Levels, plan.Level{Level: u.Level, First: i})
		}

		at[u.ID] = int32(i)
		d.Nodes = append(d.Nodes, n)
		d.Estimate.Count(n.Level)
		d.Levels[len(d.Levels)-1].End = i + 1
	}
	return d, nil
}

func recordedNode(u *mapreduce.Unit) plan.Node {
	outcome := plan.OutcomeOf(u)
	n := plan.Node{ID: u.ID, Kind: u.Kind, Stage: u.Stage, Level: u.Level, Outcome: &outcome}
	if u.Kind == mapreduce.KindMap || u.Kind == mapreduce.KindDirect {
		n.Items = 1
	}
	return n
}
