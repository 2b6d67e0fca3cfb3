package run

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/label"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/input"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/llm"
)

// jobFlags are the flags that describe a job.
type jobFlags struct {
	extra string // the provider that this program has beside those of all, see runners.Extra

	inputs, include, exclude []string
	followLinks, archives    bool
	partial                  bool
	sample                   int
	encoding                 string
	pipeline                 string
	agents                   string             // folder of their files
	parsed                   *pipeline.Pipeline // the file that pipeline names; nil if it names none
	warnings                 schema.Errors      // about the schema that the last spec has
	notes                    []string           // about the files of its agents
	schema                   string
	vars                     []string
	question, topic          string
	aliases                  []string

	provider, model string
	baseURL         string
	merge           console.Choice
	glean           int
	quotes          console.Choice
	see             console.Choice
	maxAnswer       int64

	parallelism      int
	maxTokensPerUnit int
	chunkOverlap     int
	estimator        string
	priority         int

	parameters map[parameters.Name]*string // of answers
	stop       []string
	batch      bool // calls go by batch
	cascade    cascadeFlags
	review     reviewFlags

	strategy           console.Choice
	chunkSize          int64
	targetTokenBudget  int64
	contextWindow      int64
	budgetRatio        float64
	maxReduceLevels    int64
	reduceContextLimit int
	reduceBatchSize    int

	budget      budgetFlags
	deadline    string
	reduceShare float64

	onError            console.Choice
	onBreaker          console.Choice
	strictSchema       bool
	locale             string
	maxAttempts        int
	unitTimeout        time.Duration
	breakerThreshold   int
	breakerTimeout     time.Duration
	checkpointInterval int
	capture            console.Choice
	cache              bool
	keep               time.Duration

	requestID string
	name      string
	labels    []string
}

// addFlags adds the flags to a command, by the groups in which its help shows them.
func (j *jobFlags) addFlags(cmd *cobra.Command, groups *console.FlagGroups) {
	f := cmd.Flags()
	f.SortFlags = false

	for _, g := range []struct {
		title string
		add   func(*pflag.FlagSet)
	}{
		{groupInput, j.addInput},
		{groupSchema, j.addPipeline},
		{groupModel, j.addModel},
		{groupLimits, j.addLimits},
		{groupTree, j.addUnits},
		{groupTree, j.addReduce},
		{groupOutput, j.addKept},
	} {
		groups.Add(g.title, func() { g.add(f) })
	}

	j.addCompletions(cmd)
}

// addInput adds the flags that say which documents are read.
func (j *jobFlags) addInput(f *pflag.FlagSet) {
	f.StringArrayVar(&j.inputs, "input", nil, "`PATH` of a folder or file; or job:ID, the records of a finished job; or - for standard input. May be repeated; arguments are inputs too")
	f.StringArrayVar(&j.include, "include", nil, "`glob` of the files to read in folders; may be repeated")
	f.StringArrayVar(&j.exclude, "exclude", nil, "`glob` of files and folders to ignore; may be repeated")
	f.IntVar(&j.sample, "sample", 0, "read only a sample of `N` documents, the same ones each time")
	f.BoolVar(&j.partial, "partial", false, "with --input job:ID: read the records so far of a job that has not ended")
	f.BoolVar(&j.archives, "archives", false, "open archives (zip, tar, tar.gz): each file in one is a document, named archive.zip!/name")
	f.BoolVar(&j.followLinks, "follow-symlinks", false, "follow links in input folders to files outside of them")
	f.StringVar(&j.encoding, "encoding", "", "`name` of the encoding of plain text documents, such as windows-1252 (default: detected)")
}

