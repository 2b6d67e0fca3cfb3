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
	"github.com/coditect/mapreduce/worker/step"
)

// A Program is a job's schema and settings made ready.
type Program struct {
	settings.Settings
	Stages
	Schema   *schema.Schema
	Pipeline *pipeline.Pipeline
	Form     *form.Form
	Vendor   llm.Provider
	prices   *llm.Prices
	batches  batch.Vendor // makes the calls in batches; nil if each is made at once
	placed   bool         // the orchestrator says for each unit in which tier its calls are made
	tiers    []string     // that its model has at a price that is known, of a program that is placed
	others   []alternate  // models that stand for its own, in the order in which they are asked

	Narrowest int64 // tokens of the window of the model that leaves the least room for prompts; 0 if none is known
	Bound     int64 // tokens that this model may write
	Most      int64 // tokens that any of the models may write

	System string // of map units
	fixed  int64  // tokens of their prompt without its document

	DirectSystem string      // of a direct unit; empty if the pipeline has none
	directAnswer *llm.Schema // of its answers

	mergeSystem string // of reduces
	decisions   *llm.Schema

	overhead   int64       // tokens of the longest prompt of reduces and the direct unit without what it reads; 0 if they ask nothing
	Budget     int64       // tokens of outputs that a call of a reduce may read; 0 is no limit
	Reserved   int64       // tokens that the job keeps free for an answer; 0 if it does not say
	Folds      bool        // reduces read in the order of the input, with a scratchpad
	foldSystem string      // of these
	padForm    *llm.Schema // of their answers

	Verdict *llm.Schema // of a model on its own answer

	Short       *llm.Schema // of answers with values alone; nil if all have quotes
	ShortSystem string      // of map units that give these
	Places      *llm.Schema // of answers that say where values stand
	Sight       *sight.Rule // of pictures that all of the models may be shown; nil if none is shown any
	Blind       atomic.Bool // the server of a model has refused a picture

	// The fields below are for a stage whose output is a value. Such a stage has no
	// field above but Settings, pipeline, vendor and prices.
	stage       *agent.StageSpec // nil in a job without stages
	writeSystem string
	value       *llm.Schema
	Verdicts    *llm.Schema // on the claims of a report; nil if the model does not check them

	Role string // of a stage with tools, which has no field above but those of values either
}

// maxKept bounds the programs, and the providers, that are kept ready.
const maxKept = 64

