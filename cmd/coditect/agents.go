package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/scripted"
	"github.com/coditect/mapreduce/worker/output"
	"github.com/coditect/mapreduce/worker/step"
	"github.com/coditect/mapreduce/worker/step/parse"
	"github.com/coditect/mapreduce/worker/step/rules"
)

// scriptedProvider runs units by script, for tests; help does not speak of it.
const scriptedProvider = "scripted"

// stepRegistry returns what workers run units with, as it was loaded first.
func (a *app) stepRegistry() (*step.Registry, error) {
	if a.steps == nil {
		all, err := modelFreeSteps(a.getenv("CODITECT_LEDGER"), a.getenv("CODITECT_HOLD"))
		if err != nil {
			return nil, err
		}
		if a.askers, err = a.modelAgents(); err != nil {
			return nil, err
		}
		withModels(all, a.askers)
		if a.steps, err = a.models.offeredSteps(all); err != nil {
			return nil, err
		}
	}
	return a.steps, nil
}

// checkRunnable returns an error if no worker in this process could run a job. Those of
// a server may have other providers. If units is given, the flag that says how
// large they may be, they are made to fit the model.
func (a *app) checkRunnable(spec *mapreduce.JobSpec, units *pflag.Flag) error {
	if err := a.checkProvider(spec.Provider); err != nil {
		return err
	}
	return a.checkModel(spec, units)
}

// checkProvider returns an error if this process, being the service, has no such
// provider.
func (a *app) checkProvider(provider string) error {
	all, err := a.stepRegistry()
	if err != nil {
		return err
	}
	if !slices.Contains(all.Names(), provider) && a.global.server == "" {
		return usageError("--provider: there is none named %q; there is %s", provider, providerNames(all))
	}
	return nil
}

// checkAccepted returns an error if the service in this process would refuse a job,
// whatever its documents are. A server may take others.
func (a *app) checkAccepted(spec mapreduce.JobSpec) error {
	if a.global.server != "" {
		return nil
	}
	return orchestrator.CheckSpec(spec)
}

// failpointHook ends this process at the point that the environment names, for tests.
func (a *app) failpointHook() (failpoint.Hook, error) {
	h, err := failpoint.Parse(a.getenv(failpoint.Variable))
	if err != nil {
		return nil, usageError("%s: %w", failpoint.Variable, err)
	}
	return h, nil
}

// modelFreeSteps returns all steps that ask no model. Calls of the scripted provider are
// recorded in the ledger, a file, if it is named. The file is left open: it
// lives as long as the process. The other file holds its units, see holder.
func modelFreeSteps(ledger, hold string) (*step.Registry, error) {
	all := step.NewRegistry()
	all.Register(step.Step{Kind: step.Parse}, parse.Runner{})
	// The orchestrator checks what rules find, and another run of them costs nothing.
	all.Provide(rules.Provider, rules.New())
	script := &scripted.Agent{Encode: scriptedOutput(all.Table(rules.Provider.Name))}
	if ledger != "" {
		l, err := scripted.OpenFileLedger(ledger)
		if err != nil {
			return nil, fmt.Errorf("CODITECT_LEDGER: %w", err)
		}
		script.Ledger = l
	}
	held, err := holdRunner(script, hold)
	if err != nil {
		return nil, err
	}
	all.Provide(mapreduce.Provider{Name: scriptedProvider, Models: true}, step.Table{
		step.Parse: held, step.Extract: held, step.Merge: held, step.Write: held,
	})
	return all, nil
}

// scriptedOutput makes the outputs of scripted units those of the rules, so that
// results can be compared whatever a script does to the units. A unit that is to
// have a huge output, or one that rules do not understand, has the script's.
func scriptedOutput(rules step.Runner) func(*agent.Task, scripted.Payload) []byte {
	return func(task *agent.Task, p scripted.Payload) []byte {
		if p.Filler == "" {
			if res, err := rules.Run(context.Background(), task, nil); err == nil {
				return res.Output
			}
		}
		reason := strings.ToValidUTF8(fmt.Sprintf("%+v", p), "\uFFFD")
		out, err := (&output.Output{Reason: reason}).Encode()
		if err != nil { // of a string
			panic(err)
		}
		return out
	}
}

// rulesProvider finds values by the hints of the schema.
const rulesProvider = mapreduce.DefaultProvider

// prefetchUnits returns how many units a worker with so many slots holds beside those
// that run. Units that ask no model are over in less time than it takes to claim
// the next; those of others take seconds, and what waits behind them could run
// elsewhere, or be of another job.
func prefetchUnits(p mapreduce.Provider, slots int) int {
	if p.Models {
		return 1
	}
	return min(max(4*slots, 16), 256)
}

// providerNames lists those that help speaks of.
func providerNames(all *step.Registry) string {
	names := slices.DeleteFunc(all.Names(), func(n string) bool { return n == scriptedProvider })
	return strings.Join(names, ", ")
}