// addPipeline adds the flags that say what is looked for, and by which stages.
func (j *jobFlags) addPipeline(f *pflag.FlagSet) {
	f.StringVar(&j.schema, "schema", "", "JSON Schema `file`, in YAML or JSON, of the records to extract")
	f.BoolVar(&j.strictSchema, "strict-schema", false, "let a unit fail if a value of its records breaks the schema, or a required field is missing (default: the value goes to _unverified, with a warning)")
	f.StringVar(&j.locale, "locale", "", "language and region of the documents, such as `de-DE`, for numbers and dates that the documents leave open (default: the locale of the schema)")
	f.StringVar(&j.pipeline, "pipeline", extractPipeline, "`name` of a pipeline that comes with the program (see the command pipelines), or a pipeline file")
	f.StringVar(&j.agents, "agents", "", "`folder` of agents as Markdown files; they work where the pipeline names them, and in stages with \"each: agent\"")
	f.StringVar(&j.question, "question", "", "`text` of the question that the pipeline answers; the same as --var question=…")
	f.StringVar(&j.topic, "topic", "", "`text` of the topic of the pipeline: its input topic, or, as in compare, its question")
	f.StringArrayVar(&j.vars, "var", nil, "`KEY=VALUE`: input of the pipeline, or setting of the provider; may be repeated")
}

// addLimits adds the flags that bound what a job takes at once and in all, and say what becomes
// of it if something fails.
func (j *jobFlags) addLimits(f *pflag.FlagSet) {
	j.budget.addFlags(f, "")
	f.StringVar(&j.deadline, "deadline", "", "`TIME` by which the job is to end, such as 17:30 or 2026-03-31T17:30, or how long it may take, such as 4h30m: calls go by batch as long as the rest can still be made in real time, and in the cheapest tier that is quick enough after that")
	f.Float64Var(&j.reduceShare, "reduce-share", mapreduce.DefaultReduceShare, "part of the budget, from 0 to 1, that is reserved for reducing")
	f.BoolVar(&j.cache, "cache", false, "use stored answers of models to the same questions, and store the answers of this job for others")
	f.IntVar(&j.parallelism, "parallelism", mapreduce.DefaultParallelism, "number of units that run at the same time")
	f.IntVar(&j.priority, "priority", 0, "priority of the job; units of jobs with a higher one run first")

	j.onError = console.NewChoice("continue", "continue", "fail-fast")
	f.Var(&j.onError, "on-error", "what happens to the job when a unit fails")
	f.IntVar(&j.maxAttempts, "max-attempts", mapreduce.DefaultMaxAttempts, "largest number of attempts for a unit")
	f.DurationVar(&j.unitTimeout, "unit-timeout", mapreduce.DefaultUnitTimeout, "largest duration of an attempt")

	j.onBreaker = console.NewChoice("wait", "wait", "skip")
	f.Var(&j.onBreaker, "on-breaker", "what units do while the circuit breaker of their model is open")
	f.IntVar(&j.breakerThreshold, "circuit-breaker-threshold", mapreduce.DefaultBreakerThreshold, "number of failures in a row after which calls of a model are stopped")
	f.DurationVar(&j.breakerTimeout, "circuit-breaker-timeout", mapreduce.DefaultBreakerTimeout, "time for which calls of a model are stopped after as many failures as --circuit-breaker-threshold says")
}

// addUnits adds the flags that say how documents are cut into units.
func (j *jobFlags) addUnits(f *pflag.FlagSet) {
	f.IntVar(&j.maxTokensPerUnit, "max-tokens-per-unit", mapreduce.DefaultMaxTokensPerUnit, "largest number of tokens of a unit; a longer document is cut")
	f.IntVar(&j.chunkOverlap, "chunk-overlap", mapreduce.DefaultChunkOverlap, "tokens of context on either side of a cut")
	f.StringVar(&j.estimator, "estimator", token.O200kBase, "`name` of the tokenizer for estimates: "+token.O200kBase+", characters (four for a token) or characters/N")
}