// programsOf returns the programs of a job: one for each stage that says nothing else of
// its model, or, in a pipeline of map, reduce and direct alone, one for all of it.
func (a *Agent) programsOf(spec *mapreduce.JobSpec) ([]*Program, error) {
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

func (a *Agent) newPrograms(spec *mapreduce.JobSpec) ([]*Program, error) {
	own, err := step.PipelineOf(spec)
	if err != nil {
		return nil, err
	}

	records := !slices.ContainsFunc(own.Stages, func(s *pipeline.Stage) bool { return s.Output.Kind != pipeline.OutputRecords })
	apart := slices.ContainsFunc(own.Stages, func(s *pipeline.Stage) bool { return len(s.Tools) > 0 || !s.Parameters.IsZero() })

	if _, err := stagesOf(own); err == nil && records && !apart {
		// Such a pipeline asks with the same settings everywhere, so one program serves all
		// its stages.
		p, err := a.ProgramOf(spec, nil)
		return []*Program{p}, err
	}

	var all []*Program
	for _, s := range own.Stages {
		stage, err := step.Specify(spec, s.Name)
		if err != nil {
			return nil, err
		}
		if s.Model != "" || s.Output.Kind == pipeline.OutputPassages && len(s.Tools) == 0 { // which no model chooses
			continue
		}

		p, err := a.ProgramOf(spec, stage)
		if err != nil {
			return nil, fmt.Errorf("stage %s: %w", s.Name, err)
		}
		all = append(all, p)
	}

	return all, nil
}

// ProgramOf returns the program of a job, or of one of its stages. It makes each program
// once.
func (a *Agent) ProgramOf(spec *mapreduce.JobSpec, stage *agent.StageSpec) (*Program, error) {
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
func (a *Agent) newProgram(spec *mapreduce.JobSpec, stage *agent.StageSpec) (*Program, error) {
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

	limits := a.reach.limitsOf(set)
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
	p := &Program{Settings: set, stage: stage}
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
		if p.batches, err = a.reach.batchesOf(p.Settings); err != nil {
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
func (p *Program) pricedTiers(l parameters.Limits) (tiers []string) {
	t, known := p.prices.Tariff(p.Provider, p.Model)
	for _, tier := range l.Tiers {
		cheaper := tier != parameters.Flex || t.Flex > 0
		if known && t.Has(tier) && cheaper {
			tiers = append(tiers, tier)
		}
	}
	return tiers
}

// realTime returns the tier of calls of a unit that are made at once where an orchestrator asks for one; "" leaves it
// to the program's own parameters.
func (p *Program) realTime(t *agent.Task) string {
	asked := t.Tier
	if asked == parameters.Batch {
		asked = t.RealTime
	}

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
func (a *Agent) findVendor(p *Program, spec *mapreduce.JobSpec) (err error) {
	if spec.Replay != "" {
		p.Vendor, err = a.reach.silentProvider(p.Settings)
	} else {
		p.Vendor, err = a.reach.vendorOf(p.Settings, len(spec.Fallbacks) > 0)
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

	p.Pipeline, err = step.PipelineOf(spec)
	return err
}

// prepareWriting makes a program that writes values.
func (a *Agent) prepareWriting(p *Program, spec *mapreduce.JobSpec) error {
	if err := p.tellWriter(p.stage, spec.Vars); err != nil {
		return err
	}
	p.fixed = a.WithForm(p, p.WriteRequest("", "", nil)).Prompt
	if p.stage.Group && p.Merge != settings.MergeTyped {
		p.overhead = p.fixed
	}
	return p.hasRoom()
}

// prepareRecords makes a program that extracts and merges records.
func (a *Agent) prepareRecords(p *Program, spec *mapreduce.JobSpec) error {
	source, err := spec.Schema, error(nil)
	if p.stage != nil && len(p.stage.Schema) > 0 {
		source = p.stage.Schema
	}

	if p.Schema, err = schema.Shared(source); err != nil {
		return err
	}
	derive := form.New
	if p.Sight != nil {
		derive = form.NewSeeing
	}
	if p.Form, err = derive(p.Schema); err != nil {
		return err
	}

	// What a model sees in a picture is believed by its quote and its page alone.
	if p.Quotes == settings.QuotesAuto && p.Sight == nil {
		if err := p.prepareShort(); err != nil {
			return err
		}
	}

	if err := p.writeInstructions(spec); err != nil {
		return err
	}
	// A schema that the provider cannot express is found before any unit runs.
	if _, err := p.Form.Answer.In(p.Vendor.Can().Dialect); err != nil {
		return p.Form.ExplainError(err)
	}

	if p.decisions, err = llm.NewSchema("decisions", []byte(decisionsSchema)); err != nil {
		return err
	}
	if p.Verdict, err = llm.NewSchema("verdict", []byte(refineSchema)); err != nil {
		return err
	}

	p.fixed = a.WithForm(p, p.PassageRequest(p.System, p.Form.Answer, prompt.Passage{}, Pages{})).Prompt
	p.overhead = a.promptOverhead(p)
	return p.hasRoom()
}

// cacheKeyOf returns what the requests of a job have in common, without telling the vendor its name.
func cacheKeyOf(job mapreduce.JobID) string {
	sum := sha256.Sum256([]byte(job))
	return hex.EncodeToString(sum[:16])
}

// writeInstructions sets the instructions that all units of a stage share.
func (p *Program) writeInstructions(spec *mapreduce.JobSpec) error {
	if err := p.findStages(); err != nil {
		return err
	}

	examples, err := p.stageExamples(p.Form.ShowExamples)
	if err != nil {
		return err
	}

	who, err := p.fixedOf(p.Mapping, spec.Vars, prompt.MapForm, prompt.MapRole)
	if err != nil {
		return err
	}
	p.System = prompt.MapSystem(p.Schema, who, examples)
	if p.Short != nil {
		of, err := p.stageExamples(p.Form.ShowShortExamples)
		if err != nil {
			return err
		}
		p.ShortSystem = prompt.ShortSystem(p.Schema, who, of)
	}
	if p.Sight != nil {
		p.System += prompt.SeeingInstructions
	}

	if p.Stages.Direct != nil {
		if p.DirectSystem, err = p.directSystemOf(spec.Vars, examples); err != nil {
			return err
		}
		if p.directAnswer, err = p.Form.Direct(); err != nil {
			return err
		}
	}

	if who, err = p.fixedOf(p.group, spec.Vars, mergeForm, mergeRole); err != nil {
		return err
	}
	p.mergeSystem = mergeSystem(p.Schema, who)
	p.foldSystem = p.mergeSystem + foldInstructions
	p.Folds = p.group.Fold

	if p.padForm, err = llm.NewSchema("decisions", []byte(foldSchema)); err != nil {
		return err
	}

	// The budget is that of the plan, so that both reckon alike.
	tree, err := plan.New(plan.ConfigOf(spec))
	if err != nil {
		return err
	}
	p.Budget = tree.Budget()
	if spec.ReservedOutput != nil {
		p.Reserved = *spec.ReservedOutput
	}

	return nil
}

// directSystemOf returns the instructions of the direct unit. They contain the examples
// of map units, unless the stage of the direct unit has its own.
func (p *Program) directSystemOf(vars map[string]string, examples string) (string, error) {
	own, err := p.Form.ShowExamples(p.Stages.Direct)
	if err != nil {
		return "", err
	}
	who, err := p.fixedOf(p.Stages.Direct, vars, directForm, directRole)
	if err != nil {
		return "", err
	}
	return directSystem(p.Schema, who, cmp.Or(own, examples)), nil
}

// promptOverhead returns the tokens of the longest prompt that reads under the budget
// of the tree, without what it reads: one number for all, so that each keeps to
// the budget.
func (a *Agent) promptOverhead(p *Program) (most int64) {
	var all []*llm.Request
	if p.Merge != settings.MergeTyped {
		all = append(all, p.MergeRequest(0, ""))
		if p.Folds {
			all = append(all, p.FoldRequest(maxQuestions, 0, 2, " ", p.MaxAnswer, ""))
		}
	}

	if p.DirectSystem != "" {
		all = append(all, p.DirectRequest("", nil))
	}

	for _, req := range all {
		most = max(most, a.WithForm(p, req).Prompt)
	}
	return most
}

// maxQuestions is a number as long as any that a prompt gives.
const maxQuestions = 100_000

// MinDocument is the least room for a document that makes sense, in tokens.
const MinDocument = 256

// WithForm returns a request that tells the model of the form of its answer, if its
// provider only holds it to that, with the tokens of the prompt.
func (a *Agent) WithForm(p *Program, req *llm.Request) *llm.Request {
	next := *req
	next.Parameters = p.Parameters
	if p.Vendor.Can().Untold && req.Schema != nil {
		next.System += formText(req.Schema)
		next.Schema = nil
	}
	next.Prompt = a.Sizes.Prompt(&next)
	next.Schema = req.Schema
	return &next
}

// formText tells a model of the form of its answer.
func formText(schema *llm.Schema) string {
	return "\nFORM OF THE ANSWER (JSON Schema):\n" + schema.Document() + "\n"
}

// agentRole is of a stage with tools whose pipeline says nothing of its agent.
const agentRole = "ROLE: Research Agent\nTASK: Find what is asked for with the tools that you have.\n"

// prepareAgent makes a program whose units use tools.
func (a *Agent) prepareAgent(p *Program, vars map[string]string) error {
	if err := p.findStages(); err != nil {
		return err
	}
	var err error
	if p.Role, err = p.fixedOf(p.Mapping, vars, "", agentRole); err != nil {
		return err
	}
	p.fixed = a.WithForm(p, &llm.Request{Model: p.Model, System: p.Role, Messages: []llm.Message{llm.Say(llm.User, "")}}).Prompt
	return p.hasRoom()
}
