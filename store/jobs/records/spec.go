package records

import (
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
)

// SpecOf returns the domain's form of a stored spec.
func SpecOf(s *storagev1.Spec) mapreduce.JobSpec {
	if s == nil {
		s = new(storagev1.Spec)
	}

	return mapreduce.JobSpec{
		Tenant: mapreduce.TenantID(s.GetTenant()), RequestID: mapreduce.RequestID(s.GetRequestId()),
		Pipeline: s.GetPipeline(), Definition: s.GetPipelineDefinition(), Provider: s.GetProvider(), Model: s.GetModel(), Schema: s.GetSchema(), Vars: s.GetVars(), Models: s.GetModels(), Fallbacks: s.GetFallbacks(), Labels: s.GetLabels(), Name: s.GetName(),
		Parallelism: int(s.GetParallelism()), MaxTokensPerUnit: int(s.GetMaxTokensPerUnit()),
		ChunkOverlap: int(s.GetChunkOverlap()), Priority: int(s.GetPriority()),
		ReduceContextLimit: int(s.GetReduceContextLimit()), ReduceBatchSize: int(s.GetReduceBatchSize()),
		Budget: s.GetBudget(), BudgetIn: mapreduce.Currency(s.GetBudgetIn()), ReduceShare: s.GetReduceShare(),
		OnError: mapreduce.OnError(s.GetOnError()), OnBreaker: mapreduce.OnBreaker(s.GetOnBreaker()),
		MaxAttempts: int(s.GetMaxAttempts()), UnitTimeout: time.Duration(s.GetUnitTimeoutMicros()) * time.Microsecond,
		BreakerThreshold: int(s.GetBreakerThreshold()), BreakerTimeout: time.Duration(s.GetBreakerTimeoutMicros()) * time.Microsecond,
		CheckpointInterval: int(s.GetCheckpointInterval()), Capture: mapreduce.Capture(s.GetCapture()),
		Keep: time.Duration(s.GetKeepMicros()) * time.Microsecond, Cache: s.GetCache(), Replay: mapreduce.JobID(s.GetReplay()), StrictSchema: s.GetStrictSchema(),
		Strategy: mapreduce.Strategy(s.GetStrategy()), ChunkSize: s.ChunkSize, TargetTokenBudget: s.TargetTokenBudget,
		ContextWindow: s.ContextWindow, BudgetRatio: s.BudgetRatio, MaxReduceLevels: s.MaxReduceLevels,
		PromptOverhead: s.PromptOverhead, ReservedOutput: s.ReservedOutput, Estimator: s.Estimator, TraceParent: s.GetTraceParent(),
		Reading: readingOf(s.GetReading()), Output: outputOf(s.GetOutput()), Deadline: timeOf(s.GetDeadlineMicros()),
	}
}

// StoredSpec returns the stored form of a spec.
func StoredSpec(s *mapreduce.JobSpec) *storagev1.Spec {
	return &storagev1.Spec{
		DeadlineMicros: microsOf(s.Deadline),
		Tenant:         string(s.Tenant), RequestId: string(s.RequestID), Pipeline: s.Pipeline, PipelineDefinition: s.Definition, Provider: s.Provider, Models: s.Models, Fallbacks: s.Fallbacks, Labels: s.Labels, Name: s.Name,
		Model: s.Model, Schema: s.Schema, Vars: s.Vars, Parallelism: int64(s.Parallelism),
		MaxTokensPerUnit: int64(s.MaxTokensPerUnit), ChunkOverlap: int64(s.ChunkOverlap), Priority: int64(s.Priority),
		ReduceContextLimit: int64(s.ReduceContextLimit), ReduceBatchSize: int64(s.ReduceBatchSize),
		Budget: s.Budget, BudgetIn: uint32(s.BudgetIn), ReduceShare: s.ReduceShare, OnError: uint32(s.OnError), OnBreaker: uint32(s.OnBreaker),
		MaxAttempts: int64(s.MaxAttempts), UnitTimeoutMicros: s.UnitTimeout.Microseconds(),
		BreakerThreshold: int64(s.BreakerThreshold), BreakerTimeoutMicros: s.BreakerTimeout.Microseconds(),
		CheckpointInterval: int64(s.CheckpointInterval), Capture: uint32(s.Capture), KeepMicros: s.Keep.Microseconds(), Cache: s.Cache, Replay: string(s.Replay), StrictSchema: s.StrictSchema,
		Strategy: uint32(s.Strategy), ChunkSize: s.ChunkSize, TargetTokenBudget: s.TargetTokenBudget,
		ContextWindow: s.ContextWindow, BudgetRatio: s.BudgetRatio, MaxReduceLevels: s.MaxReduceLevels,
		PromptOverhead: s.PromptOverhead, ReservedOutput: s.ReservedOutput, Estimator: s.Estimator, TraceParent: s.TraceParent,
		Reading: storedReading(s.Reading), Output: storedOutput(&s.Output),
	}
}

