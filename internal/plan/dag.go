package plan

import (
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// SchemaVersion is that of the document that a DAG is shown as.
const SchemaVersion = mapreduce.PlanVersion

// A DAG is the tree of a job: before it runs, see Build, or after, see Record.
type DAG struct {
	Mode     Mode
	Exact    bool    // every node is known; else those above the map are expected
	Nodes    []Node  // level by level, in order; inputs come before what takes them
	Levels   []Level // likewise
	Estimate Estimate
	Warnings []Warning
}

// A Level is one of a DAG: its nodes [First, End).
type Level struct {
	Level      int // -1 are parse units, 0 takes documents
	First, End int
	Expected   bool // its nodes depend on sizes that are not known yet
}

// Count returns the number of the level's nodes.
func (l Level) Count() int { return l.End - l.First }

// A Node is a unit of a DAG.
type Node struct {
	ID      mapreduce.UnitID
	Kind    mapreduce.UnitKind
	Stage   string // of the pipeline; empty for parse units
	Level   int
	Inputs  []int32  // positions of the nodes whose outputs it takes, growing
	Items   int      // of the job's inputs that it takes by itself: 1 for a map, all for direct
	Load    Load     // expected
	Most    Load     // if every call writes as much as it may
	Outcome *Outcome // of a unit that ran, or was to
}

// A Load holds the sizes of a unit's input and output, and its calls of a model.
type Load struct {
	Calls   int64
	In, Out int64 // tokens of the calls
	Read    int64 // tokens of its inputs
	Size    int64 // tokens of its output
}

// An Outcome is what became of a unit.
type Outcome struct {
	State      mapreduce.UnitState
	Attempts   int
	Tokens     mapreduce.Tokens
	CostMicros int64
	Unpriced   bool // the cost is not known, as a model that may have answered has no price
	Elapsed    time.Duration
}

// RequireExact returns an error of kind Precondition if the DAG is not exact:
// the tree of an adaptive job does not exist before its outputs do.
func (d *DAG) RequireExact() error {
	if d.Exact {
		return nil
	}
	return errs.New(errs.Precondition, "the tree depends on the sizes of outputs that do not exist yet: only the map level is known, the rest is an estimate")
}

// Check reports what is wrong with a DAG: a node that is there twice or takes
// something that does not come before it, an output that two reduces of a level
// take, or one that none takes but for the last. The error names the unit.
func (d *DAG) Check() error {
	seen := make(map[mapreduce.UnitID]bool, len(d.Nodes))
	taken := make([]bool, len(d.Nodes))
	reduced := make(map[int32]int) // by what level of reduces an output is taken

	for i := range d.Nodes {
		n := &d.Nodes[i]
		if seen[n.ID] {
			return errs.New(errs.Invalid, "there are two units %q", n.ID)
		}
		seen[n.ID] = true

		if len(n.Inputs) == 0 && n.Items == 0 && n.Kind != mapreduce.KindParse {
			return errs.New(errs.Invalid, "unit %q takes nothing", n.ID)
		}

		for _, in := range n.Inputs {
			switch {
			case in < 0 || int(in) >= i:
				return errs.New(errs.Invalid, "unit %q takes an output of a unit that does not come before it", n.ID)
			case n.isReduce() && taken[in] && reduced[in] == n.Level && d.Nodes[in].Kind != mapreduce.KindParse:
				return errs.New(errs.Invalid, "unit %q takes the output of %q, which another one takes", n.ID, d.Nodes[in].ID)
			}
			taken[in] = true
			if n.isReduce() {
				reduced[in] = n.Level
			}
		}
	}

	return d.checkTaken(taken)
}

// isReduce reports whether a unit makes one output of several, so that no other of
// its level takes the same.
func (n *Node) isReduce() bool {
	return n.Kind == mapreduce.KindReduce || n.Kind == mapreduce.KindFinal
}

func (d *DAG) checkTaken(taken []bool) error {
	last := len(d.Nodes) - 1
	for i := range taken {
		if n := &d.Nodes[i]; !taken[i] && i != last && n.Kind != mapreduce.KindParse {
			return errs.New(errs.Invalid, "%s leaves out one of its inputs: no unit takes the output of %q", d.consumerName(n.Level), n.ID)
		}
	}
	return nil
}

// consumerName names what ought to take the outputs of a level.
func (d *DAG) consumerName(level int) string {
	for _, l := range d.Levels {
		if l.Level == level+1 && l.Count() == 1 {
			return "unit \"" + string(d.Nodes[l.First].ID) + "\""
		}
	}
	return "the level above"
}

// Skipped returns the units that cannot run as certain others failed: those of
// whose inputs none is left, themselves and whatever depends on nothing else.
// An error of kind Precondition says that the last unit is one of them, so that
// there is no result.
func (d *DAG) Skipped(failed func(node int) bool) ([]int, error) {
	gone := make([]bool, len(d.Nodes))
	var skipped []int

	for i := range d.Nodes {
		n := &d.Nodes[i]
		left := len(n.Inputs) == 0
		for _, in := range n.Inputs {
			left = left || !gone[in]
		}

		if !left {
			skipped = append(skipped, i)
		}
		// A unit that failed has no output, as one that cannot run has none.
		gone[i] = !left || failed(i)
	}

	if n := len(skipped); n > 0 && skipped[n-1] == len(d.Nodes)-1 {
		return skipped, errs.New(errs.Precondition, "%q has no input: all that it depends on failed", d.Nodes[len(d.Nodes)-1].ID)
	}
	return skipped, nil
}

// Count counts a unit of a level.
func (e *Estimate) Count(level int) {
	e.Tasks++
	switch {
	case level < 0:
		e.Parses++
	case level == 0:
		e.Maps++
	default:
		e.Reduces++
		e.Levels = max(e.Levels, level)
	}
}
