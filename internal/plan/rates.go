package plan

import (
	"cmp"
	"math"
	"math/bits"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/text/pack"
)

// A Merge is how a reduce comes by its output.
type Merge string

// The ways to merge.
const (
	MergeTyped     Merge = "typed"            // computed, no model is called
	MergeModel     Merge = "model"            // a model is called for all of it
	MergeTypedThen Merge = "typed-then-model" // a model is called by the final reduce for what the rules leave open
)

// Defaults of Rates.
const (
	DefaultMapYield    = 0.1 // tokens of output for a token of input
	DefaultReduceYield = 0.6
)

// Rates are what a plan assumes of a job's calls. The zero Rates are those of a
// provider that calls no model: no calls, no tokens, no cost.
type Rates struct {
	// Model: units call a model.
	Model bool
	// Merge defaults to MergeTypedThen.
	Merge Merge

	// MapYield and ReduceYield are the tokens that a unit's output is expected
	// to have for each token that it reads. They default to 0.1 and 0.6.
	MapYield, ReduceYield float64
	// UpperYield is that of a reduce which reads outputs of reduces. It defaults to
	// ReduceYield.
	UpperYield float64
	// Record, if not 0, is the tokens that each document is expected to come to
	// instead, or each of its chunks: at most twice those that are read.
	Record int64

	// Written is how many tokens a model writes of a map's answer, or of a direct unit's, for each
	// that a reduce reads of it: there are names, brackets and confidences besides. It defaults to 1.
	Written float64
	// Short is how answers are given without quotes; nil if all have some.
	Short *Short
	// Apart: what different documents come to is never merged, so that rules leave nothing of
	// it open.
	Apart bool

	// Prompt is the number of tokens of a prompt besides its inputs, and Answer the most
	// that a call may write. They default to the numbers that the planner subtracts from
	// the budget.
	Prompt, Answer int64
	// Rounds is how often at most a map's answer is looked over, which takes a
	// call to find that it is good, and two to mend it.
	Rounds int64

	// Prices of a million tokens, in millionths of a US dollar. They default to
	// nothing.
	InPrice, OutPrice int64

	// UnitTime is what a unit takes apart from its calls, and ReadRate how many
	// tokens of its inputs a second it goes through itself. CallTime is what a
	// call takes until it begins to write, WriteRate how many tokens a second it
	// writes then; 0 means at once.
	UnitTime, CallTime  time.Duration
	ReadRate, WriteRate float64

	// Parallelism is how many units run at a time. Defaults to 20.
	Parallelism int
}

func (r Rates) withDefaults() Rates {
	r.Merge = cmp.Or(r.Merge, MergeTypedThen)
	r.MapYield = cmp.Or(r.MapYield, DefaultMapYield)
	r.ReduceYield = cmp.Or(r.ReduceYield, DefaultReduceYield)
	r.UpperYield = cmp.Or(r.UpperYield, r.ReduceYield)
	r.Written = cmp.Or(r.Written, 1)
	r.Parallelism = cmp.Or(r.Parallelism, mapreduce.DefaultParallelism)
	return r
}

func (r Rates) checkRates() error {
	bad := func(f float64) bool { return !(f >= 0) || math.IsInf(f, 1) }
	return firstBroken([]rule{
		{r.Merge != MergeTyped && r.Merge != MergeModel && r.Merge != MergeTypedThen, "merge", "must be typed, model or typed-then-model"},
		{bad(r.MapYield), "map_yield", "must be a number and not negative"},
		{bad(r.ReduceYield), "reduce_yield", "must be a number and not negative"},
		{bad(r.UpperYield), "upper_yield", "must be a number and not negative"},
		{bad(r.Written), "written", "must be a number and not negative"},
		{r.Record < 0, "record", "must not be negative"},
		{r.Prompt < 0 || r.Answer < 0 || r.Rounds < 0, "prompt", "must not be negative, and neither must answer and rounds"},
		{r.InPrice < 0 || r.OutPrice < 0, "price", "must not be negative"},
		{r.UnitTime < 0 || r.CallTime < 0 || bad(r.ReadRate) || bad(r.WriteRate), "time", "must not be negative"},
		{r.Parallelism < 1, "parallelism", "must be at least 1"},
	})
}

// A Spend is what a job takes in all.
type Spend struct {
	Calls, In, Out int64
	CostMicros     int64 // millionths of a US dollar
}

func (s *Spend) addLoad(l Load) {
	s.Calls, s.In, s.Out = pack.Sum(s.Calls, l.Calls), pack.Sum(s.In, l.In), pack.Sum(s.Out, l.Out)
}

func (r Rates) priceSpend(s *Spend) {
	s.CostMicros = pack.Sum(perMillion(s.In, r.InPrice), perMillion(s.Out, r.OutPrice))
}

