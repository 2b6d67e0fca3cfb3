package orchestrator

import (
	"cmp"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/plan"
)

// withDefaults fills in what a client left open.
func withDefaults(s mapreduce.JobSpec) mapreduce.JobSpec {
	s.Pipeline = cmp.Or(s.Pipeline, "extract")
	s.Provider = cmp.Or(s.Provider, "rules")
	s.Parallelism = cmp.Or(s.Parallelism, mapreduce.DefaultParallelism)
	s.MaxTokensPerUnit = cmp.Or(s.MaxTokensPerUnit, mapreduce.DefaultMaxTokensPerUnit)
	s.ChunkOverlap = cmp.Or(s.ChunkOverlap, min(mapreduce.DefaultChunkOverlap, s.MaxTokensPerUnit/4))
	s.ReduceShare = cmp.Or(s.ReduceShare, mapreduce.DefaultReduceShare)
	s.MaxAttempts = cmp.Or(s.MaxAttempts, mapreduce.DefaultMaxAttempts)
	s.UnitTimeout = cmp.Or(s.UnitTimeout, mapreduce.DefaultUnitTimeout)
	s.BreakerThreshold = cmp.Or(s.BreakerThreshold, mapreduce.DefaultBreakerThreshold)
	s.BreakerTimeout = cmp.Or(s.BreakerTimeout, mapreduce.DefaultBreakerTimeout)
	s.CheckpointInterval = cmp.Or(s.CheckpointInterval, mapreduce.DefaultCheckpointInterval)
	if p, err := plan.New(treeOf(&s)); err == nil { // else checkSpec says so
		defaultTree(&s, p.Strategy())
	}
	return s
}

// defaultTree fills in what a strategy leaves open. What is filled in asks for
// the same tree.
func defaultTree(s *mapreduce.JobSpec, strategy plan.Strategy) {
	switch strategy {
	case plan.Batches:
		s.ReduceContextLimit = cmp.Or(s.ReduceContextLimit, mapreduce.DefaultReduceContextLimit)
		s.ReduceBatchSize = cmp.Or(s.ReduceBatchSize, mapreduce.DefaultReduceBatchSize)
	case plan.Static:
		s.Strategy = mapreduce.StrategyStatic
		s.ChunkSize = cmp.Or(s.ChunkSize, new(int64(plan.DefaultChunkSize)))
	case plan.Adaptive:
		s.Strategy = mapreduce.StrategyAdaptive
		s.MaxReduceLevels = cmp.Or(s.MaxReduceLevels, new(int64(plan.DefaultMaxReduceLevels)))
		if s.ContextWindow != nil {
			s.BudgetRatio = cmp.Or(s.BudgetRatio, new(plan.DefaultBudgetRatio))
		}
	}
}

// treeOf returns what s asks for of the tree of reduces. A job that asks for
// nothing gets ADR-028's batches.
func treeOf(s *mapreduce.JobSpec) plan.Config {
	c := plan.Config{
		Fallback: plan.Batches, ChunkSize: s.ChunkSize, TargetTokenBudget: s.TargetTokenBudget,
		ContextWindow: s.ContextWindow, BudgetRatio: s.BudgetRatio, MaxReduceLevels: s.MaxReduceLevels,
		ReduceContextLimit: unlessZero(s.ReduceContextLimit), ReduceBatchSize: unlessZero(s.ReduceBatchSize),
	}
	switch s.Strategy {
	case mapreduce.StrategyDefault:
	case mapreduce.StrategyStatic:
		c.Strategy = plan.Static
	case mapreduce.StrategyAdaptive:
		c.Strategy = plan.Adaptive
	default:
		c.Strategy = "unknown" // which plan.New refuses
	}
	return c
}

func unlessZero(n int) *int64 {
	if n == 0 {
		return nil
	}
	return new(int64(n))
}

// CheckSpec returns what SubmitJob would refuse of s, whatever the documents
// are, so that it can be said before any is read.
func CheckSpec(s mapreduce.JobSpec) error {
	s = withDefaults(s)
	return checkSpec(&s)
}

