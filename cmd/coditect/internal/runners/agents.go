// Package runners has what the units of this process run with: formats of documents,
// providers with their steps, models with their prices, and limits of calls. It checks
// whether a job could run with them.
package runners

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/internal/document"
	"github.com/coditect/mapreduce/internal/document/pdf"
	"github.com/coditect/mapreduce/internal/document/picture"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/llm/decorator"
	"github.com/coditect/mapreduce/worker/step"
	"github.com/coditect/mapreduce/worker/step/cascade"
	"github.com/coditect/mapreduce/worker/step/gather"
	"github.com/coditect/mapreduce/worker/step/parse"
	"github.com/coditect/mapreduce/worker/step/passages"
	"github.com/coditect/mapreduce/worker/step/review"
	"github.com/coditect/mapreduce/worker/step/rules"
	"github.com/coditect/mapreduce/worker/tool/toolbox"
)

// An Extra is a provider that a program has beside those of this package. Help does not show
// it, and the variables of its jobs are its own. The zero Extra is none.
type Extra struct {
	Name      string   // of the provider
	Variables []string // of the environment, that it reads

	// Add adds the steps of the provider, by its name, to all those that ask no model.
	Add func(all *step.Registry, name string, getenv func(string) string) error
}

// Runners are what the units of this process run with.
type Runners struct {
	Getenv func(string) string
	Extra  Extra // a provider that this program alone has; the zero Extra is none
	Models modelFlags
	Limits limitFlags
	// Documents says how this process reads documents.
	Documents documentFlags
	// Members says what this process reads of files of several documents.
	Members memberFlags
	Remote  bool // the service is on a server, whose workers run the units
	// Observers measure and trace calls of models; nil does neither.
	Observers *decorator.Observers
	// Keys notes vendors that refuse their keys, see WatchKeys; nil notes nothing.
	Keys *decorator.Keys
	// ToolCalls is called for each call of a tool, see toolbox.Observe; it may be nil.
	ToolCalls func(ctx context.Context, tool string) (context.Context, func(error))
	// Tools says which tools units may use here.
	Tools toolFlags
	// Note writes a line for the operator: what a tool says of itself, and why usage is not
	// believed. It is set before units run, and may be nil.
	Note func(message string)

	log    *slog.Logger            // set by LogTools
	box    *toolbox.Box            // set by OpenTools
	kits   openKits                // set by OpenTools; what box holds
	steps  *step.Registry          // set by StepRegistry
	askers map[string]*model.Agent // set by StepRegistry; those of agents that ask models
	Gates  *decorator.Gates        // set by StepRegistry; of their calls
	// Manners is set by StepRegistry: what servers of models refuse.
	Manners  worker.MannersKeeper
	pdfs     *pdf.Reader     // set by DocumentFormats
	pictures *picture.Reader // set by DocumentFormats
	turns    *document.Turns // at reading documents, of all registries; set by DocumentFormats
}

// StepRegistry returns the steps that workers run units with, made once.
func (r *Runners) StepRegistry() (*step.Registry, error) {
	if r.steps == nil {
		formats, err := r.DocumentFormats()
		if err != nil {
			return nil, err
		}

		all := modelFreeSteps(formats)
		if r.Extra.Add != nil {
			if err := r.Extra.Add(all, r.Extra.Name, r.Getenv); err != nil {
				return nil, err
			}
		}

		// The box is looked up when a unit runs, since OpenTools may open it later.
		gathering := gather.Runner{Box: func() *toolbox.Box { return r.box }}
		all.Register(step.Step{Kind: step.Agent, Provider: RulesProvider}, gathering)

		if r.askers, err = r.modelAgents(); err != nil {
			return nil, err
		}

		withModels(all, r.askers, func() *toolbox.Box { return r.box })

		if r.steps, err = r.Models.offeredSteps(all, &r.Extra); err != nil {
			return nil, err
		}
		cascade.Add(r.steps) // of what is offered
		review.Add(r.steps)  // of whatever a cascade comes to
	}
	return r.steps, nil
}

// CheckRunnable returns an error if no worker in this process could run a job. The
// workers of a server may have other providers. If units is given, the flag for the
// size of units, CheckRunnable makes the units fit the model.
func (r *Runners) CheckRunnable(spec *mapreduce.JobSpec, units *pflag.Flag) error {
	if err := r.checkProvider(spec.Provider); err != nil {
		return err
	}
	if err := r.CheckTools(spec); err != nil {
		return err
	}
	return r.checkModel(spec, units)
}

// checkProvider returns an error if this process is the service and has no such
// provider.
func (r *Runners) checkProvider(provider string) error {
	all, err := r.StepRegistry()
	if err != nil {
		return err
	}
	if !slices.Contains(all.Names(), provider) && !r.Remote {
		return exit.UsageError("--provider: no provider is named %q; the providers are %s", provider, r.Extra.shownOf(all))
	}
	return nil
}

// CheckAccepted returns an error if the service in this process would refuse the job
// with any documents. A server makes its own check.
func (r *Runners) CheckAccepted(spec mapreduce.JobSpec) error {
	if r.Remote {
		return nil
	}
	all, err := r.StepRegistry()
	if err != nil {
		return err
	}
	return orchestrator.CheckSpec(spec, all.Provider)
}

// modelFreeSteps returns all steps that ask no model.
func modelFreeSteps(formats *document.Registry) *step.Registry {
	all := step.NewRegistry()
	all.Register(step.Step{Kind: step.Parse}, parse.Runner{Formats: formats})
	all.Register(step.Step{Kind: step.Select}, passages.Runner{})
	// No checked.New: the orchestrator checks the outputs, and rules cost nothing to run again.
	all.Provide(rules.Provider, rules.New())
	return all
}

// RulesProvider is the provider that finds values by the hints of the schema.
const RulesProvider = mapreduce.DefaultProvider

// PrefetchUnits returns how many waiting units a worker with so many slots holds. A
// unit that asks no model takes less time than the next claim, so many wait. A unit
// that asks a model takes seconds, and a unit waiting behind it could run elsewhere.
func PrefetchUnits(p mapreduce.Provider, slots int) int {
	if p.Models {
		return 1
	}
	return min(max(4*slots, 16), 256)
}

// shownOf lists the providers that help shows: not this one.
func (e *Extra) shownOf(all *step.Registry) string {
	names := slices.DeleteFunc(all.Names(), func(n string) bool { return n == e.Name })
	return strings.Join(names, ", ")
}
