package results

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/api/resultfile"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
)

// A unitTally sums up units by level.
type unitTally struct {
	prices Pricing             // of the job's models
	levels map[int]*levelTally // -1 holds parse units
	models map[string]int64    // by the name of a model, the units that it answered
	mended map[string]int64    // by the kind of repair, the units with answers that needed one
	calls  resultfile.List
}

type levelTally struct {
	stage                   string // of the pipeline; empty for units that parse
	units, complete, failed int64
	attempts                int64
	tokens                  mapreduce.Tokens
	cost                    int64 // millionths of a US dollar
	unpriced                bool  // the cost of one of the units is not known
	savings                 mapreduce.Savings
	calls                   mapreduce.CallSums
	busy                    time.Duration
}

// knownCost returns the cost of the level in US dollars; nil if it is not known.
func (l *levelTally) knownCost() *float64 {
	if l.unpriced {
		return nil
	}
	return new(USD(l.cost))
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

func (t *unitTally) addUnit(u *mapreduce.Unit) error {
	l := t.levels[u.Level]
	if l == nil {
		l = &levelTally{stage: u.Stage}
		t.levels[u.Level] = l
	}

	l.units++
	switch u.State {
	case mapreduce.UnitComplete:
		l.complete++
	case mapreduce.UnitFailed:
		l.failed++
	}

	t.countMended(u)
	for _, name := range u.Models {
		t.models[name]++
	}
	l.attempts += int64(u.Attempts)
	l.tokens = l.tokens.Add(u.Tokens)
	l.cost += u.CostMicros
	l.unpriced = l.unpriced || t.prices.unitCost(u) == nil
	l.savings = l.savings.Add(u.Savings)
	l.busy += u.Elapsed
	l.calls = l.calls.Add(u.CallSums)

	// A unit that has spent nothing is no entry of calls.
	if u.Tokens.Total() == 0 && u.CostMicros == 0 && u.CallSums.Calls == 0 && u.Savings == (mapreduce.Savings{}) {
		return nil
	}

	return t.calls.AddValue("", callLine{
		u.ID, u.Level, u.Attempts, u.Tokens.In, u.Tokens.Out, t.prices.unitCost(u), t.prices.savingsOrNil(u.Savings),
		callsOf(u.CallSums),
	})
}

// countMended counts what was mended in the answers of a unit, each kind once.
func (t *unitTally) countMended(u *mapreduce.Unit) {
	for _, kind := range mapreduce.MendedKinds(u.Errors) {
		t.mended[kind]++
	}
}

func (t *unitTally) sortedLevels() []int { return slices.Sorted(maps.Keys(t.levels)) }

// A levelMetrics is an entry of metrics.json's levels.
type levelMetrics struct {
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

func (t *unitTally) levelMetrics() []levelMetrics {
	out := []levelMetrics{}
	for _, n := range t.sortedLevels() {
		l := t.levels[n]
		out = append(out, levelMetrics{
			n, l.stage, l.units, l.complete, l.failed, l.attempts, l.tokens.In, l.tokens.Out, l.knownCost(), l.busy.Seconds(),
			t.prices.savingsOrNil(l.savings), callsOf(l.calls),
		})
	}
	return out
}

// A supersededMetrics is an entry of metrics.json's superseded.
type supersededMetrics struct {
	Level   int      `json:"level"`
	Units   int64    `json:"units"`
	In      int64    `json:"tokens_in"`
	Out     int64    `json:"tokens_out"`
	Cost    *float64 `json:"cost"` // null if it is not known
	Savings *Savings `json:"savings,omitempty"`
	modelCalls
}

func supersededOf(job *mapreduce.Job, prices Pricing) []supersededMetrics {
	out := []supersededMetrics{}
	for _, s := range job.Superseded {
		out = append(out, supersededMetrics{
			s.Level, s.Units, s.Tokens.In, s.Tokens.Out, prices.Cost(s.Tokens, s.CostMicros), prices.savingsOrNil(s.Savings), callsOf(s.CallSums),
		})
	}
	return out
}

// jobMetrics is metrics.json's job.
type jobMetrics struct {
	ID          mapreduce.JobID   `json:"job_id"`
	Provider    string            `json:"provider"`
	Model       string            `json:"model,omitempty"`
	Fallbacks   []string          `json:"fallback_models,omitempty"`
	Parameters  parameters.Set    `json:"parameters,omitzero"` // of answers, that the run gave
	Parallelism int               `json:"parallelism"`
	Seconds     float64           `json:"seconds"`
	Documents   int64             `json:"documents"`
	Units       int64             `json:"units"`
	Failed      int64             `json:"failed_units"`
	Budget      int64             `json:"budget"`
	MaxCost     *float64          `json:"max_cost,omitempty"` // the budget, if it is in dollars
	Labels      map[string]string `json:"labels,omitempty"`
	In          int64             `json:"tokens_in"`
	Out         int64             `json:"tokens_out"`
	Total       int64             `json:"total_tokens"`
	Cost        *float64          `json:"cost"` // null if it is not known
	Unpriced    []string          `json:"unpriced_models,omitempty"`
	AuditHead   string            `json:"audit_head"`
	Prompt      int64             `json:"largest_prompt_bytes,omitempty"` // of all calls of models
}

// writeMetrics writes metrics.json.
func (w *writer) writeMetrics(ctx context.Context) error {
	job, err := w.service.GetJob(ctx, w.config.Job) // its audit chain has grown
	if err != nil {
		return err
	}

	select { // of the other goroutine, which reads the result
	case <-w.read:
	case <-ctx.Done():
		return context.Cause(ctx)
	}

	seconds := job.Updated.Sub(job.Created).Seconds()
	documents := job.Coverage.Documents.Mapped + job.Coverage.Documents.Failed
	var busy float64
	var prompt int64
	for _, l := range w.tally.levels {
		busy += l.busy.Seconds()
		prompt = max(prompt, l.calls.Prompt)
	}

	tokens, mapTokens := float64(job.TotalTokens.Total()), 0.0
	if l := w.tally.levels[0]; l != nil {
		mapTokens = float64(l.tokens.Total())
	}

	return w.dir.WriteFile("metrics.json", func(out *folder.File) error {
		members := []func() error{
			func() error {
				return resultfile.WriteMember(out, "documents_per_minute", roundedRatio(float64(documents)*60, seconds))
			},
			func() error {
				return resultfile.WriteMember(out, "agent_utilization", roundedRatio(busy, seconds*float64(job.Spec.Parallelism)))
			},
			func() error {
				return resultfile.WriteMember(out, "failure_rate", roundedRatio(float64(job.FailedUnits), float64(job.CompletedUnits+job.FailedUnits)))
			},
			func() error {
				return resultfile.WriteMember(out, "tokens_per_document", roundedRatio(tokens, float64(documents)))
			},
			func() error {
				return resultfile.WriteMember(out, "multi_agent_multiplier", roundedRatio(tokens, mapTokens))
			},
			func() error { return resultfile.WriteMember(out, "job", w.jobMetrics(seconds, documents, prompt)) },
			func() error { return resultfile.WriteMember(out, "savings", w.tally.prices.Savings(job.Savings)) },
			func() error { return resultfile.WriteMember(out, "warnings", append([]string{}, job.Warnings...)) },
			func() error { return resultfile.WriteMember(out, "levels", w.tally.levelMetrics()) },
			func() error { return resultfile.WriteMember(out, "superseded", supersededOf(job, w.tally.prices)) },
			func() error { return resultfile.WriteSection(out, "calls", "[", &w.tally.calls, "]") },
		}

		// Parts that a job does not have are left out.
		if planned := PlannedOf(job, w.tally.prices, w.jobCost()); planned != nil {
			members = append(members, func() error { return resultfile.WriteMember(out, "planned", planned) })
		}
		if len(w.tally.models) > 0 {
			members = append(members, func() error { return resultfile.WriteMember(out, "models", w.tally.models) })
		}
		if len(w.tally.mended) > 0 {
			members = append(members, func() error { return resultfile.WriteMember(out, "mended_answers", w.tally.mended) })
		}
		if cascades := w.report.summary.Cascades; len(cascades) > 0 {
			members = append(members, func() error { return resultfile.WriteMember(out, "cascades", json.RawMessage(cascades)) })
		}
		if written := w.report.written; written != nil {
			members = append(members, func() error { return resultfile.WriteMember(out, "citations", written.Measures) })
		}
		return resultfile.WriteObject(out, members)
	})
}

// jobCost returns the cost of the job in US dollars; nil if it is not known of one of its units, or of
// what a resume dropped.
func (w *writer) jobCost() *float64 {
	if cost := w.tally.prices.Cost(w.job.TotalTokens, w.job.CostMicros); cost != nil {
		return cost
	}
	for _, l := range w.tally.levels {
		if l.unpriced {
			return nil
		}
	}
	for _, s := range w.job.Superseded {
		if w.tally.prices.Cost(s.Tokens, s.CostMicros) == nil {
			return nil
		}
	}
	return new(USD(w.job.CostMicros))
}

func (w *writer) jobMetrics(seconds float64, documents, prompt int64) jobMetrics {
	job := w.job
	return jobMetrics{
		ID: job.ID, Provider: job.Spec.Provider, Model: job.Spec.Model, Fallbacks: job.Spec.Fallbacks,
		Parameters: settings.RunParameters(&job.Spec), Parallelism: job.Spec.Parallelism,
		Seconds: seconds, Documents: documents, Units: job.TotalUnits, Failed: job.FailedUnits, Budget: job.Spec.TokenBudget(), MaxCost: MaxCost(&job.Spec), Labels: job.Spec.Labels,
		In: job.TotalTokens.In, Out: job.TotalTokens.Out, Total: job.TotalTokens.Total(), Cost: w.jobCost(), Unpriced: w.tally.prices.Unpriced,
		AuditHead: job.AuditHead, Prompt: prompt,
	}
}
