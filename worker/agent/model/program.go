package model

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/model/form"
	"github.com/coditect/mapreduce/worker/agent/model/prompt"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/sight"
	"github.com/coditect/mapreduce/worker/llm/vendors"
	"github.com/coditect/mapreduce/worker/step"
)

// A program is a job's schema and settings made ready.
type program struct {
	settings.Settings
	stages
	schema   *schema.Schema
	pipeline *pipeline.Pipeline
	form     *form.Form
	vendor   llm.Provider
	prices   *llm.Prices
	batches  batch.Vendor // makes the calls in batches; nil if each is made at once
	placed   bool         // the orchestrator says for each unit in which tier its calls are made
	tiers    []string     // that its model has at a price that is known, of a program that is placed
	others   []alternate  // models that stand for its own, in the order in which they are asked

	window int64 // tokens of the window of the model that leaves the least room for prompts; 0 if none is known
	bound  int64 // tokens that this model may write
	most   int64 // tokens that any of the models may write

	system string // of map units
	fixed  int64  // tokens of their prompt without its document

	directSystem string      // of a direct unit; empty if the pipeline has none
	directAnswer *llm.Schema // of its answers

	mergeSystem string // of reduces
	decisions   *llm.Schema

	overhead   int64       // tokens of the longest prompt of reduces and the direct unit without what it reads; 0 if they ask nothing
	budget     int64       // tokens of outputs that a call of a reduce may read; 0 is no limit
	reserved   int64       // tokens that the job keeps free for an answer; 0 if it does not say
	folds      bool        // reduces read in the order of the input, with a scratchpad
	foldSystem string      // of these
	padForm    *llm.Schema // of their answers

	verdict *llm.Schema // of a model on its own answer

	short       *llm.Schema // of answers with values alone; nil if all have quotes
	shortSystem string      // of map units that give these
	places      *llm.Schema // of answers that say where values stand
	sight       *sight.Rule // of pictures that all of the models may be shown; nil if none is shown any
	blind       atomic.Bool // the server of a model has refused a picture

	// The fields below are for a stage whose output is a value. Such a stage has no
	// field above but Settings, pipeline, vendor and prices.
	stage       *agent.StageSpec // nil in a job without stages
	writeSystem string
	value       *llm.Schema
	verdicts    *llm.Schema // on the claims of a report; nil if the model does not check them

	role string // of a stage with tools, which has no field above but those of values either
}

// maxKept bounds the programs, and the providers, that are kept ready.
const maxKept = 64

// programsOf returns the programs of a job: one for each stage that says nothing else of
// its model, or, in a pipeline of map, reduce and direct alone, one for all of it.
func (a *Agent) programsOf(spec *mapreduce.JobSpec) ([]*program, error) {
	key := keyOf(spec, nil)
	a.mu.Lock()
	all := a.jobs[key]
	a.mu.Unlock()
	if all != nil {
		return all, nil
	}

	all, err := a.newPrograms(spec)
	if err != nil {
		return nil, err
	}

	// Another call may have made the same meanwhile: either will do.
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.jobs) == maxKept {
		clear(a.jobs)
	}
	a.jobs[key] = all
	return all, nil
}

func (a *Agent) newPrograms(spec *mapreduce.JobSpec) ([]*program, error) {
	own, err := step.PipelineOf(spec)
	if err != nil {
		return nil, err
	}

	records := !slices.ContainsFunc(own.Stages, func(s *pipeline.Stage) bool { return s.Output.Kind != pipeline.OutputRecords })
	apart := slices.ContainsFunc(own.Stages, func(s *pipeline.Stage) bool { return len(s.Tools) > 0 || !s.Parameters.IsZero() })

	if _, err := stagesOf(own); err == nil && records && !apart {
		// Such a pipeline asks with the same settings everywhere, so one program serves all
		// its stages.
		p, err := a.programOf(spec, nil)
		return []*program{p}, err
	}

	var all []*program
	for _, s := range own.Stages {
		stage, err := step.Specify(spec, s.Name)
		if err != nil {
			return nil, err
		}
		if s.Model != "" || s.Output.Kind == pipeline.OutputPassages && len(s.Tools) == 0 { // which no model chooses
			continue
		}

		p, err := a.programOf(spec, stage)
		if err != nil {
			return nil, fmt.Errorf("stage %s: %w", s.Name, err)
		}
		all = append(all, p)
	}

	return all, nil
}

