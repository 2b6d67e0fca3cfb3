package enginetest

import (
	"cmp"
	"iter"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// These yields some documents.
func These(docs ...*mapreduce.Document) iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		for _, d := range docs {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// A Task is a unit of a plan, or one that ran, by what both know.
type Task struct {
	Unit      mapreduce.UnitID
	Kind      mapreduce.UnitKind
	Level     int
	DependsOn []mapreduce.UnitID
}

// TasksOf returns the units of a plan.
func TasksOf(p *mapreduce.Plan) (out []Task) {
	for _, t := range p.Tasks {
		out = append(out, Task{t.Unit, t.Kind, t.Level, t.DependsOn})
	}
	return out
}

// Tasks returns the units of a job, by level and place.
func (n *Node) Tasks(id mapreduce.JobID) (out []Task) {
	n.T.Helper()
	units := n.Units(id)
	ordered := make([]*mapreduce.Unit, 0, len(units))
	for _, u := range units {
		ordered = append(ordered, u)
	}
	slices.SortFunc(ordered, func(a, b *mapreduce.Unit) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Index, b.Index))
	})
	for _, u := range ordered {
		out = append(out, Task{u.ID, u.Kind, u.Level, u.DependsOn})
	}
	return out
}

// Units asks for map units of so many tokens, with an overlap.
func Units(tokens, overlap int) func(*mapreduce.JobSpec) {
	return func(s *mapreduce.JobSpec) { s.MaxTokensPerUnit, s.ChunkOverlap = tokens, overlap }
}
