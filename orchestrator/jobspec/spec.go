// Package jobspec completes and checks what a client asks of a job, and says what
// follows from it: the pipeline and its graph, the stages of levels and units, and
// what counts tokens.
package jobspec

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/label"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/text/token"
)

// Rules are what a deployment decides of the specs of its jobs. All fields are needed.
type Rules struct {
	// Provider returns what is known of a provider.
	Provider func(name string) mapreduce.Provider
	// Overhead returns the tokens that a call of a job's reduces needs besides its inputs:
	// those of the prompt, and the most of the answer.
	Overhead func(spec *mapreduce.JobSpec) (prompt, answer int64)
	// Count counts the tokens of a text of a job that names no other estimator.
	Count func(text string) int
	// Check returns an error that names the field if no worker could carry out a job,
	// such as a schema that is none, a provider that there is not, or a setting that its
	// model cannot have. nil refuses nothing.
	Check func(spec *mapreduce.JobSpec) error
	// Advise returns what the owner of a job should know of what no worker does as the job
	// asks. nil returns nothing.
	Advise func(spec *mapreduce.JobSpec) []string
}

// A draft is a spec with the defaults of what a client left open, and its pipeline, which is
// parsed once.
type draft struct {
	spec     mapreduce.JobSpec
	pipeline *pipeline.Pipeline
	warnings []string // of what the run sets wrongly
	err      error    // why there is no pipeline; checkSpec says so
}

func newDraft(s mapreduce.JobSpec) *draft {
	_ = s.SpreadModels() // what is wrong with a list is told by checkSpec
	d := &draft{spec: s.WithDefaults()}
	if d.pipeline, d.warnings, d.err = boundPipeline(&d.spec); d.err != nil {
		return d
	}

	// The strategy of the tree decides which of its fields have defaults.
	if g, err := d.graph(); err == nil { // else checkSpec says so
		defaultTree(&d.spec, g.Tree().Strategy())
	}
	return d
}

// graph returns the graph of the pipeline, as the spec sets its tree now.
func (d *draft) graph() (*plan.Graph, error) {
	return plan.NewGraph(d.pipeline, plan.ConfigOf(&d.spec))
}

// defaultTree sets the fields that a strategy leaves open, so that the tree stays the
// same.
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

// CheckOpen returns what would be refused of a spec, whatever the documents are, as
// far as its client has filled it in.
func (r *Rules) CheckOpen(s mapreduce.JobSpec) error {
	d := newDraft(s)
	r.setDeadline(d)
	return r.checkSpec(d)
}

// A Completed is a spec that can be carried out with all that its client left open, as every
// node and worker is to see it, and the graph of its pipeline.
type Completed struct {
	Spec     *mapreduce.JobSpec
	Graph    *plan.Graph
	warnings []string // of what the run sets wrongly
}

// Complete fills in what the client of a spec left open, or returns an error that names the
// field. The same spec is planned as is run.
func (r *Rules) Complete(s mapreduce.JobSpec) (*Completed, error) {
	d := newDraft(s)
	r.setDeadline(d)
	if err := r.checkSpec(d); err != nil {
		return nil, err
	}

	r.takeOff(&d.spec)
	graph, err := d.graph()
	if err != nil {
		return nil, err
	}
	return &Completed{Spec: &d.spec, Graph: graph, warnings: d.warnings}, nil
}

// takeOff fills in what calls take of the budget of their reduces beside what they
// read. A job that repeats another has the other's tree, whatever its prompts would
// take today.
func (r *Rules) takeOff(s *mapreduce.JobSpec) {
	budget := plan.ConfigOf(s).Base()
	if budget == 0 || s.Replay != "" {
		return
	}

	prompt, answer := r.Overhead(s)
	if s.PromptOverhead == nil && prompt > 0 {
		s.PromptOverhead = &prompt
	}
	if s.ReservedOutput == nil && answer > 0 {
		s.ReservedOutput = new(plan.Reserve(budget, answer))
	}
}

