// Package asked says which models a job asks, and with what parameters of answers: which of them
// a model takes, and what is sent in place of what it does not.
package asked

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/vendors"
	"github.com/coditect/mapreduce/worker/step"
)

// KeyVariables has, by provider, the environment variable that holds its key.
var KeyVariables = func() map[string]string {
	out := make(map[string]string)
	for _, v := range vendors.All() {
		out[v.Name] = v.KeyVariable
	}
	return out
}()

// A Model is a stage whose units ask a model, or an agent of a stage that has a model of its own. Of
// several models it is the first, which is asked as long as it answers.
type Model struct {
	index    int    // of the stage, among those of the pipeline
	agent    string // whose model it is; "" if it is the stage's
	Provider string
	Model    llm.Model
	Limits   parameters.Limits
	Own      parameters.Set // of the stage
	Others   []Model        // the models that stand for this one
}

// CheckParameters refuses parameters of answers that a model is known not to take: those of a stage,
// whose agents may have models of their own, and those of the run that none of its models takes. A parameter of the run is not sent to the
// models that do not take it, if others do. Of a list of models, the first counts, as most answers are
// its own; what a later one does not take is not sent to that one: see AdviseOnParameters.
// endpoints has the addresses of providers. The error names the field, and models that could.
func CheckParameters(spec *mapreduce.JobSpec, prices *llm.Prices, endpoints map[string]string) error {
	run, stages, err := ParametersOf(spec, endpoints)
	if err != nil {
		return err
	}

	for _, a := range stages {
		if err := a.checkOwn(run, prices); err != nil {
			return err
		}
	}

	for _, name := range run.Given() {
		if err := checkRun(name, run, stages, prices); err != nil {
			return err
		}
	}

	return nil
}

