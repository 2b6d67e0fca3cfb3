package results

import (
	"context"
	"encoding/json"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/api/resultfile"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/costs"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
)

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
	for _, l := range w.tally.Levels {
		busy += l.Busy.Seconds()
		prompt = max(prompt, l.Calls.Prompt)
	}

	tokens, mapTokens := float64(job.TotalTokens.Total()), 0.0
	if l := w.tally.Levels[0]; l != nil {
		mapTokens = float64(l.Tokens.Total())
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
			func() error { return resultfile.WriteMember(out, "savings", w.tally.Prices.Savings(job.Savings)) },
			func() error { return resultfile.WriteMember(out, "warnings", append([]string{}, job.Warnings...)) },
			func() error { return resultfile.WriteMember(out, "levels", w.tally.LevelMetrics()) },
			func() error { return resultfile.WriteMember(out, "superseded", w.tally.Prices.Superseded(job)) },
			func() error { return resultfile.WriteSection(out, "calls", "[", &w.tally.Calls, "]") },
		}

		// Parts that a job does not have are left out.
		if planned := costs.PlannedOf(job, w.tally.Prices, w.tally.CostOf(w.job)); planned != nil {
			members = append(members, func() error { return resultfile.WriteMember(out, "planned", planned) })
		}
		if len(w.tally.Models) > 0 {
			members = append(members, func() error { return resultfile.WriteMember(out, "models", w.tally.Models) })
		}
		if len(w.tally.Mended) > 0 {
			members = append(members, func() error { return resultfile.WriteMember(out, "mended_answers", w.tally.Mended) })
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

func (w *writer) jobMetrics(seconds float64, documents, prompt int64) jobMetrics {
	job := w.job
	return jobMetrics{
		ID: job.ID, Provider: job.Spec.Provider, Model: job.Spec.Model, Fallbacks: job.Spec.Fallbacks,
		Parameters: settings.RunParameters(&job.Spec), Parallelism: job.Spec.Parallelism,
		Seconds: seconds, Documents: documents, Units: job.TotalUnits, Failed: job.FailedUnits, Budget: job.Spec.TokenBudget(), MaxCost: costs.MaxCost(&job.Spec), Labels: job.Spec.Labels,
		In: job.TotalTokens.In, Out: job.TotalTokens.Out, Total: job.TotalTokens.Total(), Cost: w.tally.CostOf(job), Unpriced: w.tally.Prices.Unpriced,
		AuditHead: job.AuditHead, Prompt: prompt,
	}
}