// addKept adds the flags that say what is kept of a job, and for how long.
func (j *jobFlags) addKept(f *pflag.FlagSet) {
	j.capture = console.NewChoice("off", "off", "standard", "full")
	f.Var(&j.capture, "capture", "what the trace keeps of calls of models: only sums (off), each call (standard), or also prompts and answers (full)")
	f.IntVar(&j.checkpointInterval, "checkpoint-interval", mapreduce.DefaultCheckpointInterval, "number of completed units between two entries of progress in the audit trail; each unit is durable at once")
	f.DurationVar(&j.keep, "keep", 0, "time for which the job is kept after its end, if that is less than the service keeps jobs; 0 keeps it as long as the service keeps jobs")
	f.StringVar(&j.name, "name", "", "what the job is called in lists (default the name of the first input)")
	f.StringArrayVar(&j.labels, "label", nil, "`KEY=VALUE` by which the job is found (list --label) and its cost is counted; may be repeated")
	f.StringVar(&j.requestID, "request-id", "", "`name` of this submission; a second submission with the same name returns the same job")
}

// addModel adds the flags for the provider and its models.
func (j *jobFlags) addModel(f *pflag.FlagSet) {
	f.StringVar(&j.provider, "provider", "rules", "provider that finds the values: "+runners.ProviderWords())
	f.StringVar(&j.model, "model", "", "`name` of the provider's model; or several, separated by commas, of which each is asked while those before it are away. Without --provider each is PROVIDER/MODEL")
	f.StringArrayVar(&j.aliases, "alias", nil, "`NAME=PROVIDER/MODEL`: model, or several as in --model, for an alias that stages of the pipeline use; may be repeated")
	f.StringVar(&j.baseURL, "base-url", "", "`URL` of the provider's API, or of a server with the same API (default the provider's own)")

	j.merge = console.NewChoice(settings.MergeBoth, settings.Merges()...)
	f.Var(&j.merge, "merge", "how values are merged: by the schema (typed), by a model (model), or by a model only where the schema leaves a choice (typed-then-model)")

	f.IntVar(&j.glean, "glean", 0, "number of times that a model reviews its answer for a unit")
	j.quotes = console.NewChoice(settings.QuotesAlways, settings.Quotes()...)
	f.Var(&j.quotes, "quotes", "when a model gives the passages that show values: with each (always), or only where it is not clear where a value stands, in one more call (auto)")

	j.see = console.NewChoice(string(mapreduce.SeeNever), mapreduce.Sees()...)
	f.Var(&j.see, "see", "when a model is shown pictures of pages whose text was recognised: never, if it sees pictures (auto), or always, which refuses a model that sees none")
	f.Int64Var(&j.maxAnswer, "max-answer", llm.DefaultMaxTokens, "largest number of tokens of an answer")

	j.cascade.addFlags(f)
	j.review.addFlags(f)
	j.addParameters(f)
}

// addParameters adds the flags for the parameters of answers, which are sent only to models that take
// them.
func (j *jobFlags) addParameters(f *pflag.FlagSet) {
	j.parameters = make(map[parameters.Name]*string)
	for _, p := range []struct {
		name  parameters.Name
		usage string
	}{
		{parameters.Effort, "`LEVEL` of how much the model thinks before it answers: " + strings.Join(parameters.Efforts(), ", ")},
		{parameters.Thinking, "largest `number` of tokens that the model thinks for, beside --max-answer; 0 switches thinking off"},
		{parameters.Verbosity, "`LEVEL` of how much the model says: low, medium or high"},
		{parameters.Temperature, "`number` from 0 to 2: how often the model takes words that are less likely"},
		{parameters.TopP, "`number` above 0 and up to 1: the share of likely words that the model chooses from"},
		{parameters.Tier, "`TIER` of the vendor: flex, which costs less, answers later and may have no room; standard; priority, which costs more and answers sooner; or flex,standard for flex where it has room; or batch, as --batch"},
		{parameters.Seed, "whole `number`: the same choices each time, as far as the server can make them"},
	} {
		j.parameters[p.name] = f.String(p.name.Flag(), "", p.usage)
	}

	f.StringArrayVar(&j.stop, parameters.Stop.Flag(), nil, "`text` that ends an answer; may be repeated")
	f.BoolVar(&j.batch, "batch", false, "have the vendor answer calls in batches: for half the price with most, within minutes to a day")
}