// AdviseOnParameters returns a line for each model of a job that is asked with other parameters than
// those that were given, since it is known not to take these.
func AdviseOnParameters(spec *mapreduce.JobSpec, endpoints map[string]string) (lines []string) {
	run, stages, err := ParametersOf(spec, endpoints)
	if err != nil {
		return nil // the job is refused
	}

	for _, a := range stages {
		for _, m := range append([]Model{a}, a.Others...) {
			if line := m.adapted(a.Own.Over(run)); line != "" && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}

	return lines
}

// adapted says with what a model is asked in place of parameters that it does not take; "" if it takes
// all of them.
func (a Model) adapted(set parameters.Set) string {
	if KeyVariables[a.Provider] == "" {
		return "" // it asks nobody
	}

	kept := a.Limits.Keep(set)
	var words []string
	for _, name := range set.Given() {
		switch value := kept.Value(name); value {
		case set.Value(name): // the model takes it as it is
		case "":
			words = append(words, "without "+string(name))
		default:
			words = append(words, fmt.Sprintf("with %s %s in place of %s", name, value, set.Value(name)))
		}
	}

	if len(words) == 0 {
		return ""
	}
	return fmt.Sprintf("%s/%s is asked %s, since it takes no other", a.Provider, a.Model, strings.Join(words, " and "))
}

// ParametersOf returns the parameters that a run gives to all stages, and the stages that ask models.
func ParametersOf(spec *mapreduce.JobSpec, endpoints map[string]string) (run parameters.Set, stages []Model, err error) {
	p, err := step.PipelineOf(spec)
	if err != nil {
		return run, nil, err
	}
	if run, err = settings.ParametersOf(p, spec.Vars); err != nil {
		return run, nil, err
	}
	return run, askedStages(spec, p, endpoints), nil
}

// askedStages returns the stages that ask models, and their agents that ask others, with what is known of
// these models.
func askedStages(spec *mapreduce.JobSpec, p *pipeline.Pipeline, endpoints map[string]string) []Model {
	var all []Model
	for i, stage := range p.Stages {
		own := jobspec.ForStage(*spec, stage)
		if KeyVariables[own.Provider] == "" && stage.Parameters.IsZero() {
			continue
		}

		agents := AgentModels(&own, p, stage)
		if stage.Each != pipeline.EachAgent || stage.Select != "" || len(agents) < len(stage.Agents) || len(stage.Agents) == 0 {
			all = append(all, newAsked(i, "", &own, stage, endpoints)) // else each agent has a model of its own
		}
		for _, name := range stage.Agents {
			if by, ok := agents[name]; ok {
				all = append(all, newAsked(i, name, &by, stage, endpoints))
			}
		}
	}
	return all
}

// AgentModels returns the agents of a stage that have models of their own, each with the spec of a job as
// its units run with it. own is that of the stage.
func AgentModels(own *mapreduce.JobSpec, p *pipeline.Pipeline, stage *pipeline.Stage) map[string]mapreduce.JobSpec {
	all := make(map[string]mapreduce.JobSpec)
	for _, name := range stage.Agents {
		by := p.Agents[name]
		if by == nil {
			continue // the pipeline is refused
		}
		names, err := own.StageModels(by.Model)
		if err != nil || len(names) == 0 {
			continue // likewise, or it asks the stage's
		}

		spec := *own
		if err := spec.SetModels(names); err == nil {
			all[name] = spec
		}
	}
	return all
}

// newAsked returns what the units of a stage, or of an agent of it, ask.
func newAsked(index int, agent string, spec *mapreduce.JobSpec, stage *pipeline.Stage, endpoints map[string]string) Model {
	one := Model{index: index, agent: agent, Provider: spec.Provider, Model: llm.Model(spec.Model), Own: stage.Parameters}
	one.findLimits(spec, endpoints)
	for _, name := range spec.Fallbacks {
		other := Model{index: index, agent: agent}
		provider, model, _ := strings.Cut(name, "/")
		other.Provider, other.Model = provider, llm.Model(model)
		other.findLimits(spec, endpoints)
		one.Others = append(one.Others, other)
	}
	return one
}

// findLimits sets what is known of a model. The address that a job names is of its first provider.
func (a *Model) findLimits(spec *mapreduce.JobSpec, endpoints map[string]string) {
	address := endpoints[a.Provider]
	if a.Provider == spec.Provider {
		address = cmp.Or(spec.Vars[settings.VarBaseURL], address)
	}
	a.Limits = limitsFor(a.Provider, address, a.Model)
}

// limitsFor returns what is known of the parameters that a model takes.
func limitsFor(provider, baseURL string, model llm.Model) parameters.Limits {
	all := vendors.All()
	i := slices.IndexFunc(all, func(v vendors.Vendor) bool { return v.Name == provider })
	if i < 0 {
		return parameters.Limits{}
	}
	return all[i].LimitsOf(baseURL, model)
}

// checkOwn refuses parameters that the stage itself has.
func (a Model) checkOwn(run parameters.Set, prices *llm.Prices) error {
	if a.Own.IsZero() {
		return nil
	}
	if KeyVariables[a.Provider] == "" {
		return errs.Field(fmt.Sprintf("stages[%d].parameters", a.index), "the provider %s asks no model: give the stage a model, or leave this out", a.Provider)
	}

	name, rule := a.Limits.Refusal(a.Own)
	if rule == "" {
		if name, rule = a.Limits.Refusal(a.Own.Over(run)); !slices.Contains(a.Own.Given(), name) {
			return nil // it is the run's
		}
	}

	return errs.Field(fmt.Sprintf("stages[%d].parameters.%s", a.index, name), "%s", a.explain(name, rule, a.Own, prices))
}

// checkRun refuses a parameter of the run that no model of the job takes.
func checkRun(name parameters.Name, run parameters.Set, stages []Model, prices *llm.Prices) error {
	field := "vars." + string(name)
	stages = slices.DeleteFunc(slices.Clone(stages), func(a Model) bool { return KeyVariables[a.Provider] == "" })
	if len(stages) == 0 {
		return errs.Field(field, "no model is asked: name a provider that asks one, or leave this out")
	}

	first := ""
	for _, a := range stages {
		refused, rule := a.Limits.Refusal(a.Own.Over(run))
		if refused != name {
			return nil
		}
		if first == "" {
			first = a.explain(name, rule, run, prices)
		}
	}

	return errs.Field(field, "%s", first)
}

// maxCould bounds the models that a message names.
const maxCould = 4

// explain says what a model does not take, and which models do.
func (a Model) explain(name parameters.Name, rule string, set parameters.Set, prices *llm.Prices) string {
	text := fmt.Sprintf("the model %s of %s: %s", a.Model, a.Provider, rule)
	if a.agent != "" {
		text = fmt.Sprintf("the model %s of %s, which the agent %s has: %s", a.Model, a.Provider, a.agent, rule)
	}
	could := a.couldTake(set, name, prices)
	if len(could) == 0 {
		return text + "; leave it out"
	}
	return text + "; of the models with known prices, these take it: " + strings.Join(could, ", ")
}

// couldTake returns models that take a parameter: those of the same provider, or else of others.
func (a Model) couldTake(set parameters.Set, name parameters.Name, prices *llm.Prices) (all []string) {
	alone := set.Without(slices.DeleteFunc(parameters.Names(), func(n parameters.Name) bool { return n == name })...)

	for _, provider := range append([]string{a.Provider}, prices.Providers()...) {
		if provider != a.Provider && len(all) > 0 && strings.HasPrefix(all[0], a.Provider+"/") {
			return all
		}
		for _, model := range prices.Models(provider) {
			if _, rule := limitsFor(provider, "", model).Refusal(alone); rule == "" && len(all) < maxCould {
				all = append(all, provider+"/"+string(model))
			}
		}
	}

	return all
}