// pipelineOf returns the pipeline of a job: the one that it brings with it, or one
// that comes with the program. Its stages have what the run sets of them.
func pipelineOf(s *mapreduce.JobSpec) (*pipeline.Pipeline, error) {
	p, _, err := boundPipeline(s)
	return p, err
}

// boundPipeline is pipelineOf with what the run sets wrongly.
func boundPipeline(s *mapreduce.JobSpec) (p *pipeline.Pipeline, warnings []string, err error) {
	if len(s.Definition) == 0 {
		p, err = pipeline.Preset(cmp.Or(s.Pipeline, mapreduce.DefaultPipeline))
	} else {
		p, err = pipeline.Parse("definition", s.Definition)
	}
	if err != nil {
		return nil, nil, err
	}
	p, warnings = p.Bind(s.Vars)
	return p, warnings, nil
}

// Warnings returns what the owner of a job should know of what the job asks for: values
// that cannot be used, in place of which defaults are, and what workers do otherwise.
func (r *Rules) Warnings(c *Completed) []string {
	warnings := slices.Clone(c.warnings)
	if r.Advise != nil && c.Spec.Replay == "" { // which asks no model
		warnings = append(warnings, r.Advise(c.Spec)...)
	}
	return warnings
}

// graphOf returns the graph of the pipeline of a job whose spec was completed. A job that asks for no tree gets
// ADR-028's batches.
func graphOf(s *mapreduce.JobSpec) (*plan.Graph, error) {
	p, err := pipelineOf(s)
	if err != nil {
		return nil, err
	}
	return plan.NewGraph(p, plan.ConfigOf(s))
}

// ForStage returns the spec of a job as the units of a stage run with it: by the
// stage's model, in the time that it gives them, no more of them at a time than it
// says, and with its answer to failures.
func ForStage(s mapreduce.JobSpec, stage *pipeline.Stage) mapreduce.JobSpec {
	if names, err := s.StageModels(stage.Model); err == nil && len(names) > 0 {
		s.Provider, s.Model, _ = strings.Cut(names[0], "/")
		s.Fallbacks = names[1:]
	}

	if d, err := time.ParseDuration(stage.Limits.Time); err == nil && d > 0 {
		s.UnitTimeout = d
	}

	if n := stage.Parallel; n > 0 {
		s.Parallelism = int(min(int64(s.Parallelism), n))
	}

	switch stage.OnError {
	case "continue":
		s.OnError = mapreduce.Continue
	case "fail-fast":
		s.OnError = mapreduce.FailFast
	}
	return s
}

// unwritten returns what a provider that asks no model does not know of a value that it is
// to write, or "". Values are merged without that, and a report may be one text.
func unwritten(p *pipeline.Pipeline, stage *pipeline.Stage) string {
	switch {
	case stage.Output.Kind == pipeline.OutputRecords || stage.Output.Kind == pipeline.OutputPassages || stage.Each == pipeline.EachGroup:
		return ""
	case stage.Output.Schema == nil && stage.Output.Kind == pipeline.OutputReport:
		return ""
	case stage.Output.Schema == nil:
		return "the output needs a schema, with the hint write at its properties"
	}

	s, err := schema.Shared(stage.Output.Schema)
	if err != nil || s.Kind != schema.KindRecord {
		return "the schema has to be of an object"
	}

	known, choices := false, p.Choices(stage)
	for _, one := range s.Properties {
		has := one.Hints.Write != "" || one.Hints.Given != "" || one.Hints.Select || choices[one.Name] != nil
		if one.Required && !has {
			return fmt.Sprintf("the hint write of the schema has to say what stands in %s", one.Name)
		}
		known = known || has
	}

	if !known {
		return "no property of the schema has the hint write"
	}
	return ""
}

