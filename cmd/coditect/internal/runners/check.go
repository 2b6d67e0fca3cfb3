package runners

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners/asked"
	"github.com/coditect/mapreduce/internal/text/rules"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/step"
)

// SpecCheck returns the function that refuses jobs which no worker could run, whoever
// submits them. The commands make the same checks before they read any document. An
// error names the field. Keys are not looked at: only workers have them.
func (r *Runners) SpecCheck() (func(*mapreduce.JobSpec) error, error) {
	all, err := r.StepRegistry()
	if err != nil {
		return nil, err
	}

	prices, err := r.Models.PriceList()
	if err != nil {
		return nil, err
	}

	// These agents only check jobs and send no request, so any key will do.
	askers := make(map[string]*model.Agent)
	for _, name := range ModelProviders() {
		askers[name], err = model.New(model.Config{
			Provider: name, Trusted: !r.Models.Fleet, Prices: prices, Random: rand.Float64, LLM: llm.Config{Key: llm.NewKey("of-the-workers")},
			Others: func(name string) *model.Agent { return askers[name] },
		})
		if err != nil {
			return nil, err
		}
	}

	endpoints, err := r.Models.baseURLs()
	if err != nil {
		return nil, err
	}
	known := slices.Concat(all.Names(), slices.Collect(maps.Keys(askers)))

	return func(spec *mapreduce.JobSpec) error {
		providers, err := providersOf(spec)
		if err != nil {
			return err
		}

		for field, name := range providers {
			if !slices.Contains(known, name) {
				return errs.Field(field, "no provider is named %q; the providers are %s", name, r.Extra.shownOf(all))
			}
		}

		if err := cmp.Or(CheckModelless(spec), checkNames(spec)); err != nil {
			return err
		}
		if err := checkSchema(spec); err != nil {
			return err
		}
		if err := r.Documents.allow(spec); err != nil {
			return err
		}

		if err := checkStages(spec, func(name string) (*model.Agent, error) { return askers[name], nil }); err != nil {
			return err
		}

		if asker := askers[spec.Provider]; asker != nil {
			if err := named("model", asker.Check(spec)); err != nil {
				return err
			}
		}

		return cmp.Or(asked.CheckParameters(spec, prices, endpoints), CheckPriced(spec, prices, endpoints))
	}, nil
}

// CheckPriced refuses a budget in dollars if a model that the job may ask has no known price in the tier
// that it is asked in: nobody would know what its calls cost. endpoints has the addresses of providers.
func CheckPriced(spec *mapreduce.JobSpec, prices *llm.Prices, endpoints map[string]string) error {
	if spec.MaxCost() == 0 {
		return nil
	}

	prices, err := prices.With([]byte(spec.Vars[settings.VarPrices]))
	if err != nil {
		return errs.Field("vars."+settings.VarPrices, "%w", err)
	}
	run, stages, err := asked.ParametersOf(spec, endpoints)
	if err != nil {
		return err
	}

	refused := func(name, of string) error {
		return errs.Field("max_cost", "is %s, and no price of %s is known%s; set it with --prices FILE, or give the budget in tokens with --budget",
			mapreduce.DollarText(spec.MaxCost()), name, of)
	}
	for _, name := range step.ModelsOf(spec) {
		provider, model, _ := strings.Cut(name, "/")
		if _, known := prices.Tariff(provider, llm.Model(model)); !known {
			return refused(name, "")
		}
	}

	for _, a := range stages {
		for _, m := range append([]asked.Model{a}, a.Others...) {
			tier := m.Limits.Keep(a.Own.Over(run)).Tier
			if t, known := prices.Tariff(m.Provider, m.Model); known && !t.Has(tier) {
				return refused(m.Provider+"/"+string(m.Model), " in the tier "+tier)
			}
		}
	}
	return nil
}

// SpecAdvice returns the function whose lines tell the owner of a job what its models will not do
// as the job asks.
func (r *Runners) SpecAdvice() (func(*mapreduce.JobSpec) []string, error) {
	endpoints, err := r.Models.baseURLs()
	if err != nil {
		return nil, err
	}
	return func(spec *mapreduce.JobSpec) []string {
		return append(asked.AdviseOnParameters(spec, endpoints), AdviseOnBatches(spec)...)
	}, nil
}

// checkSchema refuses a schema that cannot be read, or that rules could not search for.
func checkSchema(spec *mapreduce.JobSpec) error {
	if len(spec.Schema) == 0 {
		return nil // the pipeline needs none, or the service has said so
	}

	s, err := schema.Parse("schema", spec.Schema)
	if err != nil {
		return errs.Field("schema", "%s", err)
	}

	if spec.Provider != RulesProvider {
		return nil
	}
	if _, err := rules.Compile(s); err != nil {
		return errs.Field("schema", "%s", err)
	}
	return nil
}

