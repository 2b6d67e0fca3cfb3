// Package model has the steps that ask models. They extract records from documents
// according to a schema, each value with quotes that are then looked for in the
// text; they merge outputs where the schema leaves open how; and they write values
// by what they read.
//
// Nothing that a model says is believed: its answers are checked against the
// schema, its quotes against the document, its references against those that it
// was given. Documents are data, and stand between marks that they cannot write.
//
// Package settings has what a job says of its model, package prompt instructions and the
// marks around documents, package size how large requests are, package form the form of
// answers about records, package found what these come to once their quotes were looked
// for, and package memory what a unit's earlier attempts were answered.
package model

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/model/form"
	"github.com/coditect/mapreduce/worker/agent/model/memory"
	"github.com/coditect/mapreduce/worker/agent/model/prompt"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/agent/model/size"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
	"github.com/coditect/mapreduce/worker/llm/vendors"
	"github.com/coditect/mapreduce/worker/step"
)

// Config configures the agent of one provider.
type Config struct {
	// Provider is its name in Vendors. It is required.
	Provider string

	// Vendors is the table that has the provider. Defaults to vendors.All.
	Vendors vendors.Table

	// LLM holds its key and how it is reached. Window and ToolMode are the
	// jobs' own.
	LLM llm.Config

	// Trusted lets a job choose the address of the provider. The key is sent to that
	// address, so Trusted is only for a process that runs its user's own jobs.
	// Otherwise a job may use no address but LLM.BaseURL.
	Trusted bool

	// Prices say what calls cost. Defaults to nothing known.
	Prices *llm.Prices

	// Limited puts a provider behind the limits of its models. Defaults to
	// none.
	Limited func(llm.Provider, func(*llm.Request) int64) llm.Provider

	// Random returns numbers in [0,1), for pauses. It is required.
	Random func() float64

	// Others returns the agent of another provider, whose models may stand for those of this one; nil
	// if there is none. Defaults to none.
	Others func(provider string) *Agent

	// FirstElsewhere is how long a response may take to begin where another model could give
	// one; LLM.First bounds it too. Defaults to DefaultFirstElsewhere.
	FirstElsewhere time.Duration

	// Health knows which models answer, where others stand for them. Defaults to one of its own.
	Health *decorator.Health

	// Doubted is called with the reason why the usage that a model's server reports is not
	// believed, once for each model, under the name of its breaker. Defaults to doing
	// nothing.
	Doubted func(model, why string)
}

// DefaultFirstElsewhere is the default of Config.FirstElsewhere.
const DefaultFirstElsewhere = 2 * time.Minute

// An Agent asks a provider's models. Its steps run units. It is safe for concurrent
// use.
type Agent struct {
	cfg   Config
	count *token.Counter
	sizes *size.Counter // of requests
	doubt *decorator.Doubter

	mu       sync.Mutex // guards the fields below
	vendors  map[vendorKey]llm.Provider
	programs map[[sha256.Size]byte]*program
	jobs     map[[sha256.Size]byte][]*program // all of a job
	tallies  map[mapreduce.JobID]*answerTally
}

var _ step.Runner = (*Agent)(nil)

// A vendorKey is what providers differ in.
type vendorKey struct {
	base      string
	window    int64
	tools     bool
	elsewhere bool
}

// New returns an agent.
func New(cfg Config) (*Agent, error) {
	if cfg.Provider == "" || cfg.Random == nil {
		return nil, errors.New("model: Provider and Random are required")
	}

	if cfg.Vendors == nil {
		cfg.Vendors = vendors.All()
	}
	if cfg.Prices == nil {
		cfg.Prices = new(llm.Prices)
	}
	if cfg.Limited == nil {
		cfg.Limited = func(p llm.Provider, _ func(*llm.Request) int64) llm.Provider { return p }
	}
	if cfg.Others == nil {
		cfg.Others = func(string) *Agent { return nil }
	}
	cfg.FirstElsewhere = cmp.Or(cfg.FirstElsewhere, DefaultFirstElsewhere)
	if cfg.Health == nil {
		cfg.Health = decorator.NewHealth(time.Now, func(string) {})
	}

	count := token.New()
	return &Agent{
		cfg: cfg, count: count, sizes: size.New(count), doubt: decorator.NewDoubter(cfg.Doubted),
		vendors: make(map[vendorKey]llm.Provider), programs: make(map[[sha256.Size]byte]*program),
		jobs: make(map[[sha256.Size]byte][]*program), tallies: make(map[mapreduce.JobID]*answerTally),
	}, nil
}