// checkStages refuses stages that no worker could run, whatever it offers.
func (r *Rules) checkStages(p *pipeline.Pipeline, s *mapreduce.JobSpec) error {
	for i, stage := range p.Stages {
		field := func(key string) string { return fmt.Sprintf("stages[%d].%s", i, key) }
		if _, err := s.StageModels(stage.Model); err != nil {
			return errs.Field(field("model"), "%s", err)
		}

		if key, err := r.checkMembers(stage, s); err != nil {
			return errs.Field(field(key), "%s", err)
		}

		own := ForStage(*s, stage)
		provider := r.Provider(own.Provider)

		for n, name := range stage.Agents {
			m := p.Agents[name].Model
			if all, err := s.StageModels(m); err != nil || len(all) > 0 && !strings.HasPrefix(all[0], own.Provider+"/") {
				return errs.Field(field(fmt.Sprintf("agents[%d]", n)), "%s has the model %q, which is not of the stage's provider %s; give it a model of this provider, or a stage of its own", name, m, own.Provider)
			}
		}

		switch {
		case len(stage.Tools) > 0 && provider.Lacks("agent"):
			return errs.Field(field("tools"), "needs a provider with agents that use tools, and %s has none", provider.Name)
		case stage.Output.Kind == pipeline.OutputRecords && stage.Output.Schema == nil && len(s.Schema) == 0:
			return errs.Field("schema", "is needed: it says what stage %s is to find", stage.Name)
		case len(stage.Tools) > 0: // what its agents make, their provider knows
		case stage.Merge == "model" && !provider.Models:
			return errs.Field(field("merge"), "must be typed with the provider %s, which asks no model", provider.Name)
		case stage.Output.Kind != pipeline.OutputRecords && stage.Output.Kind != pipeline.OutputPassages && provider.Lacks("write"):
			return errs.Field(field("output"), "is %s, but the provider %s makes only records; give the stage a model", stage.Output.Kind, provider.Name)
		case !provider.Models && unwritten(p, stage) != "":
			return errs.Field(field("output"), "is %s, but the provider %s writes only extracts: %s; or give the stage a model", stage.Output.Kind, provider.Name, unwritten(p, stage))
		}
	}
	return nil
}

// checkPipeline refuses a pipeline that cannot be carried out, or that lacks what
// the run should give it, naming the field and the rule.
func (r *Rules) checkPipeline(d *draft) error {
	p, s := d.pipeline, &d.spec
	if d.err != nil {
		return d.err
	}

	if p.Name != s.Pipeline {
		return errs.Field("pipeline", "is %.80q, but its definition has the name %q", s.Pipeline, p.Name)
	}

	if err := p.CheckInputs(s.Vars); err != nil {
		return err
	}
	if err := checkCascade(p, s); err != nil {
		return err
	}
	if err := checkReview(p, s); err != nil {
		return err
	}
	if err := r.checkStages(p, s); err != nil {
		return err
	}

	if len(s.Definition) == 0 || len(s.Schema) == 0 {
		return nil // which has no examples, so that the schema is left to Check
	}

	parsed, err := schema.Shared(s.Schema)
	if err != nil {
		return errs.Field("schema", "%s", err)
	}
	return p.CheckExamples(parsed)
}

const (
	maxNameBytes   = mapreduce.MaxDocumentID // of a tenant's too, or a request's
	maxSchemaBytes = 64 << 10                // the job's record holds it, and records hold 90 kB
	maxParallelism = 10_000
	minUnitTokens  = 16
)

