package wire

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// EncodeSpec encodes the spec of a job.
func EncodeSpec(s *mapreduce.JobSpec) *pb.JobSpec {
	return &pb.JobSpec{
		TenantId:  string(s.Tenant),
		RequestId: string(s.RequestID),

		Pipeline: validText(s.Pipeline), PipelineDefinition: encodeJSON(s.Definition),
		Provider: validText(s.Provider),
		Model:    validText(s.Model),
		Schema:   encodeJSON(s.Schema),
		Vars:     textMap(s.Vars),

		ModelAliases:   textMap(s.Models),
		FallbackModels: validTexts(s.Fallbacks),
		Labels:         textMap(s.Labels),
		DisplayName:    validText(s.Name),

		Parallelism:        clampInt32(s.Parallelism),
		MaxUnitTokens:      clampInt32(s.MaxTokensPerUnit),
		ChunkOverlapTokens: clampInt32(s.ChunkOverlap),
		Priority:           clampInt32(s.Priority),

		ReduceContextTokens: clampInt32(s.ReduceContextLimit),
		ReduceBatchSize:     clampInt32(s.ReduceBatchSize),

		BudgetTokens:  s.TokenBudget(),
		MaxCostMicros: s.MaxCost(),
		ReduceShare:   s.ReduceShare,

		OnError:            encodeChoice[pb.OnError](s.OnError),
		OnBreaker:          encodeChoice[pb.OnBreaker](s.OnBreaker),
		MaxAttempts:        clampInt32(s.MaxAttempts),
		UnitTimeout:        encodeDuration(s.UnitTimeout),
		BreakerThreshold:   clampInt32(s.BreakerThreshold),
		BreakerTimeout:     encodeDuration(s.BreakerTimeout),
		CheckpointInterval: clampInt32(s.CheckpointInterval),
		Capture:            encodeChoice[pb.Capture](s.Capture),
		Cache:              s.Cache,
		ReplayJobId:        string(s.Replay),
		StrictSchema:       s.StrictSchema,

		Strategy:          pb.ReduceStrategy(s.Strategy),
		ChunkSize:         s.ChunkSize,
		TargetTokenBudget: s.TargetTokenBudget,
		ContextWindow:     s.ContextWindow,
		BudgetRatio:       s.BudgetRatio,
		MaxReduceLevels:   s.MaxReduceLevels,
		PromptOverhead:    s.PromptOverhead,
		TraceParent:       validText(s.TraceParent),
		Keep:              encodeDuration(s.Keep),
		Deadline:          encodeTime(s.Deadline),
		ReservedOutput:    s.ReservedOutput,
		Estimator:         s.Estimator,

		Reading: encodeReading(s.Reading),
		Output:  encodeOutput(&s.Output),
	}
}

// encodeOutput encodes where a result is written; the zero is absent.
func encodeOutput(o *mapreduce.Output) *pb.Output {
	if o.Folder == "" && len(o.Formats) == 0 && !o.Citations && !o.NoReport {
		return nil
	}
	return &pb.Output{Folder: validText(o.Folder), Formats: validTexts(o.Formats), Citations: o.Citations, NoReport: o.NoReport}
}

func decodeOutput(d *decoder, p *pb.Output) mapreduce.Output {
	o := mapreduce.Output{
		Folder: d.decodeName("folder", p.GetFolder(), mapreduce.MaxFolder), Citations: p.GetCitations(), NoReport: p.GetNoReport(),
	}

	if len(p.GetFormats()) > maxFormats {
		d.refuseField("formats", "has %d names; at most %d are taken", len(p.GetFormats()), maxFormats)
		return o
	}

	for _, format := range p.GetFormats() {
		o.Formats = append(o.Formats, d.decodeName("formats", format, MaxNames))
	}
	return o
}

// maxFormats bounds the formats of an output.
const maxFormats = 16