// addReduce adds the flags for reducing outputs. The service chooses what no flag
// sets, so setReduce distinguishes a flag that was set from a default.
func (j *jobFlags) addReduce(f *pflag.FlagSet) {
	j.strategy = console.NewChoice("", "static", "adaptive")
	f.Var(&j.strategy, "strategy", "how a reduce groups outputs: a fixed number of them (static), or packed by size (adaptive) (default: one reduce, or batches if they do not fit)")
	f.Int64Var(&j.chunkSize, "chunk-size", 0, "static tree: number of outputs that a reduce reads (default 5)")
	f.Int64Var(&j.targetTokenBudget, "target-token-budget", 0, "adaptive tree: largest number of tokens that a call of a reduce reads")
	f.Int64Var(&j.contextWindow, "context-window", 0, "adaptive tree: size of the model's context window in tokens; a reduce reads --budget-ratio of it")
	f.Float64Var(&j.budgetRatio, "budget-ratio", 0, "adaptive tree: part of --context-window, from 0 to 1, that a call of a reduce reads (default 0.5)")
	f.Int64Var(&j.maxReduceLevels, "max-reduce-levels", 0, "adaptive tree: largest number of levels between the map and the final reduce (default 10)")
	f.IntVar(&j.reduceContextLimit, "reduce-context-limit", mapreduce.DefaultReduceContextLimit, "without a strategy: outputs with more tokens are reduced in levels")
	f.IntVar(&j.reduceBatchSize, "reduce-batch-size", mapreduce.DefaultReduceBatchSize, "without a strategy: number of outputs that a reduce reads")
}

// setReduce copies the flags for reducing that were set to s.
func (j *jobFlags) setReduce(flags *pflag.FlagSet, s *mapreduce.JobSpec) {
	for name, set := range map[string]func(){
		"strategy":             func() { s.Strategy = mapreduce.Strategy(j.strategy.ValueIndex() + 1) },
		"chunk-size":           func() { s.ChunkSize = &j.chunkSize },
		"target-token-budget":  func() { s.TargetTokenBudget = &j.targetTokenBudget },
		"context-window":       func() { s.ContextWindow = &j.contextWindow },
		"budget-ratio":         func() { s.BudgetRatio = &j.budgetRatio },
		"max-reduce-levels":    func() { s.MaxReduceLevels = &j.maxReduceLevels },
		"reduce-context-limit": func() { s.ReduceContextLimit = j.reduceContextLimit },
		"reduce-batch-size":    func() { s.ReduceBatchSize = j.reduceBatchSize },
	} {
		if flags.Changed(name) {
			set()
		}
	}
}

func (j *jobFlags) addCompletions(cmd *cobra.Command) {
	for name, list := range map[string][]string{"on-error": j.onError.Of, "on-breaker": j.onBreaker.Of, "provider": append([]string{runners.RulesProvider}, runners.ModelProviders()...), "merge": j.merge.Of, "strategy": j.strategy.Of, "capture": j.capture.Of, "see": j.see.Of, "cascade-per": j.cascade.per.Of} {
		console.OfferWords(cmd, name, list...)
	}
	_ = cmd.MarkFlagFilename("schema", "yaml", "yml", "json")   // the flag exists
	_ = cmd.MarkFlagFilename("pipeline", "yaml", "yml", "json") // likewise
}

// inputConfig returns what to read.
func (j *jobFlags) inputConfig(ctx context.Context, p *program.Program) (input.Config, error) {
	formats, err := p.Runners.DocumentFormats()
	if err != nil {
		return input.Config{}, err
	}
	members, err := p.Runners.Members.Limits()
	return input.Config{
		Formats: formats, Inputs: j.inputs, Include: j.include, Exclude: j.exclude, FollowLinks: j.followLinks, Archives: j.archives, Partial: j.partial, Sample: j.sample, Encoding: j.encoding,
		MaxBytes: p.Runners.Documents.MaxBytes(), Members: members,
		Stdin: bufio.NewReaderSize(console.NewInterruptibleReader(ctx, p.Stdin), 64<<10),
	}, err
}