// A program is a job's schema and settings made ready.
type program struct {
	settings.Settings
	stages
	schema   *schema.Schema
	pipeline *pipeline.Pipeline
	form     *form.Form
	vendor   llm.Provider
	prices   *llm.Prices
	others   []alternate // models that stand for its own, in the order in which they are asked

	window int64 // tokens of the window of the model that leaves the least room for prompts; 0 if none is known
	bound  int64 // tokens that this model may write
	most   int64 // tokens that any of the models may write

	system string // of map units
	fixed  int64  // tokens of their prompt without its document

	directSystem string // of a direct unit; empty if the pipeline has none

	mergeSystem string // of reduces
	decisions   *llm.Schema

	overhead   int64       // tokens of the longest prompt of reduces and the direct unit without what it reads; 0 if they ask nothing
	budget     int64       // tokens of outputs that a call of a reduce may read; 0 is no limit
	reserved   int64       // tokens that the job keeps free for an answer; 0 if it does not say
	folds      bool        // reduces read in the order of the input, with a scratchpad
	foldSystem string      // of these
	padForm    *llm.Schema // of their answers

	verdict *llm.Schema // of a model on its own answer

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

// Steps returns the steps of the provider: extract, merge and write.
func (a *Agent) Steps() step.Table {
	return step.Table{
		step.Extract: &runner{a, (*session).extractAny},
		step.Merge:   &runner{a, (*session).mergeAny},
		step.Write:   &runner{a, (*session).writeValue},
	}
}

// Run implements step.Runner for units of all steps.
func (a *Agent) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	return a.Steps().Run(ctx, task, calls)
}

// A runner runs the units of one step.
type runner struct {
	agent *Agent
	run   func(*session, context.Context) (*agent.Result, error)
}

// Run implements step.Runner.
func (r *runner) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, err := r.agent.programOf(task.Spec, task.StageSpec)
	if err != nil {
		return nil, agent.PermanentJob(err)
	}
	res, err := r.run(r.agent.beginSession(p, task, calls), ctx)
	err = r.judgeMisfit(ctx, task, calls, err)
	return res, llm.ForAgent(adviseError(p, err))
}

// extractAny finds the records of one text, or of all documents that the unit has.
func (s *session) extractAny(ctx context.Context) (*agent.Result, error) {
	if s.task.Text == nil {
		return s.runDirect(ctx)
	}
	return s.runExtract(ctx)
}

// mergeAny merges records, or values.
func (s *session) mergeAny(ctx context.Context) (*agent.Result, error) {
	if !s.task.MakesRecords() {
		return s.mergeValues(ctx)
	}
	return s.runReduce(ctx)
}

// adviseError adds to an error after which no unit can succeed the provider and the model
// that it is of, and what its reader can do about it.
func adviseError(p *program, err error) error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return err
	}

	do := ""
	switch e.Kind {
	case llm.Auth:
		do = fmt.Sprintf("set %s_API_KEY to a key that this provider takes", strings.ToUpper(p.Provider))
	case llm.Permission:
		do = "use a key that may ask this model, or another --model"
	case llm.Billing:
		do = "pay the provider, or raise the limit that it keeps for this key"
	case llm.NotFound:
		do = "see whether the provider has the --model, and whether --base-url is its address"
	case llm.NotAPI:
		do = "see whether --base-url, or --endpoint of the worker, is the provider's address, and what HTTPS_PROXY says"
	case llm.NotThere:
		do = "start the server there, or set --base-url to the address of one that runs"
	default:
		return err
	}

	return fmt.Errorf("%s, model %s: %w; %s", p.Provider, p.Model, err, do)
}

// Check refuses a job that no worker like this one could run: wrong settings, a
// key that is missing, a schema that the provider cannot express, a context
// window without room for any document.
func (a *Agent) Check(spec *mapreduce.JobSpec) error {
	all, err := a.programsOf(spec)
	for _, p := range all {
		err = cmp.Or(err, p.checkOthers())
	}
	return err
}

