package runners

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/pipeline/cascading"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners/asked"
	"github.com/coditect/mapreduce/internal/text/rules"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/vendors"
	"github.com/coditect/mapreduce/worker/step"
)

// A checker refuses jobs that no worker could run, and says how many tokens of a
// document fit into the context window.
type checker interface {
	Check(*mapreduce.JobSpec) error
	Room(*mapreduce.JobSpec) (int64, error)
}

// checkModel refuses a job whose model could not run it, before anything is stored or
// spent, and makes units fit the context window. With a server it checks neither key
// nor address, as only the workers know them.
func (r *Runners) checkModel(spec *mapreduce.JobSpec, units *pflag.Flag) error {
	askers := func(name string) (*model.Agent, error) { return r.askers[name], nil }
	if r.Remote {
		askers = keylessAgent
	}

	if err := checkStages(spec, askers); err != nil {
		return exit.UsageError("--pipeline: %w", err)
	}

	// A provider that asks no model has no context window to fit.
	if asked.KeyVariables[spec.Provider] == "" {
		return nil
	}

	there, err := askers(spec.Provider)
	if err != nil {
		return err
	}

	if !r.Remote {
		if err := r.askServer(spec, there); err != nil {
			return err
		}
	}

	return fitSpec(there, spec, units)
}

// checkStages refuses a stage that its own model could not run, or that of one of its agents.
func checkStages(spec *mapreduce.JobSpec, askers func(provider string) (*model.Agent, error)) error {
	p, err := step.PipelineOf(spec)
	if err != nil {
		return err
	}

	for _, s := range p.Stages {
		own := jobspec.ForStage(*spec, s)
		if err := checkMembers(&own, s, askers); err != nil {
			return err
		}
		if asked.KeyVariables[own.Provider] == "" {
			continue
		}

		asker, err := askers(own.Provider)
		if err != nil {
			return err
		}
		if s.Model != "" { // that of the job is checked with the job
			if err := asker.CheckStage(&own, s.Name); err != nil {
				return ofModel("stages."+s.Name, err)
			}
		}
		by := asked.AgentModels(&own, p, s)
		for _, name := range slices.Sorted(maps.Keys(by)) {
			spec := by[name]
			if err := asker.CheckStage(&spec, s.Name); err != nil {
				return ofModel("agents."+name, err)
			}
		}
	}

	return nil
}

// checkMembers refuses a cascade of whose members one could not do the units of the stage: rules need a
// schema that they can search for, and a model has to take the schema and the settings. own is the spec as
// units of the stage run with it.
func checkMembers(own *mapreduce.JobSpec, stage *pipeline.Stage, askers func(provider string) (*model.Agent, error)) error {
	for i, member := range stage.Members[:max(0, len(stage.Members)-1)] {
		field := fmt.Sprintf("stages.%s.cascade[%d]", stage.Name, i)
		if member == cascading.Rules {
			text := own.Schema
			if stage.Output.Schema != nil {
				text = stage.Output.Schema
			}
			parsed, err := schema.Parse("schema", text)
			if err == nil {
				_, err = rules.Compile(parsed)
			}
			if err != nil {
				return errs.Field(field, "rules cannot work by the schema of the stage: %s", err)
			}
			continue
		}

		spec, err := memberSpec(own, member)
		if err != nil || asked.KeyVariables[spec.Provider] == "" {
			continue // the service says so
		}
		asker, err := askers(spec.Provider)
		if err != nil {
			return err
		}
		if err := asker.CheckStage(spec, stage.Name); err != nil {
			return errs.Field(field, "%s: %w", member, err)
		}
	}
	return nil
}

// memberSpec returns the spec of a job as a cheaper member of a cascade runs with it, given that of the
// last one.
func memberSpec(last *mapreduce.JobSpec, member string) (*mapreduce.JobSpec, error) {
	names, err := last.StageModels(member)
	if err != nil {
		return nil, err
	}

	own := *last
	own.Provider, own.Model, _ = strings.Cut(names[0], "/")
	own.Fallbacks = nil
	if own.Provider != last.Provider {
		own.Vars = settings.WithoutServer(last.Vars)
	}
	return &own, nil
}

// ofModel gives the error of the model of a stage or an agent the field that names it.
func ofModel(owner string, err error) error {
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Field == "model" {
		return errs.Field(owner+".model", "%s", e.Message)
	}
	return named(owner+".model", err)
}

