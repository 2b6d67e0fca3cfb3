package render

import (
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/text/pack"
)

// A Sketch is what text and pictures show of a DAG: its levels with their sums,
// and the units of those that are small. Its memory does not grow with the
// units, so that a job of any size can be sketched as its units are read. The
// zero Sketch is ready.
type Sketch struct {
	Mode     plan.Mode
	Exact    bool
	Estimate plan.Estimate // Add counts units; the rest is the caller's
	Warnings []plan.Warning

	rows []*row
}

// A Node is a unit of a sketch.
type Node struct {
	ID       mapreduce.UnitID
	Kind     mapreduce.UnitKind
	Stage    string // of the pipeline; empty for parse units
	Level    int
	Inputs   []mapreduce.UnitID // units of the level below
	Items    int                // of the job's inputs that it takes by itself
	Load     plan.Load
	Outcome  *plan.Outcome // of a unit that ran, or was to
	Expected bool          // it depends on sizes that are not known yet
}

// Of returns the sketch of a DAG.
func Of(d *plan.DAG) (*Sketch, error) {
	s := &Sketch{Mode: d.Mode, Exact: d.Exact, Warnings: d.Warnings}

	for _, l := range d.Levels {
		for i := l.First; i < l.End; i++ {
			n := &d.Nodes[i]
			inputs := make([]mapreduce.UnitID, len(n.Inputs))
			for j, in := range n.Inputs {
				inputs[j] = d.Nodes[in].ID
			}

			err := s.Add(Node{
				ID: n.ID, Kind: n.Kind, Stage: n.Stage, Level: n.Level, Inputs: inputs, Items: n.Items, Load: n.Load, Outcome: n.Outcome, Expected: l.Expected,
			})
			if err != nil {
				return nil, err
			}
		}
	}

	s.Estimate = d.Estimate
	return s, nil
}

// A row is a level of a sketch.
type row struct {
	level int
	stage string // of its units; empty if they parse documents
	all   box    // of all its units
	units []box  // of each, while they are no more than MaxShown
	at    map[mapreduce.UnitID]int
}

// isFolded reports whether the level is shown as one node.
func (r *row) isFolded() bool { return r.all.count > MaxShown }

// levelBoxes returns what a picture has for the level.
func (r *row) levelBoxes() []box {
	if r.isFolded() {
		return []box{r.all}
	}
	return r.units
}

// Add adds a unit. Units come level by level, in order; of one that takes what
// does not come before it an error names both.
func (s *Sketch) Add(n Node) error {
	r, err := s.rowOf(n)
	if err != nil {
		return err
	}

	one := box{name: string(n.ID), kind: n.Kind, level: n.Level, expected: n.Expected}
	one.addUnit(&n)
	for _, id := range n.Inputs {
		from, err := s.boxBelow(id)
		if err != nil {
			return errs.New(errs.Invalid, "unit %q depends on %q, which does not come before it", n.ID, id)
		}
		one.addEdge(from, 1)
	}

	r.all.addUnit(&n)
	r.all.name = countOf(r.all.count, "unit")
	for _, e := range one.from {
		r.all.addEdge(e.box, e.count)
	}

	// A level with many units is one box, and forgets them.
	if r.isFolded() {
		r.units, r.at = nil, nil
		return nil
	}

	r.at[n.ID] = len(r.units)
	r.units = append(r.units, one)
	return nil
}

// rowOf returns the row that a unit belongs to.
func (s *Sketch) rowOf(n Node) (*row, error) {
	s.Estimate.Count(n.Level)

	last := len(s.rows) - 1
	switch {
	case last >= 0 && s.rows[last].level > n.Level:
		return nil, errs.New(errs.Invalid, "unit %q of level %d comes after one of level %d", n.ID, n.Level, s.rows[last].level)
	case last < 0 || s.rows[last].level < n.Level:
		s.rows = append(s.rows, &row{
			level: n.Level, stage: n.Stage, all: box{kind: n.Kind, level: n.Level, expected: n.Expected}, at: make(map[mapreduce.UnitID]int),
		})
		last++
	}
	return s.rows[last], nil
}

