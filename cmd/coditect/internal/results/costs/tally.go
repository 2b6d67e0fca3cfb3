package costs

import (
	"maps"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/resultfile"
)

// A Tally sums up the units of a job by level.
type Tally struct {
	Prices Pricing          // of the job's models
	Levels map[int]*Level   // -1 holds parse units
	Models map[string]int64 // by the name of a model, the units that it answered
	Mended map[string]int64 // by the kind of repair, the units with answers that needed one
	Calls  resultfile.List  // an entry for each unit that spent something
}

// NewTally returns a tally of no unit, which writes its calls to a list.
func NewTally(spec *mapreduce.JobSpec, calls resultfile.List) *Tally {
	return &Tally{
		Prices: PricingOf(spec), Levels: make(map[int]*Level),
		Models: make(map[string]int64), Mended: make(map[string]int64), Calls: calls,
	}
}

// A Level is the sum of the units of one level.
type Level struct {
	Stage                   string // of the pipeline; empty for units that parse
	Units, Complete, Failed int64
	Attempts                int64
	Tokens                  mapreduce.Tokens
	Savings                 mapreduce.Savings
	Calls                   mapreduce.CallSums
	Busy                    time.Duration

	micros   int64 // millionths of a US dollar
	unpriced bool  // the cost of one of the units is not known
}

// Cost returns the cost of the level in US dollars; nil if it is not known.
func (l *Level) Cost() *float64 {
	if l.unpriced {
		return nil
	}
	return new(USD(l.micros))
}

// A callLine is an entry of metrics.json's calls: a unit that spent something.
type callLine struct {
	Unit     mapreduce.UnitID `json:"unit_id"`
	Level    int              `json:"level"`
	Attempts int              `json:"attempts"`
	In       int64            `json:"tokens_in"`
	Out      int64            `json:"tokens_out"`
	Cost     *float64         `json:"cost"` // null if it is not known
	Savings  *Savings         `json:"savings,omitempty"`
	modelCalls
}

// modelCalls are the number of calls of models and of tools, their total latency, and the
// size of the largest prompt of one call.
type modelCalls struct {
	Calls   int64 `json:"model_calls,omitempty"`
	Latency int64 `json:"latency_ms,omitempty"`
	Tools   int64 `json:"tool_calls,omitempty"`
	Prompt  int64 `json:"largest_prompt_bytes,omitempty"`
}

func callsOf(j mapreduce.CallSums) modelCalls {
	return modelCalls{j.Calls, j.Latency.Milliseconds(), j.Tools, j.Prompt}
}

// AddUnit adds a unit to its level.
func (t *Tally) AddUnit(u *mapreduce.Unit) error {
	l := t.Levels[u.Level]
	if l == nil {
		l = &Level{Stage: u.Stage}
		t.Levels[u.Level] = l
	}

	l.Units++
	switch u.State {
	case mapreduce.UnitComplete:
		l.Complete++
	case mapreduce.UnitFailed:
		l.Failed++
	}

	t.countMended(u)
	for _, name := range u.Models {
		t.Models[name]++
	}
	l.Attempts += int64(u.Attempts)
	l.Tokens = l.Tokens.Add(u.Tokens)
	l.micros += u.CostMicros
	l.unpriced = l.unpriced || t.Prices.UnitCost(u) == nil
	l.Savings = l.Savings.Add(u.Savings)
	l.Busy += u.Elapsed
	l.Calls = l.Calls.Add(u.CallSums)

	// A unit that has spent nothing is no entry of calls.
	if u.Tokens.Total() == 0 && u.CostMicros == 0 && u.CallSums.Calls == 0 && u.Savings == (mapreduce.Savings{}) {
		return nil
	}

	return t.Calls.AddValue("", callLine{
		u.ID, u.Level, u.Attempts, u.Tokens.In, u.Tokens.Out, t.Prices.UnitCost(u), t.Prices.savingsOrNil(u.Savings),
		callsOf(u.CallSums),
	})
}

// countMended counts what was mended in the answers of a unit, each kind once.
func (t *Tally) countMended(u *mapreduce.Unit) {
	for _, kind := range mapreduce.MendedKinds(u.Errors) {
		t.Mended[kind]++
	}
}

// SortedLevels returns the levels in their order, with parse units first.
func (t *Tally) SortedLevels() []int { return slices.Sorted(maps.Keys(t.Levels)) }

// A LevelMetrics is an entry of metrics.json's levels.
type LevelMetrics struct {
	Level    int      `json:"level"`
	Stage    string   `json:"stage,omitempty"` // of the pipeline; none of units that parse
	Units    int64    `json:"units"`
	Complete int64    `json:"complete"`
	Failed   int64    `json:"failed"`
	Attempts int64    `json:"attempts"`
	In       int64    `json:"tokens_in"`
	Out      int64    `json:"tokens_out"`
	Cost     *float64 `json:"cost"` // null if it is not known
	Busy     float64  `json:"busy_seconds"`
	Savings  *Savings `json:"savings,omitempty"`
	modelCalls
}

// LevelMetrics returns the levels as metrics.json has them.
func (t *Tally) LevelMetrics() []LevelMetrics {
	out := []LevelMetrics{}
	for _, n := range t.SortedLevels() {
		l := t.Levels[n]
		out = append(out, LevelMetrics{
			n, l.Stage, l.Units, l.Complete, l.Failed, l.Attempts, l.Tokens.In, l.Tokens.Out, l.Cost(), l.Busy.Seconds(),
			t.Prices.savingsOrNil(l.Savings), callsOf(l.Calls),
		})
	}
	return out
}

// A SupersededMetrics is an entry of metrics.json's superseded.
type SupersededMetrics struct {
	Level   int      `json:"level"`
	Units   int64    `json:"units"`
	In      int64    `json:"tokens_in"`
	Out     int64    `json:"tokens_out"`
	Cost    *float64 `json:"cost"` // null if it is not known
	Savings *Savings `json:"savings,omitempty"`
	modelCalls
}

// Superseded returns what a resume of the job dropped, as metrics.json has it.
func (p Pricing) Superseded(job *mapreduce.Job) []SupersededMetrics {
	out := []SupersededMetrics{}
	for _, s := range job.Superseded {
		out = append(out, SupersededMetrics{
			s.Level, s.Units, s.Tokens.In, s.Tokens.Out, p.Cost(s.Tokens, s.CostMicros), p.savingsOrNil(s.Savings), callsOf(s.CallSums),
		})
	}
	return out
}

// CostOf returns the cost of the job in US dollars; nil if it is not known of one of its units, or of
// what a resume dropped.
func (t *Tally) CostOf(job *mapreduce.Job) *float64 {
	if cost := t.Prices.Cost(job.TotalTokens, job.CostMicros); cost != nil {
		return cost
	}

	for _, l := range t.Levels {
		if l.unpriced {
			return nil
		}
	}
	for _, s := range job.Superseded {
		if t.Prices.Cost(s.Tokens, s.CostMicros) == nil {
			return nil
		}
	}
	return new(USD(job.CostMicros))
}