// patience is how long a server may take to say which models it has.
const patience = 5 * time.Second

// askServer asks the server of a job's model about that model, where the answer matters and
// costs nothing. Of a server that was started with a window it takes the window, unless the
// job says one. It refuses a model that cannot do what is needed, as the server says. If
// the server does not answer, the job finds that out itself.
func (r *Runners) askServer(spec *mapreduce.JobSpec, asker *model.Agent) error {
	i := slices.IndexFunc(vendors.All(), func(v vendors.Vendor) bool { return v.Name == spec.Provider })
	if i < 0 || spec.Vars == nil || spec.Replay != "" {
		return nil
	}

	need, err := asker.NeedOf(spec)
	started := vendors.All()[i].Started && spec.Vars[settings.VarWindow] == ""
	if !started && (err != nil || !need.Tools) {
		return nil //nolint:nilerr // what is wrong with the job is told by its check
	}

	p, err := r.access().open(spec.Provider, spec.Vars[settings.VarBaseURL], "--provider "+spec.Provider)
	if err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	offer, all, err := offersOf(ctx, p, llm.Model(spec.Model))
	switch {
	case err != nil || len(all) == 0:
		return nil //nolint:nilerr // see above
	case offer == nil && started:
		return exit.UsageError("--model: the server of %s has no model %q; it has %s", spec.Provider, spec.Model, modelNames(all))
	case offer == nil:
		return nil
	}

	if offer.Window > 0 && started {
		spec.Vars[settings.VarWindow] = strconv.FormatInt(offer.Window, 10)
	}
	if why := llm.LacksOf(*offer, need); why != "" {
		return exit.UsageError("--model: %s %s, as the server of %s tells%s", spec.Model, why, spec.Provider, llm.CouldBe("its models", llm.AbleOf(all, need)))
	}

	return nil
}

// offersOf returns what a server states about a model, nil if it has others and not this one,
// and those of all its models. A server with one model may take any name for it.
func offersOf(ctx context.Context, p llm.Provider, model llm.Model) (*llm.Offer, []llm.Offer, error) {
	if d, ok := p.(llm.Describer); ok {
		o, err := d.Describe(ctx, model)
		// The whole list is needed only to name a model that can do what this one cannot.
		if err != nil || llm.LacksOf(o, llm.Need{Tools: true}) == "" {
			return &o, []llm.Offer{o}, err
		}
	}

	lister, ok := p.(llm.Lister)
	if !ok {
		return nil, nil, nil
	}
	all, err := lister.Offers(ctx)
	if err != nil || len(all) == 0 {
		return nil, nil, err
	}

	i := slices.IndexFunc(all, func(o llm.Offer) bool { return o.Model == model })
	switch {
	case i >= 0:
		return &all[i], all, nil
	case len(all) == 1:
		return &all[0], all, nil
	}
	return nil, all, nil
}

// modelNames lists the first models of a server.
func modelNames(all []llm.Offer) string {
	var names []string
	for _, o := range all[:min(len(all), 20)] {
		names = append(names, string(o.Model))
	}
	return strings.Join(names, ", ")
}

// fitSpec refuses a job that c refuses, and makes its units fit the context window.
func fitSpec(c checker, spec *mapreduce.JobSpec, units *pflag.Flag) error {
	if err := c.Check(spec); err != nil {
		return exit.UsageError("--provider %s: %w", spec.Provider, err)
	}

	room, err := c.Room(spec)
	if err != nil || room == 0 || int64(spec.MaxTokensPerUnit) <= room || units == nil {
		return err
	}
	if units.Changed {
		return exit.UsageError("--max-tokens-per-unit: the context window has room for %d tokens of a document beside instructions, schema and answer", room)
	}

	spec.MaxTokensPerUnit = int(room)
	return nil
}

// CouldRun refuses a job that could not run even with the key of its model.
func (r *Runners) CouldRun(spec *mapreduce.JobSpec, units *pflag.Flag) error {
	if err := r.checkProvider(spec.Provider); err != nil {
		return err
	}

	if err := checkStages(spec, keylessAgent); err != nil {
		return exit.UsageError("--pipeline: %w", err)
	}

	if asked.KeyVariables[spec.Provider] != "" {
		there, err := keylessAgent(spec.Provider)
		if err != nil {
			return err
		}
		if err := fitSpec(there, spec, units); err != nil {
			return err
		}
	}

	return r.CheckAccepted(*spec)
}
