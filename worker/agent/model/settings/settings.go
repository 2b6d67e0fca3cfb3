// Package settings has the settings of a job for its model: what they are named among the
// variables of the job, and what they may be.
//
// It asks no model and knows no vendor, so that anything may read the settings of a job.
package settings

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/step"
)

// The variables of a job (JobSpec.Vars) that are settings of its model.
const (
	VarBaseURL = "base_url"   // where the provider's interface is; see Config.Trusted
	VarMerge   = "merge"      // typed, model or typed-then-model
	VarGlean   = "glean"      // rounds of looking again at what was found
	VarAnswer  = "max_answer" // tokens of an answer
	VarWindow  = "window"     // tokens of the model's context window
	VarTools   = "tool_mode"  // true: answers are inputs of a forced tool
	VarPrices  = "prices"     // what the model costs, as a file of prices has it
	VarQuotes  = "quotes"     // auto or always
	VarSee     = mapreduce.VarSee
)

// Variables are the names of all settings. Beside those above they are the parameters of answers.
func Variables() []string {
	all := []string{VarBaseURL, VarMerge, VarGlean, VarAnswer, VarWindow, VarTools, VarPrices, VarQuotes, VarSee}
	for _, name := range parameters.Names() {
		all = append(all, string(name))
	}
	return all
}

// WithoutServer returns variables of a job without what is said of its provider alone, for a model of
// another one.
func WithoutServer(vars map[string]string) map[string]string {
	own := maps.Clone(vars)
	for _, of := range []string{VarBaseURL, VarWindow, VarTools} {
		delete(own, of)
	}
	return own
}

// How outputs are reduced.
const (
	MergeTyped = "typed"            // as the schema decides, and no model is asked
	MergeModel = "model"            // a model decides wherever values differ
	MergeBoth  = "typed-then-model" // a model decides what the schema leaves open
)

// Merges are the ways to reduce, the default first.
func Merges() []string { return []string{MergeBoth, MergeTyped, MergeModel} }

// When a model is asked for the passages that show values.
const (
	QuotesAlways = "always" // with each value
	QuotesAuto   = "auto"   // only of values whose place in the document is not clear, in one more call
)

// Quotes are the ways to ask for passages, the default first.
func Quotes() []string { return []string{QuotesAlways, QuotesAuto} }

// Settings are the settings of a job for its model.
type Settings struct {
	Provider  string
	Model     llm.Model
	BaseURL   string
	Merge     string
	Glean     int
	Quotes    string
	MaxAnswer int64 // tokens
	Window    int64 // tokens; 0 if it is not known
	ToolMode  bool
	See       mapreduce.See // whether it is shown pages

	Parameters parameters.Set // of answers
}

// AnswerBound returns the most tokens that a call may write: those of an answer, and those that its
// parameters let the model think.
func (s *Settings) AnswerBound() int64 { return s.MaxAnswer + s.Parameters.Room() }

// Bounds of settings.
const (
	maxGlean  = 5
	minAnswer = 64
	maxAnswer = 1 << 20
)

// AnswerOf returns the most tokens that a call may write in a job, which is looked up for each unit
// of it. What is no such number is refused by Read.
func AnswerOf(spec *mapreduce.JobSpec) int64 {
	s := Settings{MaxAnswer: llm.DefaultMaxTokens}
	if n, err := strconv.ParseInt(spec.Vars[VarAnswer], 10, 64); err == nil && n >= minAnswer && n <= maxAnswer {
		s.MaxAnswer = n
	}
	if set, err := parameters.Read(spec.Vars); err == nil {
		s.Parameters = set
	}
	return s.AnswerBound()
}

// ParametersOf returns the parameters of answers that a run gives to all stages. A variable that the
// pipeline has as an input of its own is none. The error names the variable.
func ParametersOf(p *pipeline.Pipeline, vars map[string]string) (parameters.Set, error) {
	given := make(map[string]string)
	for _, name := range parameters.Names() {
		text, ok := vars[string(name)]
		if _, own := p.Inputs[string(name)]; ok && !own {
			given[string(name)] = text
		}
	}

	set, err := parameters.Read(given)
	if bad, ok := errors.AsType[*parameters.ValueError](err); ok {
		return set, errs.Field("vars."+string(bad.Name), "%s", bad.Rule)
	}
	return set, err
}