// encodeReading encodes how documents are read; the zero is absent.
func encodeReading(r mapreduce.Reading) *pb.Reading {
	if r == (mapreduce.Reading{}) {
		return nil
	}
	l := r.Limits
	return &pb.Reading{
		PageText: pb.PageText(r.PageText), MaxBytes: l.Bytes, MaxTime: encodeDuration(l.Time), MaxPages: clampInt32(l.Pages),
		MaxEntries: clampInt32(l.Entries), MaxUnpackedBytes: l.Unpacked, MaxRatio: l.Ratio,
		MaxNesting: clampInt32(l.Nesting), MaxCells: clampInt32(l.Cells),
	}
}

func decodeReading(d *decoder, p *pb.Reading) mapreduce.Reading {
	r := mapreduce.Reading{Limits: mapreduce.DocumentLimits{
		Bytes: d.decodeCount64("max_bytes", p.GetMaxBytes()), Time: d.decodeDuration("max_time", p.GetMaxTime()),
		Pages: d.decodeCount("max_pages", p.GetMaxPages()), Entries: d.decodeCount("max_entries", p.GetMaxEntries()),
		Unpacked: d.decodeCount64("max_unpacked_bytes", p.GetMaxUnpackedBytes()), Ratio: d.decodeCount64("max_ratio", p.GetMaxRatio()),
		Nesting: d.decodeCount("max_nesting", p.GetMaxNesting()), Cells: d.decodeCount("max_cells", p.GetMaxCells()),
	}}
	if p.GetPageText() != 0 {
		r.PageText = decodeEnum(d, "page_text", p.GetPageText(), lastPageText)
	}
	return r
}

// DecodeSpec decodes the spec of a submission.
func DecodeSpec(p *pb.JobSpec) (mapreduce.JobSpec, error) {
	var d decoder
	s := decodePart(&d, "spec", p, decodeSpec)
	return s, d.firstError()
}

func decodeSpec(d *decoder, p *pb.JobSpec) mapreduce.JobSpec {
	if p == nil {
		p = new(pb.JobSpec)
	}
	budget, currency := decodeBudget(d, p)
	return mapreduce.JobSpec{
		Tenant:    mapreduce.TenantID(d.decodeName("tenant_id", p.GetTenantId(), MaxNames)),
		RequestID: mapreduce.RequestID(d.decodeName("request_id", p.GetRequestId(), MaxNames)),

		Pipeline: p.GetPipeline(), Definition: decodeJSON(p.GetPipelineDefinition()),
		Provider: p.GetProvider(),
		Model:    p.GetModel(),
		Schema:   decodeJSON(p.GetSchema()),
		Vars:     p.GetVars(),
		Models:   p.GetModelAliases(),

		Fallbacks: p.GetFallbackModels(),
		Labels:    p.GetLabels(),
		Name:      p.GetDisplayName(),

		Parallelism:      d.decodeCount("parallelism", p.GetParallelism()),
		MaxTokensPerUnit: d.decodeCount("max_unit_tokens", p.GetMaxUnitTokens()),
		ChunkOverlap:     int(p.GetChunkOverlapTokens()),
		Priority:         int(p.GetPriority()),

		ReduceContextLimit: d.decodeCount("reduce_context_tokens", p.GetReduceContextTokens()),
		ReduceBatchSize:    d.decodeCount("reduce_batch_size", p.GetReduceBatchSize()),

		Budget:      budget,
		BudgetIn:    currency,
		ReduceShare: d.decodeFraction("reduce_share", p.GetReduceShare()),

		OnError:            decodeEnumOrDefault(d, "on_error", p.GetOnError(), lastOnError),
		OnBreaker:          decodeEnumOrDefault(d, "on_breaker", p.GetOnBreaker(), lastOnBreaker),
		MaxAttempts:        d.decodeCount("max_attempts", p.GetMaxAttempts()),
		UnitTimeout:        d.decodeDuration("unit_timeout", p.GetUnitTimeout()),
		BreakerThreshold:   d.decodeCount("breaker_threshold", p.GetBreakerThreshold()),
		BreakerTimeout:     d.decodeDuration("breaker_timeout", p.GetBreakerTimeout()),
		CheckpointInterval: d.decodeCount("checkpoint_interval", p.GetCheckpointInterval()),
		Capture:            decodeEnumOrDefault(d, "capture", p.GetCapture(), lastCapture),
		Cache:              p.GetCache(),
		StrictSchema:       p.GetStrictSchema(),
		Replay:             d.decodeReplay(p.GetReplayJobId()),

		// The rules of these depend on one another: the service has them.
		Strategy:          decodeStrategy(d, "strategy", p.GetStrategy()),
		ChunkSize:         p.ChunkSize,
		TargetTokenBudget: p.TargetTokenBudget,
		ContextWindow:     p.ContextWindow,
		BudgetRatio:       p.BudgetRatio,
		MaxReduceLevels:   p.MaxReduceLevels,
		PromptOverhead:    p.PromptOverhead,
		TraceParent:       d.decodeName("trace_parent", p.GetTraceParent(), MaxNames),
		Keep:              d.decodeDuration("keep", p.GetKeep()),
		Deadline:          d.decodeMoment("deadline", p.GetDeadline()),
		ReservedOutput:    p.ReservedOutput,
		Estimator:         p.Estimator,

		Reading: decodePart(d, "reading", p.GetReading(), decodeReading),
		Output:  decodePart(d, "output", p.GetOutput(), decodeOutput),
	}
}

