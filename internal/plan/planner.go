package plan

import (
	"cmp"
	"slices"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/text/pack"
)

// A Mode is how a job's tree comes about, as the DAG shows it. Empty is neither.
type Mode string

// The modes.
const (
	ModeStatic   Mode = "STATIC"
	ModeAdaptive Mode = "ADAPTIVE"
)

// ModeOf returns the mode of a job whose record has strategy s: there the
// default stands for ADR-028's, which is neither.
func ModeOf(s mapreduce.Strategy) Mode {
	switch s {
	case mapreduce.StrategyStatic:
		return ModeStatic
	case mapreduce.StrategyAdaptive:
		return ModeAdaptive
	}
	return ""
}

// Workflow returns the name that a trace has for a run in mode m, or "".
func (m Mode) Workflow() string {
	if m == "" {
		return ""
	}
	return "MAP_REDUCE_" + string(m)
}

// A Planner decides the levels of a job. It never changes.
type Planner struct {
	strategy  Strategy
	group     int64 // outputs of one reduce: of Static and Batches
	budget    int64 // tokens that a reduce may read; 0 is no limit
	carried   int64 // tokens of an accumulator
	maxLevels int64
	ordered   bool
	overhead  int64
	reserved  int64
}

// New returns the planner that c asks for, or an error that names the field and
// the rule that c breaks.
func New(c Config) (*Planner, error) {
	if err := c.checkFields(); err != nil {
		return nil, err
	}
	p := &Planner{
		strategy: c.chosenStrategy(), ordered: c.Ordered,
		overhead: c.PromptOverhead, reserved: c.ReservedOutput,
		maxLevels: orDefault(c.MaxReduceLevels, DefaultMaxReduceLevels),
	}

	switch p.strategy {
	case Static:
		p.group = orDefault(c.ChunkSize, DefaultChunkSize)
	case Batches:
		p.group = orDefault(c.ReduceBatchSize, mapreduce.DefaultReduceBatchSize)
	}

	if base, field := c.baseBudget(); field != "" {
		if p.budget = base - pack.Sum(c.PromptOverhead, c.ReservedOutput); p.budget < 1 {
			return nil, errs.Field(field, "a budget of %d tokens leaves nothing to read beside %d of the prompt and %d of the answer",
				base, c.PromptOverhead, c.ReservedOutput)
		}
		p.carried = pack.Carried(p.budget, c.ReservedOutput)
	}
	return p, nil
}

// Strategy returns how outputs are grouped.
func (p *Planner) Strategy() Strategy { return p.strategy }

// Mode returns how the tree comes about.
func (p *Planner) Mode() Mode {
	switch p.strategy {
	case Static:
		return ModeStatic
	case Adaptive:
		return ModeAdaptive
	}
	return ""
}

// Group returns how many outputs of a level a reduce takes; 0 if their sizes
// decide.
func (p *Planner) Group() int64 { return p.group }

// Budget returns how many tokens of outputs a reduce may read in one call; 0 is
// no limit.
func (p *Planner) Budget() int64 { return p.budget }

// Carried returns the most tokens of an accumulator, where a unit has more to
// read than one call may.
func (p *Planner) Carried() int64 { return p.carried }

// Calls divides the inputs of one unit into calls within the budget. It returns one call,
// unless the inputs exceed the budget or are to be folded.
func (p *Planner) Calls(sizes []int64) []pack.Call {
	if p.budget == 0 {
		return pack.Fold(sizes, pack.Sum(sizes...), 0)
	}
	return pack.Fold(sizes, p.budget, p.carried)
}

// An Output is the output of a unit of a level. Failed units have none.
type Output struct {
	Index  int64 // of its unit in the level; grows, and may have gaps
	Tokens int64
	Unit   mapreduce.UnitID // for warnings
	Agent  string           // its role, for warnings; may be empty
}

// An Ended is a level that has ended, so that the next can be planned.
type Ended struct {
	Level     int64 // 0 is the map
	Units     int64 // planned, those that failed too
	Completed int64
	Size      int64 // tokens of all outputs

	// Of the level below, if there is one: what this one was made of.
	BelowCompleted int64
	BelowSize      int64

	// Outputs returns the outputs in order. It is called only where sizes
	// decide: by an adaptive tree whose outputs do not fit one reduce.
	Outputs func() ([]Output, error)
}

