package orchestrator

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/orchestrator/plan"
	"github.com/coditect/mapreduce/orchestrator/token"
)

// withDefaults fills in what a client left open.
func withDefaults(s mapreduce.JobSpec) mapreduce.JobSpec {
	s.Pipeline = cmp.Or(s.Pipeline, "extract")
	s.Provider = cmp.Or(s.Provider, "rules")
	s.Parallelism = cmp.Or(s.Parallelism, mapreduce.DefaultParallelism)
	s.MaxTokensPerUnit = cmp.Or(s.MaxTokensPerUnit, mapreduce.DefaultMaxTokensPerUnit)
	s.ChunkOverlap = cmp.Or(s.ChunkOverlap, min(mapreduce.DefaultChunkOverlap, s.MaxTokensPerUnit/4))
	s.Estimator = cmp.Or(s.Estimator, token.O200kBase)
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

// complete returns a spec that can be carried out with all that its client left
// open, as every node and worker is to see it; or an error that names the field.
// The same spec is planned as is run.
func (c *Config) complete(s mapreduce.JobSpec) (mapreduce.JobSpec, error) {
	s = withDefaults(s)
	if err := checkSpec(&s); err != nil {
		return s, err
	}
	c.takeOff(&s)
	_, err := plan.New(treeOf(&s))
	return s, err
}

// takeOff fills in what calls take of the budget of their reduces beside what they
// read. A job that repeats another has the other's tree, whatever its prompts would
// take today.
func (c *Config) takeOff(s *mapreduce.JobSpec) {
	tree := treeOf(s)
	budget := tree.Base()
	if budget == 0 || s.Replay != "" {
		return
	}
	prompt, answer := c.Overhead(s)
	if s.PromptOverhead == nil && prompt > 0 {
		s.PromptOverhead = &prompt
	}
	if s.ReservedOutput == nil && answer > 0 {
		s.ReservedOutput = new(plan.Reserve(budget, answer))
	}
}

// treeOf returns what s asks for of the tree of reduces. A job that asks for
// nothing gets ADR-028's batches.
func treeOf(s *mapreduce.JobSpec) plan.Config {
	c := plan.ConfigOf(s)
	p, err := pipelineOf(s)
	if err != nil {
		return c // checkSpec says so
	}
	if parts, err := partsOf(p); err == nil { // likewise
		c.Direct, c.Ordered = parts.direct != nil, parts.group.Fold
	}
	return c
}

// pipelineOf returns the pipeline of a job: the one that it brings with it, or one
// that comes with the program.
func pipelineOf(s *mapreduce.JobSpec) (*pipeline.Pipeline, error) {
	if len(s.Definition) == 0 {
		return pipeline.Preset(cmp.Or(s.Pipeline, "extract"))
	}
	return pipeline.Parse("definition", s.Definition)
}

// pipelineParts are the stages of a pipeline by what the engine does for them.
type pipelineParts struct {
	mapping *pipeline.Stage // one unit for each document, or part of one
	group   *pipeline.Stage // the tree above them
	direct  *pipeline.Stage // one unit for all documents, if they fit a call; may be nil
}

// partsOf returns the stages of a pipeline, or an error if it has others than the
// engine carries out.
func partsOf(p *pipeline.Pipeline) (pipelineParts, error) {
	var parts pipelineParts
	for _, s := range p.Stages {
		to := &parts.group
		switch {
		case s.From == pipeline.Documents && s.Each == pipeline.EachAll:
			to = &parts.direct
		case s.Each == pipeline.EachDocument, s.Each == pipeline.EachChunk:
			to = &parts.mapping
		case s.Each != pipeline.EachGroup:
			return parts, unsupported(s, "each: %s", s.Each)
		}
		if *to != nil {
			return parts, unsupported(s, "a second stage of its kind beside %s", (*to).Name)
		}
		*to = s
		if err := supported(s); err != nil {
			return parts, err
		}
	}
	if parts.mapping == nil || parts.group == nil || parts.group.From != parts.mapping.Name {
		return parts, errs.Field("pipeline", "%s needs a stage with each: document or chunk and a stage with each: group that reads it", p.Name)
	}
	return parts, parts.checkConditions()
}

func unsupported(s *pipeline.Stage, format string, args ...any) error {
	return errs.Field("pipeline", "the stage %s has %s, which the engine does not carry out", s.Name, fmt.Sprintf(format, args...))
}

// supported refuses a stage with keys that would be without effect.
func supported(s *pipeline.Stage) error {
	for _, k := range []struct {
		set bool
		key string
	}{
		{s.Output.Kind != pipeline.OutputRecords, "output: " + s.Output.Kind},
		{s.Output.Schema != nil, "a schema of its own"},
		{s.Model != "", "a model of its own"},
		{len(s.Tools) > 0, "tools"},
		{s.Limits != pipeline.Limits{}, "limits"},
		{s.Parallel != 0, "parallel"},
		{s.OnError != "", "on_error"},
		{
			s.Strategy != "" || s.ChunkSize != nil || s.TargetTokenBudget != nil || s.ContextWindow != nil || s.BudgetRatio != nil ||
				s.MaxReduceLevels != nil || s.ReduceContextLimit != nil || s.ReduceBatchSize != nil, "a tree of its own",
		},
	} {
		if k.set {
			return unsupported(s, "%s", k.key)
		}
	}
	return nil
}

// checkConditions refuses conditions other than the one by which the engine decides
// whether one unit reads all documents: that they fit the budget.
func (parts pipelineParts) checkConditions() error {
	fits, larger := "tokens <= budget", "tokens > budget"
	if parts.direct == nil {
		fits, larger = "", ""
	}
	for _, c := range []struct {
		stage *pipeline.Stage
		when  string
	}{{parts.direct, fits}, {parts.mapping, larger}, {parts.group, ""}} {
		if c.stage == nil || c.stage.When == "" { // of the last stage over documents
			continue
		}
		if strings.Join(strings.Fields(c.stage.When), " ") != c.when {
			return unsupported(c.stage, "when: %s", c.stage.When)
		}
	}
	return nil
}

// checkPipeline refuses a pipeline that cannot be carried out, or that lacks what
// the run should give it, naming the field and the rule.
func checkPipeline(s *mapreduce.JobSpec) error {
	p, err := pipelineOf(s)
	if err != nil {
		return err
	}
	if p.Name != s.Pipeline {
		return errs.Field("pipeline", "is %.80q, and its definition is of %q", s.Pipeline, p.Name)
	}
	parts, err := partsOf(p)
	if err != nil {
		return err
	}
	if err := p.CheckInputs(s.Vars); err != nil {
		return err
	}
	if parts.group.Merge == "model" && s.Provider == "rules" {
		return errs.Field(fmt.Sprintf("stages[%d].merge", p.Index(parts.group.Name)), "must be typed with the provider rules, which asks no model")
	}
	if len(s.Definition) == 0 {
		return nil // which has no examples, so that the schema is left to those who read it
	}
	parsed, err := schema.Parse("schema", s.Schema)
	if err != nil {
		return errs.Field("schema", "%s", err)
	}
	return p.CheckExamples(parsed)
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
		{s.Pipeline == "extract" || len(s.Definition) > 0, "pipeline", `must be "extract", or come with its definition`},
		{len(s.Schema) > 0, "schema", "is needed: it says what is to be found"},
		{len(s.Schema)+len(s.Definition)+varBytes <= maxSchemaBytes, "schema", "with the pipeline and the variables must be at most 64 KiB"},
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
	if err := checkPipeline(s); err != nil {
		return err
	}
	if _, err := token.Named(s.Estimator, nil); err != nil {
		return errs.Field("estimator", "%s", err)
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