// timeOf returns a stored time; of none the zero.
func timeOf(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// microsOf returns the stored form of a time; 0 of none.
func microsOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// outputOf returns the domain's form of where a result is written; of none its zero.
func outputOf(o *storagev1.ResultOutput) mapreduce.Output {
	return mapreduce.Output{Folder: o.GetFolder(), Formats: o.GetFormats(), Citations: o.GetCitations(), NoReport: o.GetNoReport()}
}

// storedOutput returns the stored form, nil if the client did not say.
func storedOutput(o *mapreduce.Output) *storagev1.ResultOutput {
	if o.Folder == "" && len(o.Formats) == 0 && !o.Citations && !o.NoReport {
		return nil
	}
	return &storagev1.ResultOutput{Folder: o.Folder, Formats: o.Formats, Citations: o.Citations, NoReport: o.NoReport}
}

// readingOf returns the domain's form of how documents are read; of none its zero.
func readingOf(r *storagev1.DocumentReading) mapreduce.Reading {
	return mapreduce.Reading{
		PageText: mapreduce.PageText(r.GetPageText()),
		Limits: mapreduce.DocumentLimits{
			Bytes: r.GetBytes(), Time: time.Duration(r.GetTimeMicros()) * time.Microsecond, Pages: int(r.GetPages()),
			Entries: int(r.GetEntries()), Unpacked: r.GetUnpacked(), Ratio: r.GetRatio(), Nesting: int(r.GetNesting()), Cells: int(r.GetCells()),
		},
	}
}

// storedReading returns the stored form, nil of the zero.
func storedReading(r mapreduce.Reading) *storagev1.DocumentReading {
	if r == (mapreduce.Reading{}) {
		return nil
	}
	l := r.Limits
	return &storagev1.DocumentReading{
		PageText: uint32(r.PageText), Bytes: l.Bytes, TimeMicros: l.Time.Microseconds(), Pages: int64(l.Pages),
		Entries: int64(l.Entries), Unpacked: l.Unpacked, Ratio: l.Ratio, Nesting: int64(l.Nesting), Cells: int64(l.Cells),
	}
}

// PlanOf returns the domain's form of what a job was expected to take; of none nil.
func PlanOf(p *storagev1.JobPlan) *mapreduce.JobPlan {
	if p == nil {
		return nil
	}
	return &mapreduce.JobPlan{Units: p.Units, Asking: p.Asking, PlanSpend: mapreduce.PlanSpend{
		Calls: p.Calls, Tokens: mapreduce.Tokens{In: p.TokensIn, Out: p.TokensOut}, CostMicros: p.CostMicros,
	}}
}

// StoredPlan returns the stored form of what a job is expected to take; nil of nil.
func StoredPlan(p *mapreduce.JobPlan) *storagev1.JobPlan {
	if p == nil {
		return nil
	}
	return &storagev1.JobPlan{Units: p.Units, Asking: p.Asking, Calls: p.Calls, TokensIn: p.Tokens.In, TokensOut: p.Tokens.Out, CostMicros: p.CostMicros}
}

// SpentOf returns the domain's form of what units had spent.
func SpentOf(s *storagev1.Spent) mapreduce.Spent {
	return mapreduce.Spent{
		Level: int(s.Level), Units: s.Units, Tokens: mapreduce.Tokens{In: s.TokensIn, Out: s.TokensOut},
		CostMicros: s.CostMicros, Savings: SavingsOf(s.Savings), CallSums: callSumsOf(s),
	}
}

// callCounter is a stored unit, or several that are summed up.
type callCounter interface {
	GetCalls() int64
	GetLatencyMicros() int64
	GetTools() int64
	GetToolMicros() int64
	GetLargestPrompt() int64
}

// callSumsOf returns what attempts did.
func callSumsOf(of callCounter) mapreduce.CallSums {
	return mapreduce.CallSums{
		Calls: of.GetCalls(), Latency: time.Duration(of.GetLatencyMicros()) * time.Microsecond,
		Tools: of.GetTools(), ToolTime: time.Duration(of.GetToolMicros()) * time.Microsecond,
		Prompt: of.GetLargestPrompt(),
	}
}