const (
	maxNameBytes   = mapreduce.MaxDocumentID // of a tenant's too, or a request's
	maxSchemaBytes = 64 << 10                // the job's record holds it, and records hold 90 kB
	maxMetadata    = 4 << 10                 // bytes; each of a document's units holds it, and transactions hold 500 units
	maxParallelism = 10_000
	minUnitTokens  = 16
)

// checkSpec refuses a spec that cannot be carried out, naming the field.
func checkSpec(s *mapreduce.JobSpec) error {
	varBytes := 0
	for k, v := range s.Vars {
		varBytes += len(k) + len(v)
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return errs.Field("vars", "%q is not valid UTF-8", k)
		}
	}
	for _, f := range []struct {
		ok          bool
		field, rule string
	}{
		{s.Pipeline == "extract", "pipeline", `must be "extract"`},
		{len(s.Schema) > 0, "schema", "is needed by the extract pipeline"},
		{len(s.Schema)+varBytes <= maxSchemaBytes, "schema", "with the variables must be at most 64 KiB"},
		{validName(string(s.Tenant), true), "tenant", "must be at most 512 bytes of UTF-8 without control characters"},
		{validName(string(s.RequestID), true), "request_id", "must be at most 512 bytes of UTF-8 without control characters"},
		{validName(s.Provider, false), "provider", "must be a name"},
		{validName(s.Model, true), "model", "must be a name"},
		{s.Parallelism >= 1 && s.Parallelism <= maxParallelism, "parallelism", "must be 1 to 10000"},
		{s.MaxTokensPerUnit >= minUnitTokens, "max_tokens_per_unit", "must be at least 16"},
		{s.ChunkOverlap < s.MaxTokensPerUnit/2, "chunk_overlap", "must be less than half of max_tokens_per_unit"},
		{s.Budget >= 0, "budget", "must not be negative"},
		{s.ReduceShare >= 0 && s.ReduceShare < 1, "reduce_share", "must be at least 0 and less than 1"},
		{s.MaxAttempts >= 1 && s.MaxAttempts <= 100, "max_attempts", "must be 1 to 100"},
		{s.UnitTimeout > 0, "unit_timeout", "must be positive"},
		{s.BreakerThreshold >= 1, "circuit_breaker_threshold", "must be at least 1"},
		{s.BreakerTimeout > 0, "circuit_breaker_timeout", "must be positive"},
		{s.CheckpointInterval >= 1, "checkpoint_interval", "must be at least 1"},
		{s.Capture <= mapreduce.CaptureFull, "capture", "must be off, standard or full"},
		{s.OnError <= mapreduce.FailFast, "on_error", "must be continue or fail-fast"},
		{s.OnBreaker <= mapreduce.BreakerSkip, "on_breaker", "must be wait or skip"},
	} {
		if !f.ok {
			return errs.Field(f.field, "%s", f.rule)
		}
	}
	_, err := plan.New(treeOf(s))
	return err
}

func validName(s string, emptyOK bool) bool {
	if s == "" {
		return emptyOK
	}
	if len(s) > maxNameBytes || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			return false
		}
	}
	return true
}

func checkDocument(d *mapreduce.Document, n int64) error {
	if !validName(string(d.ID), false) {
		return errs.Field("documents", "the id of document %d, %.60q with %d bytes, must be 1 to %d bytes of UTF-8 without control characters",
			n+1, d.ID, len(d.ID), mapreduce.MaxDocumentID)
	}
	size := 0
	for k, v := range d.Metadata {
		size += len(k) + len(v)
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return errs.Field("documents", "metadata %q of document %q is not valid UTF-8", k, d.ID)
		}
	}
	if size > maxMetadata {
		return errs.Field("documents", "document %q has %d bytes of metadata; at most %d are taken", d.ID, size, maxMetadata)
	}
	return nil
}