// programOf returns the program of a job, or of one of its stages. It makes each program
// once.
func (a *Agent) programOf(spec *mapreduce.JobSpec, stage *agent.StageSpec) (*program, error) {
	key := keyOf(spec, stage)
	a.mu.Lock()
	p := a.programs[key]
	a.mu.Unlock()
	if p != nil {
		return p, nil
	}

	// The lock is not held: addOthers comes back here for the models that stand for this
	// one.
	p, err := a.newProgram(spec, stage)
	if err != nil {
		return nil, err
	}
	a.addOthers(p, spec, stage)

	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.programs) == maxKept {
		clear(a.programs)
	}
	a.programs[key] = p
	return p, nil
}

// keyOf is the same for jobs, and stages of them, that need the same.
func keyOf(spec *mapreduce.JobSpec, stage *agent.StageSpec) [sha256.Size]byte {
	h := sha256.New()
	if stage != nil {
		fmt.Fprintf(h, "%q%q%q%q%q%t%q", stage.Name, stage.Output, stage.Schema, stage.Merge, stage.Query, stage.Check, stage.Parameters)
	}

	for _, text := range []string{spec.Provider, spec.Model, string(spec.Schema), spec.Pipeline, string(spec.Definition)} {
		// Lengths keep texts apart that would run together otherwise.
		fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	fmt.Fprintf(h, "%q", spec.Fallbacks)

	names := settings.Variables()
	if len(spec.Definition) > 0 || stage != nil { // whose templates name others
		names = slices.Sorted(maps.Keys(spec.Vars))
	}
	for _, name := range names {
		fmt.Fprintf(h, "%d:%s%d:%s", len(name), name, len(spec.Vars[name]), spec.Vars[name])
	}

	for _, n := range []*int64{spec.ContextWindow, spec.TargetTokenBudget, spec.PromptOverhead, spec.ReservedOutput} {
		if n == nil {
			n = new(int64(-1))
		}
		fmt.Fprintf(h, "%d,", *n)
	}

	fmt.Fprintf(h, "%d,%d,", spec.Strategy, spec.ReduceContextLimit)
	if spec.BudgetRatio != nil {
		fmt.Fprint(h, *spec.BudgetRatio)
	}
	fmt.Fprint(h, spec.Replay != "", spec.Deadline.IsZero())

	return [sha256.Size]byte(h.Sum(nil))
}

// newProgram makes a job ready, or a stage of it, for its first model.
func (a *Agent) newProgram(spec *mapreduce.JobSpec, stage *agent.StageSpec) (*program, error) {
	set, err := settings.Read(spec)
	if err != nil {
		return nil, err
	}

	if stage != nil && spec.Vars[settings.VarMerge] == "" {
		set.Merge = cmp.Or(stage.Merge, settings.MergeBoth)
	}
	if stage != nil {
		set.Parameters = stage.Parameters.Over(set.Parameters)
	}

	limits := a.limitsOf(set)
	set.Parameters = limits.Keep(set.Parameters)
	ownTier := set.Parameters.Tier
	// What goes by batch is asked in no tier, and so is what a batch does not answer.
	batched := set.Parameters.Tier == parameters.Batch
	if batched {
		set.Parameters.Tier = ""
	}
	// An account may be set to be answered in a dearer tier where none is asked for, and what a budget in
	// dollars sets aside is the price of the standard one.
	if spec.MaxCost() > 0 && set.Parameters.Tier == "" && slices.Contains(limits.Tiers, parameters.Priority) {
		set.Parameters.Tier = parameters.Standard
	}
	p := &program{Settings: set, stage: stage}
	if err := a.findVendor(p, spec); err != nil {
		return nil, err
	}
	if p.placed = !spec.Deadline.IsZero() && !batched && ownTier == ""; p.placed {
		p.tiers, batched = p.pricedTiers(limits), limits.Batches
	}
	if err := p.checkModel(spec); err != nil {
		return nil, err
	}

	p.setSight()

	// The turns of an agent with tools wait for each other: they are asked in real time.
	if batched && spec.Replay == "" && (stage == nil || len(stage.Tools) == 0) {
		if p.batches, err = a.batchesOf(p.Settings); err != nil {
			return nil, err
		}
	}

	switch {
	case stage != nil && len(stage.Tools) > 0:
		return p, a.prepareAgent(p, spec.Vars)
	case stage != nil && stage.Output != agent.Records:
		return p, a.prepareWriting(p, spec)
	}
	return p, a.prepareRecords(p, spec)
}

// pricedTiers returns the tiers of real time that the model of a program has, as far as their price is known, and
// lower than that of the standard one if they are to be cheaper.
func (p *program) pricedTiers(l parameters.Limits) (tiers []string) {
	t, known := p.prices.Tariff(p.Provider, p.Model)
	for _, tier := range l.Tiers {
		cheaper := tier != parameters.Flex || t.Flex > 0
		if known && t.Has(tier) && cheaper {
			tiers = append(tiers, tier)
		}
	}
	return tiers
}

// realTime returns the tier of calls that are made at once where an orchestrator asks for one; "" leaves it to the
// program's own parameters.
func (p *program) realTime(asked string) string {
	has := func(tier string) bool { return slices.Contains(p.tiers, tier) }
	switch {
	case !p.placed:
		return ""
	case asked == parameters.FlexFirst && has(parameters.Flex), asked == parameters.Priority && has(parameters.Priority):
		return asked
	}
	return ""
}

// findVendor sets the vendor of a program, and its prices.
func (a *Agent) findVendor(p *program, spec *mapreduce.JobSpec) (err error) {
	if spec.Replay != "" {
		p.vendor, err = a.silentProvider(p.Settings)
	} else {
		p.vendor, err = a.vendorOf(p.Settings, len(spec.Fallbacks) > 0)
	}
	if err != nil {
		return err
	}

	if p.prices, err = a.cfg.Prices.With([]byte(spec.Vars[settings.VarPrices])); err != nil {
		return errs.Field("vars."+settings.VarPrices, "%w", err)
	}

	// The list of prices also has the sizes of windows, for jobs that name none.
	if t, ok := p.prices.Tariff(p.Provider, p.Model); ok && p.Window == 0 {
		p.Window = t.Window
	}

	p.pipeline, err = step.PipelineOf(spec)
	return err
}

// prepareWriting makes a program that writes values.
func (a *Agent) prepareWriting(p *program, spec *mapreduce.JobSpec) error {
	if err := p.tellWriter(p.stage, spec.Vars); err != nil {
		return err
	}
	p.fixed = a.withForm(p, p.writeRequest("", "", nil)).Prompt
	if p.stage.Group && p.Merge != settings.MergeTyped {
		p.overhead = p.fixed
	}
	return p.hasRoom()
}

// prepareRecords makes a program that extracts and merges records.
func (a *Agent) prepareRecords(p *program, spec *mapreduce.JobSpec) error {
	source, err := spec.Schema, error(nil)
	if p.stage != nil && len(p.stage.Schema) > 0 {
		source = p.stage.Schema
	}

	if p.schema, err = schema.Parse("schema", source); err != nil {
		return err
	}
	derive := form.New
	if p.sight != nil {
		derive = form.NewSeeing
	}
	if p.form, err = derive(p.schema); err != nil {
		return err
	}

	// What a model sees in a picture is believed by its quote and its page alone.
	if p.Quotes == settings.QuotesAuto && p.sight == nil {
		if err := p.prepareShort(); err != nil {
			return err
		}
	}

	if err := p.writeInstructions(spec); err != nil {
		return err
	}
	// A schema that the provider cannot express is found before any unit runs.
	if _, err := p.form.Answer.In(p.vendor.Can().Dialect); err != nil {
		return p.form.ExplainError(err)
	}

	if p.decisions, err = llm.NewSchema("decisions", []byte(decisionsSchema)); err != nil {
		return err
	}
	if p.verdict, err = llm.NewSchema("verdict", []byte(refineSchema)); err != nil {
		return err
	}

	p.fixed = a.withForm(p, p.passageRequest(p.system, p.form.Answer, prompt.Passage{}, pages{})).Prompt
	p.overhead = a.promptOverhead(p)
	return p.hasRoom()
}

// limitsOf returns what is known of the parameters that the model of a job takes.
func (a *Agent) limitsOf(s settings.Settings) parameters.Limits {
	i := slices.IndexFunc(a.cfg.Vendors, func(v vendors.Vendor) bool { return v.Name == s.Provider })
	if i < 0 {
		return parameters.Limits{}
	}
	return a.cfg.Vendors[i].LimitsOf(cmp.Or(s.BaseURL, a.cfg.LLM.BaseURL), s.Model)
}

// cacheKeyOf returns what the requests of a job have in common, without telling the vendor its name.
func cacheKeyOf(job mapreduce.JobID) string {
	sum := sha256.Sum256([]byte(job))
	return hex.EncodeToString(sum[:16])
}

// writeInstructions sets the instructions that all units of a stage share.
func (p *program) writeInstructions(spec *mapreduce.JobSpec) error {
	if err := p.findStages(); err != nil {
		return err
	}

	examples, err := p.stageExamples(p.form.ShowExamples)
	if err != nil {
		return err
	}

	who, err := p.fixedOf(p.mapping, spec.Vars, prompt.MapForm, prompt.MapRole)
	if err != nil {
		return err
	}
	p.system = prompt.MapSystem(p.schema, who, examples)
	if p.short != nil {
		of, err := p.stageExamples(p.form.ShowShortExamples)
		if err != nil {
			return err
		}
		p.shortSystem = prompt.ShortSystem(p.schema, who, of)
	}
	if p.sight != nil {
		p.system += prompt.SeeingInstructions
	}

	if p.stages.direct != nil {
		if p.directSystem, err = p.directSystemOf(spec.Vars, examples); err != nil {
			return err
		}
		if p.directAnswer, err = p.form.Direct(); err != nil {
			return err
		}
	}

	if who, err = p.fixedOf(p.group, spec.Vars, mergeForm, mergeRole); err != nil {
		return err
	}
	p.mergeSystem = mergeSystem(p.schema, who)
	p.foldSystem = p.mergeSystem + foldInstructions
	p.folds = p.group.Fold

	if p.padForm, err = llm.NewSchema("decisions", []byte(foldSchema)); err != nil {
		return err
	}

	// The budget is that of the plan, so that both reckon alike.
	tree, err := plan.New(plan.ConfigOf(spec))
	if err != nil {
		return err
	}
	p.budget = tree.Budget()
	if spec.ReservedOutput != nil {
		p.reserved = *spec.ReservedOutput
	}

	return nil
}

// directSystemOf returns the instructions of the direct unit. They contain the examples
// of map units, unless the stage of the direct unit has its own.
func (p *program) directSystemOf(vars map[string]string, examples string) (string, error) {
	own, err := p.form.ShowExamples(p.stages.direct)
	if err != nil {
		return "", err
	}
	who, err := p.fixedOf(p.stages.direct, vars, directForm, directRole)
	if err != nil {
		return "", err
	}
	return directSystem(p.schema, who, cmp.Or(own, examples)), nil
}

// promptOverhead returns the tokens of the longest prompt that reads under the budget
// of the tree, without what it reads: one number for all, so that each keeps to
// the budget.
func (a *Agent) promptOverhead(p *program) (most int64) {
	var all []*llm.Request
	if p.Merge != settings.MergeTyped {
		all = append(all, p.mergeRequest(nil))
		if p.folds {
			all = append(all, p.foldRequest(maxQuestions, 0, 2, " ", p.MaxAnswer, ""))
		}
	}

	if p.directSystem != "" {
		all = append(all, p.directRequest("", nil))
	}

	for _, req := range all {
		most = max(most, a.withForm(p, req).Prompt)
	}
	return most
}

// maxQuestions is a number as long as any that a prompt gives.
const maxQuestions = 100_000

// minDocument is the least room for a document that makes sense, in tokens.
const minDocument = 256

// withForm returns a request that tells the model of the form of its answer, if its
// provider only holds it to that, with the tokens of the prompt.
func (a *Agent) withForm(p *program, req *llm.Request) *llm.Request {
	next := *req
	next.Parameters = p.Parameters
	if p.vendor.Can().Untold && req.Schema != nil {
		next.System += formText(req.Schema)
		next.Schema = nil
	}
	next.Prompt = a.sizes.Prompt(&next)
	next.Schema = req.Schema
	return &next
}

// formText tells a model of the form of its answer.
func formText(schema *llm.Schema) string {
	return "\nFORM OF THE ANSWER (JSON Schema):\n" + schema.Document() + "\n"
}