// jobSpec returns the job that the flags describe. In a spec, zero means the default.
// So jobSpec refuses a flag that is set to zero, or encodes the zero as another value.
func (j *jobFlags) jobSpec(ctx context.Context, flags *pflag.FlagSet) (mapreduce.JobSpec, error) {
	s := mapreduce.JobSpec{
		RequestID: mapreduce.RequestID(j.requestID), Name: j.name, Provider: j.provider, Model: j.model,
		Parallelism: j.parallelism, MaxTokensPerUnit: j.maxTokensPerUnit, ChunkOverlap: j.chunkOverlap, Priority: j.priority,
		Estimator:   j.estimator,
		ReduceShare: j.reduceShare,
		OnError:     mapreduce.OnError(j.onError.ValueIndex()), OnBreaker: mapreduce.OnBreaker(j.onBreaker.ValueIndex()),
		MaxAttempts: j.maxAttempts, UnitTimeout: j.unitTimeout, Keep: j.keep, BreakerThreshold: j.breakerThreshold,
		BreakerTimeout: j.breakerTimeout, CheckpointInterval: j.checkpointInterval,
		Capture: mapreduce.Capture(j.capture.ValueIndex()), Cache: j.cache, StrictSchema: j.strictSchema,
	}

	j.setReduce(flags, &s)
	if err := runners.SpreadModels(&s); err != nil {
		return s, flagFault("model", err)
	}

	if s.RequestID == "" {
		s.RequestID = mapreduce.RequestID("run_" + rand.Text()) // so that it can be sent again
	}

	// In a spec 0 means the default, so -1 stands for no overlap, and the smallest number
	// for no share.
	switch {
	case !flags.Changed("chunk-overlap"):
		s.ChunkOverlap = 0 // less for small units
	case s.ChunkOverlap == 0:
		s.ChunkOverlap = -1
	}
	if s.ReduceShare == 0 {
		s.ReduceShare = math.SmallestNonzeroFloat64
	}

	if j.partial && len(input.Config{Inputs: j.inputs}.Jobs()) == 0 {
		return s, exit.UsageError("--partial: needs --input job:ID")
	}
	if err := j.checkMinimums(flags); err != nil {
		return s, err
	}

	var err error
	if s.Budget, s.BudgetIn, err = j.budget.read(flags); err != nil {
		return s, err
	}
	if s.Deadline, err = j.readDeadline(flags, time.Now()); err != nil {
		return s, err
	}
	if s.Name == "" {
		s.Name = defaultName(j.inputs)
	}
	if err := mapreduce.CheckName(s.Name); err != nil {
		return s, flagFault("name", err)
	}
	if s.Labels, err = label.Parse(j.labels); err != nil {
		return s, flagFault("label", err)
	}
	if s.Vars, err = j.parseVariables(); err != nil {
		return s, err
	}
	if s.Models, err = j.modelAliases(); err != nil {
		return s, err
	}
	if err = j.modelVars(flags, s.Vars); err != nil {
		return s, err
	}
	if err = j.cascade.fill(flags, &s); err != nil {
		return s, err
	}
	if err = j.review.fill(flags, &s); err != nil {
		return s, err
	}

	// The pipeline checks the variables against its inputs, so these are set before.
	p, err := j.readPipeline(ctx, &s)
	if err != nil {
		return s, err
	}

	if err = j.checkInputs(flags, p); err != nil {
		return s, err
	}
	if err = j.setTopic(s.Vars, p); err != nil {
		return s, err
	}
	if err = j.checkModelless(flags, &s); err != nil {
		return s, err
	}

	if j.schema == "" && !p.NeedsSchema() {
		return s, nil
	}

	parsed, err := console.ReadSchemaIn(ctx, j.locale, j.schema)
	if err != nil {
		return s, err
	}
	if err := p.CheckExamples(parsed); err != nil {
		return s, pipelineFault(err)
	}

	s.Schema, j.warnings = parsed.Canonical(), parsed.Warnings
	return s, nil
}