// perMillion returns tokens × price ÷ 1,000,000, rounded up.
func perMillion(tokens, price int64) int64 {
	hi, lo := bits.Mul64(uint64(tokens), uint64(price))
	lo, carry := bits.Add64(lo, 999_999, 0)
	if hi += carry; hi >= 1_000_000 {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, 1_000_000)
	return int64(min(q, math.MaxInt64))
}

// An Estimate is the size of a DAG and what it takes.
type Estimate struct {
	Parses        int // units that turn documents into text
	Maps, Reduces int // the direct unit counts as a map
	Levels        int // of reduction, the final one too
	Tasks         int

	// Low leaves out what rules may do without a model; High is if every call
	// writes as much as it may.
	Low, Expected, High Spend
	// Makespan is how long it takes at the parallelism asked for, if nothing is
	// tried again; 0 if no time was given.
	Makespan    time.Duration
	Parallelism int
}

// unitLoad returns what a unit takes that reads outputs of these sizes by calls
// within the budget, most if each writes as much as it may.
func (p *Planner) unitLoad(r Rates, kind mapreduce.UnitKind, s unitSizes, most bool) Load {
	sizes := s.expected
	if most {
		sizes = s.most
	}
	size := pack.Sum(sizes...)
	calls, read := int64(1), size
	if p.budget > 0 && kind != mapreduce.KindMap && kind != mapreduce.KindParse {
		calls, read = pack.Calls(sizes, p.budget, p.carried)
		calls = max(1, calls)
	}

	l := Load{Read: size, Size: scaleUp(size, s.yield)}
	if r.Record > 0 && (kind == mapreduce.KindMap || kind == mapreduce.KindDirect) {
		l.Size = r.recordTokens(sizes)
	}

	answer := max(p.reserved, r.Answer) // what is kept free may be less than calls may write
	switch {
	case most && answer > 0:
		l.Size = answer
	case most:
		l.Size = max(l.Size, size)
	case answer > 0:
		l.Size = min(l.Size, answer)
	}

	if !r.asksModel(kind) {
		return l
	}

	l.Calls = calls
	l.In = pack.Sum(read, saturatingMul(calls, max(p.overhead, r.Prompt)), s.shown)
	l.Out = pack.Sum(l.Size, saturatingMul(calls-1, p.carried)) // all calls but the last write an accumulator
	if kind == mapreduce.KindMap || kind == mapreduce.KindDirect {
		l.Out = r.writtenTokens(l.Size, answer)
	}

	switch {
	case kind == mapreduce.KindMap && !most && r.Short.isFor(size):
		r.Short.answer(&l, s.again)
	case kind == mapreduce.KindMap:
		r.lookOver(&l, most)
	case s.settled && !most:
		l.Calls, l.In, l.Out = 0, 0, 0
	}
	return l
}

// writtenTokens returns what a model writes of which a reduce reads that much, no more than an
// answer may have, if that is known.
func (r Rates) writtenTokens(size, answer int64) int64 {
	written := scaleUp(size, r.Written)
	if answer > 0 {
		written = min(written, answer)
	}
	return written
}

// asksModel reports whether units of a kind call a model.
func (r Rates) asksModel(kind mapreduce.UnitKind) bool {
	switch kind {
	case mapreduce.KindParse:
		return false
	case mapreduce.KindReduce: // what is open below the final reduce may not be so there
		return r.Model && r.Merge == MergeModel
	case mapreduce.KindFinal:
		return r.Model && r.Merge != MergeTyped
	}
	return r.Model
}

// lookOver adds the calls that look a map's answer over: one that finds it good,
// or most of them.
func (r Rates) lookOver(l *Load, most bool) {
	more, written := min(r.Rounds, 1), l.Out
	if r.Short != nil {
		more = 0 // what is not answered shortly is not asked about
	}
	if most {
		more = saturatingMul(r.Rounds, 2)
		l.Out = pack.Sum(l.Out, saturatingMul(more, l.Out))
	}
	l.Calls = pack.Sum(l.Calls, more)
	l.In = pack.Sum(l.In, saturatingMul(more, pack.Sum(l.In, written)))
}

// recordTokens returns what documents are expected to come to, one record each.
func (r Rates) recordTokens(sizes []int64) (total int64) {
	for _, s := range sizes {
		total = pack.Sum(total, min(r.Record, saturatingMul(max(0, s), 2)))
	}
	return total
}

// scaleUp returns n × yield, rounded up.
func scaleUp(n int64, yield float64) int64 {
	f := math.Ceil(float64(n) * yield)
	if f >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(f)
}

func saturatingMul(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi > 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// unitDuration returns how long a unit takes.
func (r Rates) unitDuration(l Load) time.Duration {
	seconds := r.UnitTime.Seconds() + float64(l.Calls)*r.CallTime.Seconds()
	if r.ReadRate > 0 {
		seconds += float64(l.Read) / r.ReadRate
	}
	if r.WriteRate > 0 {
		seconds += float64(l.Out) / r.WriteRate
	}
	const most = float64(math.MaxInt64 / int64(time.Second) / 2)
	return time.Duration(math.Round(min(seconds, most) * float64(time.Second)))
}