// boxBelow returns which box of the level below is that of a unit.
func (s *Sketch) boxBelow(id mapreduce.UnitID) (int, error) {
	if len(s.rows) < 2 {
		return 0, errs.New(errs.Invalid, "there is no level below")
	}

	r := s.rows[len(s.rows)-2]
	if r.isFolded() {
		return 0, nil
	}

	at, ok := r.at[id]
	if !ok {
		return 0, errs.New(errs.Invalid, "it is not in the level below")
	}
	return at, nil
}

// allBoxes returns the boxes of all levels, with edges between these, and the
// number of each level's first, with one more at the end.
func (s *Sketch) allBoxes() (all []box, first []int) {
	for i, r := range s.rows {
		first = append(first, len(all))
		for _, b := range r.levelBoxes() {
			if i > 0 {
				b.from = shiftEdges(b.from, first[i-1])
			}
			all = append(all, b)
		}
	}
	return all, append(first, len(all))
}

func shiftEdges(edges []edge, by int) []edge {
	out := make([]edge, len(edges))
	for i, e := range edges {
		out[i] = edge{e.box + by, e.count}
	}
	return out
}

// A box is what a picture has for a node, or for all nodes of a large level.
type box struct {
	name     string // shown; of a folded level its count
	kind     mapreduce.UnitKind
	level    int
	expected bool
	from     []edge

	count       int64
	load        plan.Load
	least, most int // inputs of a unit
	ran         bool
	states      [mapreduce.UnitCancelled + 1]int64
	tokens      mapreduce.Tokens // spent
	cost        int64            // spent, in millionths of a US dollar
	unpriced    bool             // the cost is not known
}

// An edge leads from a box; several outputs may come along it.
type edge struct {
	box   int
	count int
}

func (b *box) addEdge(from, n int) {
	for i := range b.from {
		if b.from[i].box == from {
			b.from[i].count += n
			return
		}
	}
	b.from = append(b.from, edge{from, n})
}

// addUnit takes a unit into the box.
func (b *box) addUnit(n *Node) {
	inputs := len(n.Inputs) + n.Items
	if b.count == 0 || inputs < b.least {
		b.least = inputs
	}
	b.most = max(b.most, inputs)
	b.count++

	l := &b.load
	l.Calls, l.In, l.Out = pack.Sum(l.Calls, n.Load.Calls), pack.Sum(l.In, n.Load.In), pack.Sum(l.Out, n.Load.Out)
	l.Read, l.Size = pack.Sum(l.Read, n.Load.Read), pack.Sum(l.Size, n.Load.Size)

	if o := n.Outcome; o != nil {
		b.ran = true
		b.states[min(o.State, mapreduce.UnitCancelled)]++
		b.tokens, b.cost = b.tokens.Add(o.Tokens), b.cost+o.CostMicros
		b.unpriced = b.unpriced || o.Unpriced
	}
}

// costText is what the units cost, for people.
func (b *box) costText() string {
	if b.unpriced {
		return "cost not known"
	}
	return formatDollars(b.cost)
}

// detailLines are what a picture says of a box beside its name.
func (b *box) detailLines() []string {
	switch {
	case b.ran:
		return []string{b.stateText(), b.costText()}
	case b.load.Calls > 0:
		return []string{fmt.Sprintf("%s, %s tokens", countOf(b.load.Calls, "call"), groupDigits(pack.Sum(b.load.In, b.load.Out)))}
	case b.load.Read > 0:
		return []string{groupDigits(b.load.Read) + " tokens"}
	}
	return nil
}

// stateText says how many units of a box are in which state.
func (b *box) stateText() string {
	var states []string
	for s, n := range b.states {
		switch state := mapreduce.UnitState(s); {
		case n > 0 && b.count == 1:
			states = append(states, state.String())
		case n > 0:
			states = append(states, fmt.Sprintf("%s %s", groupDigits(n), state))
		}
	}
	return strings.Join(states, ", ")
}

// worstState is the one that gives a box its colour: the worst.
func (b *box) worstState() mapreduce.UnitState {
	worst := mapreduce.UnitUnknown
	for s, n := range b.states {
		if n > 0 {
			worst = mapreduce.UnitState(s)
		}
	}
	if b.states[mapreduce.UnitFailed] > 0 {
		return mapreduce.UnitFailed
	}
	return worst
}
