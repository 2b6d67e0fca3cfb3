// Package plan decides the tree of a job: which outputs are reduced together,
// level by level, until one result is left; and what that will take.
//
// A Planner is made of a Config, which is what was asked for, checked. Its Next
// says how the level above one that has ended is made: the engine asks it as
// levels end, and Build asks it with sizes that are expected, so that a plan and
// the run that follows it cannot differ in anything but sizes.
//
// A Graph is a pipeline made ready: from it the levels of a job follow, stage by
// stage, each from what the levels before it came to.
//
// The package is pure: no store, no clock, no goroutine. It imports the vocabulary,
// the pipeline file and internal/text/pack. How a DAG looks is left to plan/render.
package plan

import (
	"math/big"
	"strconv"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Strategy is how the outputs of a level are grouped.
type Strategy string

// The strategies.
const (
	// Batches is ADR-028's rule: one reduce takes all outputs if together they
	// fit the reduce context, or, further up, if they are no more than one
	// batch; else each takes a batch of them.
	Batches Strategy = "batches"
	// Static makes groups of a fixed number. The whole tree is known from the
	// number of units.
	Static Strategy = "static"
	// Adaptive packs outputs by their sizes under a budget, level by level.
	Adaptive Strategy = "adaptive"
)

// Defaults of a Config.
const (
	DefaultChunkSize       = 5   // outputs of a group
	DefaultBudgetRatio     = 0.5 // of the context window
	DefaultMaxReduceLevels = 10
)

// A Config is what was asked for. A field that is nil was not asked for: its
// default applies, and it stands in no other field's way. The zero Config is a
// static tree with groups of five.
type Config struct {
	// Strategy defaults to that of the fields that are set, and if none are to
	// Fallback.
	Strategy Strategy
	// Fallback is what a job gets that asks for nothing. Defaults to Static.
	Fallback Strategy

	// ChunkSize is the most outputs of a group of a static tree. Defaults to 5.
	ChunkSize *int64

	// TargetTokenBudget is how many tokens a call of a reduce of an adaptive tree
	// may take. ContextWindow times BudgetRatio is another way to say it; one of
	// the two must be set. BudgetRatio defaults to 0.5.
	TargetTokenBudget *int64
	ContextWindow     *int64
	BudgetRatio       *float64
	// MaxReduceLevels is the most levels of an adaptive tree between the map
	// and the final reduce. Defaults to 10.
	MaxReduceLevels *int64

	// ReduceContextLimit and ReduceBatchSize are of Batches. They default to
	// 100,000 tokens and 10 outputs.
	ReduceContextLimit *int64
	ReduceBatchSize    *int64

	// Ordered keeps outputs in order where they are packed, for reduces whose result
	// depends on it. Without it packing takes fewer bins.
	Ordered bool
	// Direct lets one call take all the job's inputs, without a tree, if they
	// fit the budget of an adaptive one.
	Direct bool

	// PromptOverhead is the number of tokens of a prompt besides its inputs, and
	// ReservedOutput the number kept free for the answer. Both are subtracted from
	// every budget. They default to 0.
	PromptOverhead int64
	ReservedOutput int64
}

// ConfigOf returns what a job asks for of its tree, whatever its pipeline. A job
// that asks for nothing gets ADR-028's batches.
func ConfigOf(s *mapreduce.JobSpec) Config {
	unlessZero := func(n int) *int64 {
		if n == 0 {
			return nil
		}
		return new(int64(n))
	}

	c := Config{
		Fallback: Batches, ChunkSize: s.ChunkSize, TargetTokenBudget: s.TargetTokenBudget,
		ContextWindow: s.ContextWindow, BudgetRatio: s.BudgetRatio, MaxReduceLevels: s.MaxReduceLevels,
		ReduceContextLimit: unlessZero(s.ReduceContextLimit), ReduceBatchSize: unlessZero(s.ReduceBatchSize),
		PromptOverhead: orDefault(s.PromptOverhead, 0), ReservedOutput: orDefault(s.ReservedOutput, 0),
	}

	switch s.Strategy {
	case mapreduce.StrategyDefault:
	case mapreduce.StrategyStatic:
		c.Strategy = Static
	case mapreduce.StrategyAdaptive:
		c.Strategy = Adaptive
	default:
		c.Strategy = "unknown" // which New refuses
	}
	return c
}

// A rule is a condition on a field of a Config.
type rule struct {
	broken      bool
	field, text string
}

func firstBroken(rules []rule) error {
	for _, r := range rules {
		if r.broken {
			return errs.Field(r.field, "%s", r.text)
		}
	}
	return nil
}

// chosenStrategy returns the strategy that c asks for, set or not.
func (c *Config) chosenStrategy() Strategy {
	switch {
	case c.Strategy != "":
		return c.Strategy
	case c.ChunkSize != nil:
		return Static
	case c.TargetTokenBudget != nil, c.ContextWindow != nil, c.BudgetRatio != nil, c.MaxReduceLevels != nil:
		return Adaptive
	case c.ReduceContextLimit != nil, c.ReduceBatchSize != nil:
		return Batches
	case c.Fallback != "":
		return c.Fallback
	}
	return Static
}

// checkFields refuses what cannot be carried out, naming the field and the rule.
func (c *Config) checkFields() error {
	if err := c.checkNumbers(); err != nil {
		return err
	}
	if err := c.checkOneSize(); err != nil {
		return err
	}
	return c.checkStrategy()
}

func (c *Config) checkNumbers() error {
	below := func(p *int64, least int64) bool { return p != nil && *p < least }
	ratio := c.BudgetRatio
	return firstBroken([]rule{
		{!isKnownStrategy(c.Strategy), "strategy", "must be static or adaptive"},
		{!isKnownStrategy(c.Fallback), "fallback", "must be batches, static or adaptive"},
		{below(c.ChunkSize, 2), "chunk_size", "must be at least 2, or no level would have fewer outputs than the one below"},
		{below(c.TargetTokenBudget, 1), "target_token_budget", "must be at least 1"},
		{below(c.ContextWindow, 1), "context_window", "must be at least 1"},
		{ratio != nil && !(*ratio > 0 && *ratio <= 1), "budget_ratio", "must be above 0 and at most 1"},
		{below(c.MaxReduceLevels, 1), "max_reduce_levels", "must be at least 1"},
		{below(c.ReduceContextLimit, 1), "reduce_context_limit", "must be positive"},
		{below(c.ReduceBatchSize, 2), "reduce_batch_size", "must be at least 2"},
		{c.PromptOverhead < 0, "prompt_overhead", "must not be negative"},
		{c.ReservedOutput < 0, "reserved_output", "must not be negative"},
	})
}

func isKnownStrategy(s Strategy) bool {
	return s == "" || s == Batches || s == Static || s == Adaptive
}

func (c *Config) checkOneSize() error {
	return firstBroken([]rule{
		{c.ChunkSize != nil && c.TargetTokenBudget != nil, "target_token_budget", "cannot be set together with chunk_size: one makes a tree adaptive, the other static"},
		{c.ChunkSize != nil && c.ContextWindow != nil, "context_window", "cannot be set together with chunk_size: one makes a tree adaptive, the other static"},
		{c.TargetTokenBudget != nil && c.ContextWindow != nil, "context_window", "cannot be set together with target_token_budget: both say the budget"},
		{c.BudgetRatio != nil && c.ContextWindow == nil, "budget_ratio", "needs context_window, which it is a part of"},
	})
}

func (c *Config) checkStrategy() error {
	s := c.chosenStrategy()
	budget := c.TargetTokenBudget != nil || c.ContextWindow != nil
	const either = "target_token_budget or context_window"

	of := func(other Strategy) string {
		text := "is for the " + string(other) + " strategy, and this one is " + string(s)
		if s == Batches && other == Adaptive { // nobody has chosen it
			text += ": give " + either + " too"
		}
		return text
	}

	return firstBroken([]rule{
		{s != Static && c.ChunkSize != nil, "chunk_size", of(Static)},
		{s != Adaptive && c.TargetTokenBudget != nil, "target_token_budget", of(Adaptive)},
		{s != Adaptive && c.ContextWindow != nil, "context_window", of(Adaptive)},
		{s != Adaptive && c.MaxReduceLevels != nil, "max_reduce_levels", of(Adaptive)},
		{s != Adaptive && c.Direct, "direct", of(Adaptive)},
		{s != Batches && c.ReduceContextLimit != nil, "reduce_context_limit", of(Batches)},
		{s != Batches && c.ReduceBatchSize != nil, "reduce_batch_size", of(Batches)},
		{s == Adaptive && !budget && c.Strategy == "" && c.MaxReduceLevels != nil, "max_reduce_levels", "is for the adaptive strategy, which needs " + either},
		{s == Adaptive && !budget, "strategy", "adaptive needs " + either},
	})
}

// baseBudget returns the budget before anything is taken off, and the field that it
// comes from. A static tree has none.
func (c *Config) baseBudget() (tokens int64, field string) {
	switch {
	case c.TargetTokenBudget != nil:
		return *c.TargetTokenBudget, "target_token_budget"
	case c.ContextWindow != nil:
		return shareOfWindow(*c.ContextWindow, orDefault(c.BudgetRatio, DefaultBudgetRatio)), "context_window"
	case c.chosenStrategy() == Batches:
		return orDefault(c.ReduceContextLimit, mapreduce.DefaultReduceContextLimit), "reduce_context_limit"
	}
	return 0, ""
}

// Base returns the tokens of c's budget before anything is taken off; 0 if the
// tree has none, as a static one.
func (c Config) Base() int64 {
	tokens, _ := c.baseBudget()
	return tokens
}

// Reserve returns how many tokens of a budget are kept free for an answer that has
// no more than most: all of them, but no more than a quarter. What models may
// answer at most is far more than answers of reduces are: it would leave next to
// nothing of a budget of ordinary size, and a tree of many levels in its place.
func Reserve(budget, most int64) int64 { return max(0, min(most, budget/4)) }

// shareOfWindow returns window × ratio, rounded down, of the ratio as it was written:
// the float next to 0.29 is less, and a hundred of it are not 29.
func shareOfWindow(window int64, ratio float64) int64 {
	r, ok := new(big.Rat).SetString(strconv.FormatFloat(ratio, 'g', -1, 64))
	if !ok {
		return 0
	}
	r.Mul(r, new(big.Rat).SetInt64(window))
	return new(big.Int).Quo(r.Num(), r.Denom()).Int64()
}

func orDefault[T any](p *T, d T) T {
	if p == nil {
		return d
	}
	return *p
}