// A Next is the level above one that has ended. Exactly one of Final, Group and
// Bins says which outputs its units take.
type Next struct {
	// Final: one unit, the last, takes all outputs.
	Final bool
	// Group, if not 0: the units take runs of that many units of the level
	// below, in order, those that failed counted too, so that the shape of a
	// tree does not depend on luck.
	Group int64
	// Bins: each unit takes the outputs with these indexes, which grow.
	Bins [][]int64
	// Units of the level.
	Units int64
	// Warnings are what the job's owner should know.
	Warnings []Warning
}

// Next returns the level above one that has ended. The same level gives the same
// answer. Levels end: of a static tree because a group has at least two, of an
// adaptive one because each level has fewer outputs than the one below or at
// least 5 % fewer tokens, and MaxReduceLevels besides.
//
// An error of kind Precondition means that nothing is left to reduce.
func (p *Planner) Next(l Ended) (Next, error) {
	if l.Completed <= 0 {
		return Next{}, errs.New(errs.Precondition, "nothing is left to reduce: level %d has no output", l.Level)
	}

	switch p.strategy {
	case Adaptive:
		return p.planAdaptive(l)
	case Batches:
		if l.Level == 0 && l.Size <= p.budget {
			return finalLevel(), nil
		}
	}

	if l.Units <= p.group {
		return finalLevel(), nil
	}
	return Next{Group: p.group, Units: (l.Units-1)/p.group + 1}, nil
}

func finalLevel(w ...Warning) Next { return Next{Final: true, Units: 1, Warnings: w} }

// planAdaptive packs the outputs of a level, or leaves them to the final unit: if they fit
// one call, or else, with a warning, if another level would be no use. The final unit folds
// them then, by calls within the budget.
func (p *Planner) planAdaptive(l Ended) (Next, error) {
	if l.Size <= p.budget {
		return finalLevel(), nil
	}

	warn := Warning{Level: l.Level + 1, Outputs: l.Completed, Tokens: l.Size, Budget: p.budget}
	switch {
	case l.Level > 0 && !hasProgressed(l):
		warn.Kind = NoProgress
		return finalLevel(warn), nil
	case l.Level >= p.maxLevels:
		warn.Kind = MaxLevels
		return finalLevel(warn), nil
	}

	outputs, err := l.Outputs()
	if err != nil {
		return Next{}, err
	}
	if int64(len(outputs)) != l.Completed {
		return Next{}, errs.New(errs.Internal, "level %d has %d outputs, and the sizes of %d were given", l.Level, l.Completed, len(outputs))
	}

	return p.packOutputs(l, outputs, warn), nil
}

// minShrink is the part of a level's tokens, one in so many, that the level
// above has to save if it has as many outputs.
const minShrink = 20

// hasProgressed reports whether level l has come nearer to the end than the one
// below it.
func hasProgressed(l Ended) bool {
	return l.Completed < l.BelowCompleted || l.Size <= l.BelowSize-l.BelowSize/minShrink
}

// packOutputs puts outputs into bins. As many bins as outputs are of use only if some
// of them are to be made smaller by themselves, being larger than the budget.
func (p *Planner) packOutputs(l Ended, outputs []Output, warn Warning) Next {
	sizes := make([]int64, len(outputs))
	for i, o := range outputs {
		sizes[i] = o.Tokens
	}

	packer := pack.Decreasing
	if p.ordered {
		packer = pack.InOrder
	}
	bins := packer(sizes, p.budget)

	next := Next{Units: int64(len(bins)), Bins: make([][]int64, len(bins))}
	for i, b := range bins {
		for _, at := range b.Items {
			next.Bins[i] = append(next.Bins[i], outputs[at].Index)
		}
		slices.Sort(next.Bins[i])
		if b.Over {
			o := outputs[b.Items[0]]
			next.Warnings = append(next.Warnings, Warning{
				Kind: OverBudget, Level: l.Level + 1, Outputs: 1, Tokens: o.Tokens, Budget: p.budget, Unit: o.Unit, Agent: o.Agent,
			})
		}
	}

	// The units come in the order of the first outputs that they take.
	slices.SortStableFunc(next.Bins, func(a, b []int64) int { return cmp.Compare(a[0], b[0]) })

	switch over := len(next.Warnings) > 0; {
	case len(bins) <= 1:
		return finalLevel(next.Warnings...)
	case len(bins) == len(outputs) && !over:
		warn.Kind = NoProgress
		return finalLevel(warn)
	}
	return next
}