// CheckStage is Check of one stage, with the spec of a job as the units of the stage run with it: for
// one that has a model of its own.
func (a *Agent) CheckStage(spec *mapreduce.JobSpec, name string) error {
	stage, err := step.Specify(spec, name)
	if err != nil {
		return err
	}

	if stage.Output == agent.PassagesChosen && len(stage.Tools) == 0 { // which no model chooses
		return nil
	}

	p, err := a.programOf(spec, stage)
	if err != nil {
		return err
	}
	return p.checkOthers()
}

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

// Room returns how many tokens of a document fit into a prompt of the job, with
// some to spare as models count differently; 0 if the window is not known.
func (a *Agent) Room(spec *mapreduce.JobSpec) (int64, error) {
	prompt, err := a.Prompt(spec)
	if err != nil {
		return 0, err
	}
	all, err := a.programsOf(spec)
	if err != nil || len(all) == 0 || all[0].window == 0 {
		return 0, err
	}
	return max((all[0].window-prompt-all[0].bound)*4/5, minDocument/2), nil
}

// Prompt returns how many tokens the longest prompt of the job has without a
// document.
func (a *Agent) Prompt(spec *mapreduce.JobSpec) (most int64, err error) {
	all, err := a.programsOf(spec)
	for _, p := range all {
		most = max(most, p.fixed)
	}
	return most, err
}

// Overhead returns the tokens that a call of the job's reduces, or of its direct unit,
// needs besides its inputs: those of the prompt, and the most of the answer. Both are 0
// if these units ask no model.
func (a *Agent) Overhead(spec *mapreduce.JobSpec) (prompt, answer int64, err error) {
	all, err := a.programsOf(spec)
	for _, p := range all {
		if p.overhead > 0 {
			prompt, answer = max(prompt, p.overhead), max(answer, p.most)
		}
	}
	return prompt, answer, err
}