// checkSpec refuses a spec that cannot be carried out, naming the field.
func (r *Rules) checkSpec(d *draft) error {
	s := &d.spec
	if err := s.SpreadModels(); err != nil {
		return err
	}

	// The variables count with the schema and the pipeline: the job's record holds them
	// all.
	varBytes := 0
	for k, v := range s.Vars {
		varBytes += len(k) + len(v)
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return errs.Field("vars", "%q is not valid UTF-8", k)
		}
	}

	if len(s.Definition) == 0 && d.err != nil {
		return d.err // there is no such preset
	}

	for _, f := range []struct {
		ok          bool
		field, rule string
	}{
		{len(s.Schema)+len(s.Definition)+varBytes <= maxSchemaBytes, "schema", "with the pipeline and the variables must be at most 64 KiB"},
		{ValidName(string(s.Tenant), true), "tenant", "must be at most 512 bytes of UTF-8 without control characters"},
		{ValidName(string(s.RequestID), true), "request_id", "must be at most 512 bytes of UTF-8 without control characters"},
		{ValidName(s.Provider, false), "provider", "must be 1 to 512 bytes of UTF-8 without control characters"},
		{!slices.ContainsFunc(s.Fallbacks, func(n string) bool { return !ValidName(n, false) || !strings.Contains(n, "/") }) && len(s.Fallbacks) < mapreduce.MaxModels, "fallback_models", "must be at most 7 names, each provider/model of at most 512 bytes"},
		{ValidName(s.Model, true), "model", "must be at most 512 bytes of UTF-8 without control characters"},
		{s.Parallelism >= 1 && s.Parallelism <= maxParallelism, "parallelism", "must be 1 to 10000"},
		{s.MaxTokensPerUnit >= minUnitTokens, "max_tokens_per_unit", "must be at least 16"},
		{s.ChunkOverlap < s.MaxTokensPerUnit/2, "chunk_overlap", "must be less than half of the tokens that a unit may have"},
		{s.Budget >= 0, "budget", "must not be negative"},
		{s.ReduceShare >= 0 && s.ReduceShare < 1, "reduce_share", "must be at least 0 and less than 1"},
		{s.MaxAttempts >= 1 && s.MaxAttempts <= 100, "max_attempts", "must be 1 to 100"},
		{s.UnitTimeout > 0, "unit_timeout", "must be positive"},
		{s.Keep == 0 || s.Keep >= time.Minute, "keep", "must be a minute or longer, or 0"},
		{s.BreakerThreshold >= 1, "circuit_breaker_threshold", "must be at least 1"},
		{s.BreakerTimeout > 0, "circuit_breaker_timeout", "must be positive"},
		{s.CheckpointInterval >= 1, "checkpoint_interval", "must be at least 1"},
		{s.Capture <= mapreduce.CaptureFull, "capture", "must be off, standard or full"},
		{s.OnError <= mapreduce.FailFast, "on_error", "must be continue or fail-fast"},
		{s.OnBreaker <= mapreduce.BreakerSkip, "on_breaker", "must be wait or skip"},
		{s.Reading.PageText <= mapreduce.PageTextFull, "reading.page_text", "must be main or full"},
	} {
		if !f.ok {
			return errs.Field(f.field, "%s", f.rule)
		}
	}

	if err := mapreduce.CheckName(s.Name); err != nil {
		return err
	}
	if err := label.CheckAll(s.Labels); err != nil {
		return err
	}
	if err := r.checkPipeline(d); err != nil {
		return err
	}
	if err := r.checkDeadline(d); err != nil {
		return err
	}
	if _, err := token.Named(s.Estimator, nil); err != nil {
		return errs.Field("estimator", "%s", err)
	}
	if _, err := d.graph(); err != nil {
		return err
	}

	if r.Check == nil || s.Replay != "" {
		return nil
	}
	return r.Check(s)
}

// ValidName reports whether s may be the name of anything that a client names: UTF-8
// without control characters, of at most 512 bytes.
func ValidName(s string, emptyOK bool) bool {
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

// CallsToolsAlone reports whether a stage of a job calls tools without a model.
func (r *Rules) CallsToolsAlone(spec *mapreduce.JobSpec) bool {
	p, err := pipelineOf(spec)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(p.Stages, func(s *pipeline.Stage) bool {
		own := ForStage(*spec, s)
		return len(s.Tools) > 0 && !r.Provider(own.Provider).Models
	})
}

// AsksModels reports whether a stage of a job may ask models.
func (r *Rules) AsksModels(spec *mapreduce.JobSpec) bool {
	p, err := pipelineOf(spec)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(p.Stages, func(s *pipeline.Stage) bool {
		own := ForStage(*spec, s)
		return r.Provider(own.Provider).Models
	})
}