// named gives an error that names no field the field that it is about.
func named(field string, err error) error {
	if e, ok := err.(*errs.Error); err == nil || ok && e.Field != "" { //nolint:errorlint // what wraps a field says more about it
		return err
	}
	if about, ok := strings.CutPrefix(err.Error(), "schema: "); ok {
		return errs.Field("schema", "%s", about)
	}
	return errs.Field(field, "%w", err)
}

// providersOf returns the providers that a job names, by the fields that name them.
func providersOf(spec *mapreduce.JobSpec) (map[string]string, error) {
	all := map[string]string{"provider": spec.Provider}
	for i, m := range spec.Fallbacks {
		all[fmt.Sprintf("fallback_models[%d]", i)], _, _ = strings.Cut(m, "/")
	}

	for alias, m := range spec.Models {
		names, err := spec.StageModels(m)
		if err != nil || alias == "" || len(names) == 0 {
			return nil, errs.Field("model_aliases", "%q stands for %q, which is not provider/model", alias, m)
		}
		addProviders(all, "model_aliases."+alias, names)
	}

	p, err := step.PipelineOf(spec)
	if err != nil {
		return nil, err
	}

	for _, s := range p.Stages {
		if names, err := spec.StageModels(s.Model); err == nil { // else the service says so
			addProviders(all, "stages."+s.Name+".model", names)
		}
		for i, member := range s.Members {
			if names, err := spec.StageModels(member); err == nil { // likewise
				addProviders(all, fmt.Sprintf("stages.%s.cascade[%d]", s.Name, i), names)
			}
		}
	}
	for name, by := range p.Agents {
		if names, err := spec.StageModels(by.Model); err == nil { // likewise
			addProviders(all, "agents."+name+".model", names)
		}
	}

	return all, nil
}

// addProviders adds the providers of models that a field names to those of a job.
func addProviders(all map[string]string, field string, models []string) {
	for i, m := range models {
		at := field
		if i > 0 {
			at = fmt.Sprintf("%s[%d]", field, i)
		}
		all[at], _, _ = strings.Cut(m, "/")
	}
}

// SpreadModels makes several models of a list: see mapreduce.JobSpec.SpreadModels. It refuses a list
// whose names begin with other providers than the one that is given, for such a name would be asked of
// that one. Some vendors have names of models with others' before a slash, and know what is meant.
func SpreadModels(spec *mapreduce.JobSpec) error {
	all := spec.Provider // of all models; "" if each names its own
	if all == RulesProvider {
		all = ""
	}
	if err := spec.SpreadModels(); err != nil || all == "" {
		return err
	}
	return checkNames(spec)
}

// checkNames refuses a list of models of which one names another provider, though all are of one.
func checkNames(spec *mapreduce.JobSpec) error {
	if len(spec.Fallbacks) == 0 || slices.Contains(relays(), spec.Provider) {
		return nil
	}

	for _, name := range spec.ModelNames() {
		provider, model, _ := strings.Cut(name, "/")
		other, _, ok := strings.Cut(model, "/")
		if ok && provider == spec.Provider && asked.KeyVariables[other] != "" {
			return errs.Field("model", "%s names a provider, and the job's provider %s says that all models are its own; leave that out, and name the provider of each model", model, spec.Provider)
		}
	}
	return nil
}

// relays are the providers whose models may be named by those who made them, before a slash.
func relays() []string {
	return []string{"openrouter", "groq", "together", "fireworks", "vllm", "llamacpp", "lmstudio", "ollama"}
}

// CheckModelless refuses settings that only a model could follow, if the provider is
// rules. Otherwise the owner would believe that a model had read the documents. The
// error names the field.
func CheckModelless(spec *mapreduce.JobSpec) error {
	if spec.Provider != RulesProvider {
		return nil
	}

	for _, f := range []struct {
		field string
		set   bool
	}{
		{"model", spec.Model != ""},
		{"vars." + settings.VarBaseURL, spec.Vars[settings.VarBaseURL] != ""},
		{"vars." + settings.VarMerge, spec.Vars[settings.VarMerge] == settings.MergeModel},
		{"vars." + settings.VarGlean, spec.Vars[settings.VarGlean] != "" && spec.Vars[settings.VarGlean] != "0"},
		{"vars." + settings.VarQuotes, spec.Vars[settings.VarQuotes] == settings.QuotesAuto},
		{"vars." + settings.VarSee, spec.See() != mapreduce.SeeNever},
	} {
		if f.set {
			return errs.Field(f.field, "the provider rules asks no model: name another provider, or leave this out")
		}
	}

	return nil
}