// checkMinimums refuses values that are too small to make sense.
func (j *jobFlags) checkMinimums(flags *pflag.FlagSet) error {
	for _, f := range []struct {
		name         string
		value, least int64
	}{
		{"parallelism", int64(j.parallelism), 1},
		{"max-tokens-per-unit", int64(j.maxTokensPerUnit), 1},
		{"chunk-overlap", int64(j.chunkOverlap), 0},
		{"reduce-context-limit", int64(j.reduceContextLimit), 1},
		{"reduce-batch-size", int64(j.reduceBatchSize), 2},
		{"max-attempts", int64(j.maxAttempts), 1},
		{"unit-timeout", int64(j.unitTimeout), 1},
		{"circuit-breaker-threshold", int64(j.breakerThreshold), 1},
		{"circuit-breaker-timeout", int64(j.breakerTimeout), 1},
		{"checkpoint-interval", int64(j.checkpointInterval), 1},
		{"sample", int64(j.sample), 1},
	} {
		if flags.Changed(f.name) && f.value < f.least {
			return exit.UsageError("--%s: must be at least %d", f.name, f.least)
		}
	}

	if j.reduceShare < 0 || j.reduceShare >= 1 || math.IsNaN(j.reduceShare) {
		return exit.UsageError("--reduce-share: must be at least 0 and less than 1")
	}
	return nil
}

func (j *jobFlags) parseVariables() (map[string]string, error) {
	vars := make(map[string]string, len(j.vars))
	for _, v := range j.vars {
		key, value, ok := strings.Cut(v, "=")
		if !ok || key == "" {
			return nil, exit.UsageError("--var: %q is not KEY=VALUE", v)
		}
		vars[key] = value
	}
	return vars, setVariable(vars, "question", "question", j.question)
}

// setVariable gives an input of the pipeline the value of a flag, if the flag has one.
func setVariable(vars map[string]string, flag, name, value string) error {
	if value == "" {
		return nil
	}
	if _, twice := vars[name]; twice {
		return exit.UsageError("--%s: the input %s of the pipeline is given twice; give it once", flag, name)
	}
	if len(value) > maxVariable {
		return exit.UsageError("--%s: has %d bytes; at most %d are accepted", flag, len(value), maxVariable)
	}

	vars[name] = value
	return nil
}

// setTopic gives a pipeline its topic: some have an input of that name, and of others the question
// is the topic.
func (j *jobFlags) setTopic(vars map[string]string, p *pipeline.Pipeline) error {
	if j.topic == "" {
		return nil
	}
	name, has := p.TopicInput()
	if !has {
		return exit.UsageError("--topic: the pipeline %s has no topic; its inputs are %s", p.Name, cmp.Or(strings.Join(slices.Sorted(maps.Keys(p.Inputs)), ", "), "none"))
	}
	return setVariable(vars, "topic", name, j.topic)
}

// maxVariable bounds a question or a topic, in bytes: prompts hold it.
const maxVariable = 16 << 10

// modelAliases returns the models behind the aliases that stages use.
func (j *jobFlags) modelAliases() (map[string]string, error) {
	aliases := make(map[string]string, len(j.aliases))
	for _, v := range j.aliases {
		name, model, ok := strings.Cut(v, "=")
		if provider, _, named := strings.Cut(model, "/"); !ok || name == "" || !named || provider == "" {
			return nil, exit.UsageError("--alias: %q is not NAME=PROVIDER/MODEL", v)
		}
		aliases[name] = model
	}
	return aliases, nil
}

// A flagVar is a flag that sets a variable of the job.
type flagVar struct{ flag, name, value string }