// RunParameters returns the parameters of answers that a run gives to all stages, for people; none if
// the job cannot be read, which others say.
func RunParameters(spec *mapreduce.JobSpec) parameters.Set {
	p, err := step.PipelineOf(spec)
	if err != nil {
		return parameters.Set{}
	}
	set, err := ParametersOf(p, spec.Vars)
	if err != nil {
		return parameters.Set{}
	}
	return set
}

// Read reads the settings of a job. The error names the setting that is wrong.
func Read(spec *mapreduce.JobSpec) (Settings, error) {
	s := Settings{
		Provider: spec.Provider, Model: llm.Model(spec.Model), BaseURL: spec.Vars[VarBaseURL],
		Merge: spec.Vars[VarMerge], ToolMode: spec.Vars[VarTools] == "true", See: spec.See(),
	}

	p, err := step.PipelineOf(spec)
	if err != nil {
		return s, err
	}

	for _, stage := range p.Stages {
		if s.Merge == "" && stage.Each == pipeline.EachGroup {
			s.Merge = stage.Merge
		}
	}
	s.Merge = cmp.Or(s.Merge, MergeBoth)

	if s.Model == "" {
		return s, errs.Field("model", "is needed: the provider %s asks one", s.Provider)
	}
	if !slices.Contains(Merges(), s.Merge) {
		return s, errs.Field("vars."+VarMerge, "%q is not one of %s", s.Merge, strings.Join(Merges(), ", "))
	}

	s.Quotes = cmp.Or(spec.Vars[VarQuotes], QuotesAlways)
	if !slices.Contains(Quotes(), s.Quotes) {
		return s, errs.Field("vars."+VarQuotes, "%q is not one of %s", s.Quotes, strings.Join(Quotes(), ", "))
	}
	if !slices.Contains(mapreduce.Sees(), string(s.See)) {
		return s, errs.Field("vars."+VarSee, "%q is not one of %s", s.See, strings.Join(mapreduce.Sees(), ", "))
	}

	// number reads a variable. It keeps the first error, for the check behind all of them.
	number := func(name string, otherwise, least, most int64) int64 {
		text := spec.Vars[name]
		if text == "" || err != nil {
			return otherwise
		}
		n, bad := strconv.ParseInt(text, 10, 64)
		if bad != nil || n < least || n > most {
			err = errs.Field("vars."+name, "%q is not a number from %d to %d", text, least, most)
		}
		return n
	}

	s.Glean = int(number(VarGlean, 0, 0, maxGlean))
	s.MaxAnswer = number(VarAnswer, llm.DefaultMaxTokens, minAnswer, maxAnswer)

	s.Window = windowOf(s.Provider)
	if spec.ContextWindow != nil {
		s.Window = *spec.ContextWindow
	}
	s.Window = number(VarWindow, s.Window, minAnswer, 1<<30)

	if err != nil {
		return s, err
	}
	if s.Quotes == QuotesAuto && s.Glean > 0 {
		return s, errs.Field("vars."+VarQuotes, "%s does not go with %s %d: a review of an answer needs the passages with it; leave out one of them", s.Quotes, VarGlean, s.Glean)
	}

	s.Parameters, err = ParametersOf(p, spec.Vars)
	return s, err
}

// windowOf is the context window that a provider is asked for, 0 if that is
// the model's own affair.
func windowOf(provider string) int64 {
	if provider == "ollama" {
		return llm.DefaultWindow
	}
	return 0
}

// PlannedTier returns the tier at whose prices a plan of a job is: that which it asks for, but for batches of a
// job that shows its models pages, as calls with pictures are made in real time.
func PlannedTier(spec *mapreduce.JobSpec) string {
	tier := cmp.Or(spec.Vars[string(parameters.Tier)], parameters.Standard)
	if tier == parameters.Batch && spec.See() != mapreduce.SeeNever {
		return parameters.Standard
	}
	return tier
}