// Warms reports whether the prompts of a job's map units begin so long alike that
// the vendor keeps that: the next is cheaper once one has been answered.
func (a *Agent) Warms(spec *mapreduce.JobSpec) (bool, error) {
	all, err := a.programsOf(spec)
	for _, p := range all {
		t, _ := p.prices.Tariff(p.Provider, p.Model)
		if t.CacheFrom > 0 && int64(a.count.Count(p.system)) >= t.CacheFrom {
			return true, nil
		}
	}
	return false, err
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
	fmt.Fprint(h, spec.Replay != "")

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

	set.Parameters = a.limitsOf(set).Keep(set.Parameters)
	p := &program{Settings: set, stage: stage}
	if err := a.findVendor(p, spec); err != nil {
		return nil, err
	}
	if err := p.checkModel(spec); err != nil {
		return nil, err
	}

	switch {
	case stage != nil && len(stage.Tools) > 0:
		return p, a.prepareAgent(p, spec.Vars)
	case stage != nil && stage.Output != agent.Records:
		return p, a.prepareWriting(p, spec)
	}
	return p, a.prepareRecords(p, spec)
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
	if p.form, err = form.New(p.schema); err != nil {
		return err
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

	p.fixed = a.withForm(p, p.passageRequest(p.system, prompt.Passage{})).Prompt
	p.overhead = a.promptOverhead(p)
	return p.hasRoom()
}

// limitsOf returns what is known of the parameters that the model of a job takes.
func (a *Agent) limitsOf(s settings.Settings) parameters.Limits {
	i := slices.IndexFunc(a.cfg.Vendors, func(v vendors.Vendor) bool { return v.Name == s.Provider })
	if i < 0 || a.cfg.Vendors[i].Limits == nil {
		return parameters.Limits{}
	}
	return a.cfg.Vendors[i].Limits(cmp.Or(s.BaseURL, a.cfg.LLM.BaseURL), s.Model)
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

	examples, err := p.stageExamples()
	if err != nil {
		return err
	}

	who, err := p.fixedOf(p.mapping, spec.Vars, prompt.MapForm, prompt.MapRole)
	if err != nil {
		return err
	}
	p.system = prompt.MapSystem(p.schema, who, examples)

	if p.stages.direct != nil {
		if p.directSystem, err = p.directSystemOf(spec.Vars, examples); err != nil {
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

// vendorOf returns the provider that a job asks; elsewhere says that other models stand for its model.
func (a *Agent) vendorOf(s settings.Settings, elsewhere bool) (llm.Provider, error) {
	cfg := a.cfg.LLM
	if s.BaseURL != "" && s.BaseURL != cfg.BaseURL {
		if !a.cfg.Trusted {
			return nil, fmt.Errorf("this worker does not call %s at the address that the job names, for its key would go there; "+
				"start workers with --endpoint %s=URL and the job without --base-url", s.Provider, s.Provider)
		}
		cfg.BaseURL = s.BaseURL
	}

	cfg.Window, cfg.ToolMode = s.Window, s.ToolMode
	if elsewhere {
		cfg.First = min(cmp.Or(cfg.First, llm.DefaultFirst), a.cfg.FirstElsewhere)
	}

	// Jobs that ask in the same way share a provider, and what it has learned.
	key := vendorKey{cfg.BaseURL, s.Window, s.ToolMode, elsewhere}

	a.mu.Lock()
	defer a.mu.Unlock()
	if v := a.vendors[key]; v != nil {
		return v, nil
	}

	v, err := a.cfg.Vendors.New(s.Provider, cfg)
	if err != nil {
		return nil, err
	}

	if len(a.vendors) == maxKept {
		clear(a.vendors)
	}
	a.vendors[key] = v
	return v, nil
}

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

// maxCorrections bounds the turns in which one attempt at a unit has answers mended.
const maxCorrections = 8

// A session is one attempt at a unit.
type session struct {
	*program
	agent *Agent
	task  *agent.Task
	calls agent.Calls
	ask   llm.Provider
	notes []string // what went wrong without making the attempt fail
}

// beginSession returns a session whose calls are paid, watched over and remembered.
func (a *Agent) beginSession(p *program, task *agent.Task, calls agent.Calls) *session {
	s := &session{program: p, agent: a, task: task, calls: calls}
	if task.Spec.Replay != "" {
		return s.replaySession()
	}
	s.ask = memory.New(s.routeOf(), decorator.Origin{Scope: string(task.Job), Provider: p.Provider}, task, calls)
	return s
}

// answerOrigin returns everything besides the requests that decides a program's answers.
func (a *Agent) answerOrigin(p *program, t mapreduce.TenantID) decorator.Origin {
	return decorator.Origin{
		Scope: string(t), Provider: p.Provider, BaseURL: cmp.Or(p.BaseURL, a.cfg.LLM.BaseURL), Window: p.Window, ToolMode: p.ToolMode,
	}
}

// savingsSink returns the function that sums up savings.
func savingsSink(calls agent.Calls) func(mapreduce.Savings) {
	if s, ok := calls.(agent.Saver); ok {
		return s.Saved
	}
	return func(mapreduce.Savings) {}
}

// completeRequest asks the model, unless the request does not fit into the window.
func (s *session) completeRequest(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	req = s.agent.withForm(s.program, req)
	req.CacheKey = cacheKeyOf(s.task.Job)
	req.Trace = llm.Trace{Unit: string(s.task.Unit), Attempt: s.task.Attempt, Turn: req.Trace.Turn}

	// What cannot fit is not sent: the unit may be split instead.
	if need := req.Prompt + s.bound; s.window > 0 && need > s.window {
		return nil, tooLarge("prompt and answer take %d tokens, and the context window has %d", need, s.window)
	}

	bytes := size.Bytes(req)
	if most := s.mostContext(); most > 0 && bytes > most {
		return nil, tooLarge("the prompt has %d bytes, and limits.context of the stage %s allows %d", bytes, s.task.StageSpec.Name, most)
	}

	if m, ok := s.calls.(agent.PromptMeter); ok {
		m.Prompted(bytes)
	}

	res, err := s.ask.Complete(ctx, req)
	if err != nil {
		return nil, err
	}

	if keeper, ok := s.calls.(agent.Answerer); ok {
		by := cmp.Or(res.By, decorator.BreakerName(s.Provider, req.Model))
		keeper.Answered(mapreduce.AnsweredBy(by, string(res.Model)))
	}

	if req.Schema != nil {
		s.agent.noteFit(s.task.Job)
	}

	s.noteRepairs(res.Repairs)
	return res, nil
}

// mostContext returns how many bytes a prompt of the unit may have; 0 is no limit.
func (s *session) mostContext() int64 {
	if s.task.StageSpec == nil {
		return 0
	}
	return s.task.StageSpec.Context
}

func tooLarge(format string, args ...any) error {
	return &llm.Error{Kind: llm.TooLarge, Class: llm.TooLarge.Class(), Message: fmt.Sprintf(format, args...)}
}

// isTooLarge reports whether a smaller request might be answered.
func isTooLarge(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	return ok && e.Kind == llm.TooLarge
}