// modelVars copies the flags about the model to a job's variables.
func (j *jobFlags) modelVars(flags *pflag.FlagSet, vars map[string]string) error {
	parameterVars, err := j.parameterVars(flags)
	if err != nil {
		return err
	}

	for _, f := range append(parameterVars,
		flagVar{"base-url", settings.VarBaseURL, j.baseURL},
		flagVar{"merge", settings.VarMerge, j.merge.String()},
		flagVar{"glean", settings.VarGlean, fmt.Sprint(j.glean)},
		flagVar{"quotes", settings.VarQuotes, j.quotes.String()},
		flagVar{"see", settings.VarSee, j.see.String()},
		flagVar{"max-answer", settings.VarAnswer, fmt.Sprint(j.maxAnswer)},
	) {
		if !flags.Changed(f.flag) {
			continue
		}
		if _, twice := vars[f.name]; twice {
			return exit.UsageError("--%s: is also set by --var %s", f.flag, f.name)
		}
		vars[f.name] = f.value
	}

	return nil
}

// parameterVars returns the flags for the parameters of answers. It refuses values that none can have.
func (j *jobFlags) parameterVars(flags *pflag.FlagSet) ([]flagVar, error) {
	var set parameters.Set
	set.Stop = j.stop
	var all []flagVar
	for _, name := range parameters.Names() {
		if !flags.Changed(name.Flag()) {
			continue
		}

		value := set.Value(parameters.Stop)
		if name != parameters.Stop {
			value = *j.parameters[name]
		}
		// Put is called for its check alone; the text of the flag is what is kept.
		if err, ok := errors.AsType[*parameters.ValueError](set.Put(name, value)); ok {
			return nil, exit.UsageError("--%s: %s", name.Flag(), err.Rule)
		}
		all = append(all, flagVar{name.Flag(), string(name), value})
	}

	if !j.batch {
		return all, nil
	}
	if flags.Changed(parameters.Tier.Flag()) {
		return nil, exit.UsageError("--batch: calls that go by batch have no other tier; leave out --tier")
	}
	return append(all, flagVar{"batch", string(parameters.Tier), parameters.Batch}), nil
}

// checkInputs refuses flags whose variable is an input of the pipeline: it would not reach the model.
func (j *jobFlags) checkInputs(flags *pflag.FlagSet, p *pipeline.Pipeline) error {
	for _, name := range parameters.Names() {
		if _, own := p.Inputs[string(name)]; own && flags.Changed(name.Flag()) {
			return exit.UsageError("--%s: the pipeline %s has an input of that name; set that with --var %s=VALUE, and this with the key parameters of a stage", name.Flag(), p.Name, name)
		}
	}
	return nil
}

// defaultName returns what a job is called that the user gives no name: as its first input.
func defaultName(inputs []string) string {
	if len(inputs) == 0 {
		return ""
	}

	first := inputs[0]
	switch {
	case first == "-":
		first = "standard input"
	case !strings.HasPrefix(first, "job:"):
		if whole, err := filepath.Abs(first); err == nil {
			first = whole
		}
		first = filepath.Base(first)
	}

	return mapreduce.NameOf(first, len(inputs))
}

// flagFault is the error of a flag for one about the field of the job.
func flagFault(flag string, err error) error {
	if e, ok := errors.AsType[*errs.Error](err); ok {
		return exit.UsageError("--%s: %s", flag, e.Message)
	}
	return err
}

// checkModelless refuses flags that only a model could follow, if the provider is
// rules, under the name that the user gave them.
func (j *jobFlags) checkModelless(flags *pflag.FlagSet, s *mapreduce.JobSpec) error {
	err := runners.CheckModelless(s)
	var e *errs.Error
	if !errors.As(err, &e) {
		return err
	}
	if flag := strings.ReplaceAll(strings.TrimPrefix(e.Field, "vars."), "_", "-"); flags.Changed(flag) {
		return exit.UsageError("--%s: %s", flag, e.Message)
	}
	return err
}