// A budgeted is a message with a budget, of which one field at most is set.
type budgeted interface {
	GetBudgetTokens() int64
	GetMaxCostMicros() int64
}

// decodeBudget decodes a budget. It is in tokens, or in money.
func decodeBudget(d *decoder, p budgeted) (int64, mapreduce.Currency) {
	tokens := d.decodeCount64("budget_tokens", p.GetBudgetTokens())
	micros := d.decodeCount64("max_cost_micros", p.GetMaxCostMicros())
	switch {
	case tokens > 0 && micros > 0:
		d.refuseField("max_cost_micros", "a job has one budget, in tokens or in money: leave out budget_tokens or max_cost_micros")
	case micros > 0:
		return micros, mapreduce.InDollars
	}
	return tokens, mapreduce.InTokens
}

// EncodeJob encodes a job.
func EncodeJob(j *mapreduce.Job) *pb.Job {
	if j == nil {
		return nil
	}
	return &pb.Job{
		JobId:      string(j.ID),
		Spec:       EncodeSpec(&j.Spec),
		State:      pb.JobState(j.State),
		Phase:      pb.JobState(j.Phase),
		Level:      clampInt32(j.Level),
		Epoch:      j.Epoch,
		CreateTime: encodeTime(j.Created),
		UpdateTime: encodeTime(j.Updated),
		Error:      validText(j.Error),

		TotalUnits:     j.TotalUnits,
		CompletedUnits: j.CompletedUnits,
		FailedUnits:    j.FailedUnits,
		RunningUnits:   j.RunningUnits,
		ParkedUnits:    j.ParkedUnits,
		TotalTokens:    encodeTokens(j.TotalTokens),
		CostMicros:     j.CostMicros,
		Savings:        encodeSavings(j.Savings),
		Coverage: &pb.Coverage{
			Documents:   encodeLedger(j.Coverage.Documents),
			Characters:  encodeLedger(j.Coverage.Characters),
			UnreadBytes: encodeLedger(j.Coverage.Unread),
		},
		AuditHead:        j.AuditHead,
		EndTime:          encodeTime(j.Ended),
		DeleteTime:       encodeTime(j.DeleteAfter),
		Warnings:         validTexts(j.Warnings),
		Superseded:       convertEach(j.Superseded, encodeSpent),
		Stages:           convertEach(j.Stages, encodeStage),
		SkippedDocuments: encodeEach(j.Skipped, encodeSkipped),
		Activity:         convertEach(j.Activity, encodeActivity),
		Plan:             encodeJobPlan(j.Plan),
		CallCount:        j.Calls,
		Causes:           convertEach(j.Causes, encodeCauseMark),
	}
}

func encodeJobPlan(p *mapreduce.JobPlan) *pb.JobPlan {
	if p == nil {
		return nil
	}
	return &pb.JobPlan{TotalUnits: p.Units, CallCount: p.Calls, Tokens: encodeTokens(p.Tokens), CostMicros: p.CostMicros, AskingUnits: p.Asking}
}

func decodeJobPlan(p *pb.JobPlan) *mapreduce.JobPlan {
	if p == nil {
		return nil
	}
	return &mapreduce.JobPlan{Units: p.GetTotalUnits(), Asking: p.GetAskingUnits(), PlanSpend: mapreduce.PlanSpend{
		Calls: p.GetCallCount(), Tokens: decodeTokens(p.GetTokens()), CostMicros: p.GetCostMicros(),
	}}
}

// DecodeJob decodes a job of a reply; nil stays nil.
func DecodeJob(p *pb.Job) *mapreduce.Job {
	if p == nil {
		return nil
	}
	var believed decoder // the server checked the spec when it was submitted
	return &mapreduce.Job{
		ID:      mapreduce.JobID(p.GetJobId()),
		Spec:    decodeSpec(&believed, p.GetSpec()),
		State:   knownOrZero(p.GetState(), lastJobState),
		Phase:   knownOrZero(p.GetPhase(), lastJobState),
		Level:   int(p.GetLevel()),
		Epoch:   p.GetEpoch(),
		Created: decodeTime(p.GetCreateTime()),
		Updated: decodeTime(p.GetUpdateTime()),
		Error:   p.GetError(),

		TotalUnits:     p.GetTotalUnits(),
		CompletedUnits: p.GetCompletedUnits(),
		FailedUnits:    p.GetFailedUnits(),
		RunningUnits:   p.GetRunningUnits(),
		ParkedUnits:    p.GetParkedUnits(),
		TotalTokens:    decodeTokens(p.GetTotalTokens()),
		CostMicros:     p.GetCostMicros(),
		Savings:        decodeSavings(p.GetSavings()),
		Coverage: mapreduce.Coverage{
			Documents:  decodeLedger(p.GetCoverage().GetDocuments()),
			Characters: decodeLedger(p.GetCoverage().GetCharacters()),
			Unread:     decodeLedger(p.GetCoverage().GetUnreadBytes()),
		},
		AuditHead:   p.GetAuditHead(),
		Ended:       decodeTime(p.GetEndTime()),
		DeleteAfter: decodeTime(p.GetDeleteTime()),
		Warnings:    p.GetWarnings(),
		Superseded:  convertEach(p.GetSuperseded(), decodeSpent),
		Stages:      convertEach(p.GetStages(), decodeStage),
		Skipped:     convertEach(p.GetSkippedDocuments(), decodeSkipped),
		Activity:    convertEach(p.GetActivity(), decodeActivity),
		Plan:        decodeJobPlan(p.GetPlan()),
		Calls:       p.GetCallCount(),
		Causes:      convertEach(p.GetCauses(), decodeCauseMark),
	}
}

func encodeCauseMark(m mapreduce.CauseMark) *pb.CauseMark {
	return &pb.CauseMark{
		Cause: validText(m.Cause), State: encodeChoice[pb.CauseState](m.State), Principal: validText(m.By), CreateTime: encodeTime(m.Time), UnitCount: m.Units,
	}
}

func decodeCauseMark(p *pb.CauseMark) mapreduce.CauseMark {
	m := mapreduce.CauseMark{Cause: p.GetCause(), By: p.GetPrincipal(), Time: decodeTime(p.GetCreateTime()), Units: p.GetUnitCount()}
	if state := knownOrZero(p.GetState(), lastCauseState+1); state > 0 {
		m.State = state - 1 // the first of the message is no state
	}
	return m
}

func encodeActivity(a mapreduce.Activity) *pb.Activity {
	return &pb.Activity{
		UnitId: string(a.Unit), Attempt: clampInt32(a.Attempt), NoteNumber: a.Number, Tokens: encodeTokens(a.Tokens), Note: validText(a.Note),
	}
}

func decodeActivity(p *pb.Activity) mapreduce.Activity {
	return mapreduce.Activity{
		Unit: mapreduce.UnitID(p.GetUnitId()), Attempt: int(p.GetAttempt()), Number: p.GetNoteNumber(), Tokens: decodeTokens(p.GetTokens()), Note: p.GetNote(),
	}
}

func encodeStage(s mapreduce.StageProgress) *pb.StageProgress {
	return &pb.StageProgress{
		Stage: validText(s.Name), Phase: pb.JobState(s.Phase), TotalUnits: s.Units, CompletedUnits: s.Completed, FailedUnits: s.Failed,
	}
}

func decodeStage(p *pb.StageProgress) mapreduce.StageProgress {
	return mapreduce.StageProgress{
		Name: p.GetStage(), Phase: knownOrZero(p.GetPhase(), lastJobState),
		Units: p.GetTotalUnits(), Completed: p.GetCompletedUnits(), Failed: p.GetFailedUnits(),
	}
}

func encodeSpent(s mapreduce.Spent) *pb.Spent {
	return &pb.Spent{
		Level: clampInt32(s.Level), Units: s.Units, Tokens: encodeTokens(s.Tokens), CostMicros: s.CostMicros,
		Savings:   encodeSavings(s.Savings),
		CallCount: s.CallSums.Calls, CallLatency: encodeDuration(s.CallSums.Latency),
		ToolCount: s.CallSums.Tools, ToolTime: encodeDuration(s.CallSums.ToolTime), LargestPromptBytes: s.CallSums.Prompt,
	}
}

func decodeSpent(p *pb.Spent) mapreduce.Spent {
	return mapreduce.Spent{
		Level: int(p.GetLevel()), Units: p.GetUnits(), Tokens: decodeTokens(p.GetTokens()), CostMicros: p.GetCostMicros(),
		Savings: decodeSavings(p.GetSavings()),
		CallSums: mapreduce.CallSums{
			Calls: p.GetCallCount(), Latency: p.GetCallLatency().AsDuration(),
			Tools: p.GetToolCount(), ToolTime: p.GetToolTime().AsDuration(), Prompt: p.GetLargestPromptBytes(),
		},
	}
}

// decodeReplay decodes the id of the job that another one repeats, if it does.
func (d *decoder) decodeReplay(id string) mapreduce.JobID {
	if id == "" {
		return ""
	}
	return d.jobID("replay_job_id", id)
}

func encodeSavings(s mapreduce.Savings) *pb.Savings {
	if s == (mapreduce.Savings{}) {
		return nil
	}
	return &pb.Savings{
		AnswerCount: s.Answers, AnswerCostMicros: s.AnswerMicros,
		CacheWriteTokens: s.CacheWrite, CacheReadTokens: s.CacheRead, PromptCostMicros: s.PromptMicros,
	}
}

// decodeSavings decodes the savings of a reply.
func decodeSavings(p *pb.Savings) mapreduce.Savings {
	return mapreduce.Savings{
		Answers: p.GetAnswerCount(), AnswerMicros: p.GetAnswerCostMicros(),
		CacheWrite: p.GetCacheWriteTokens(), CacheRead: p.GetCacheReadTokens(), PromptMicros: p.GetPromptCostMicros(),
	}
}

// checkSavings decodes and checks the savings of a worker.
func checkSavings(d *decoder, p *pb.Savings) mapreduce.Savings {
	d.decodeCount64("answer_count", p.GetAnswerCount())
	d.decodeCount64("answer_cost_micros", p.GetAnswerCostMicros())
	d.decodeCount64("cache_write_tokens", p.GetCacheWriteTokens())
	d.decodeCount64("cache_read_tokens", p.GetCacheReadTokens())
	return decodeSavings(p)
}

func encodeTokens(t mapreduce.Tokens) *pb.Tokens {
	if t == (mapreduce.Tokens{}) {
		return nil
	}
	return &pb.Tokens{Input: t.In, Output: t.Out}
}

func decodeTokens(p *pb.Tokens) mapreduce.Tokens {
	return mapreduce.Tokens{In: p.GetInput(), Out: p.GetOutput()}
}

func encodeLedger(l mapreduce.Ledger) *pb.Ledger {
	return &pb.Ledger{Total: l.Total, Mapped: l.Mapped, Failed: l.Failed, Skipped: l.Skipped}
}

func decodeLedger(p *pb.Ledger) mapreduce.Ledger {
	return mapreduce.Ledger{
		Total:   p.GetTotal(),
		Mapped:  p.GetMapped(),
		Failed:  p.GetFailed(),
		Skipped: p.GetSkipped(),
	}
}
