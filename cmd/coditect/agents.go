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
	"github.com/coditect/mapreduce/worker/document"
	"github.com/coditect/mapreduce/worker/document/html"
	"github.com/coditect/mapreduce/worker/document/jsonl"
	"github.com/coditect/mapreduce/worker/document/markdown"
	plaintext "github.com/coditect/mapreduce/worker/document/text"
	"github.com/coditect/mapreduce/worker/output"
	"github.com/coditect/mapreduce/worker/step"
	"github.com/coditect/mapreduce/worker/step/parse"
	"github.com/coditect/mapreduce/worker/step/rules"
)

// scriptedProvider runs units by script, for tests. Help does not show it.
const scriptedProvider = "scripted"

// stepRegistry returns the steps that workers run units with, made once.
func (a *app) stepRegistry() (*step.Registry, error) {
	if a.steps == nil {
		formats, err := documentFormats()
		if err != nil {
			return nil, err
		}
		all, err := modelFreeSteps(formats, a.getenv("CODITECT_LEDGER"), a.getenv("CODITECT_HOLD"))
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

// checkRunnable returns an error if no worker in this process could run a job. The
// workers of a server may have other providers. If units is given, the flag for the
// size of units, checkRunnable makes the units fit the model.
func (a *app) checkRunnable(spec *mapreduce.JobSpec, units *pflag.Flag) error {
	if err := a.checkProvider(spec.Provider); err != nil {
		return err
	}
	return a.checkModel(spec, units)
}

// checkProvider returns an error if this process is the service and has no such
// provider.
func (a *app) checkProvider(provider string) error {
	all, err := a.stepRegistry()
	if err != nil {
		return err
	}
	if !slices.Contains(all.Names(), provider) && a.global.server == "" {
		return usageError("--provider: none is named %q; the providers are %s", provider, providerNames(all))
	}
	return nil
}

// checkAccepted returns an error if the service in this process would refuse the job
// with any documents. A server makes its own check.
func (a *app) checkAccepted(spec mapreduce.JobSpec) error {
	if a.global.server != "" {
		return nil
	}
	return orchestrator.CheckSpec(spec)
}

// failpointHook returns the hook that kills this process at the failpoint that the
// environment names, for tests.
func (a *app) failpointHook() (failpoint.Hook, error) {
	h, err := failpoint.Parse(a.getenv(failpoint.Variable))
	if err != nil {
		return nil, usageError("%s: %w", failpoint.Variable, err)
	}
	return h, nil
}

// documentFormats returns the formats of documents that the program reads. This is the
// only place that lists them.
func documentFormats() (*document.Registry, error) {
	return document.NewRegistry(plaintext.Format(), markdown.Format(), html.Format(), jsonl.Format())
}

// modelFreeSteps returns all steps that ask no model. If ledger names a file, the
// scripted provider records its calls there; the file stays open as long as the
// process. If hold names a file, that file holds its units: see holder.
func modelFreeSteps(formats *document.Registry, ledger, hold string) (*step.Registry, error) {
	all := step.NewRegistry()
	all.Register(step.Step{Kind: step.Parse}, parse.Runner{Formats: formats})
	// No checked.New: the orchestrator checks the outputs, and rules cost nothing to run again.
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

// scriptedOutput gives scripted units the outputs of the rules, so that results can be
// compared whatever a script does to the units. A unit with a huge output, or one that
// the rules cannot run, has the script's output.
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

// rulesProvider is the provider that finds values by the hints of the schema.
const rulesProvider = mapreduce.DefaultProvider

// prefetchUnits returns how many waiting units a worker with so many slots holds. A
// unit that asks no model takes less time than the next claim, so many wait. A unit
// that asks a model takes seconds, and a unit waiting behind it could run elsewhere.
func prefetchUnits(p mapreduce.Provider, slots int) int {
	if p.Models {
		return 1
	}
	return min(max(4*slots, 16), 256)
}

// providerNames lists the providers that help shows.
func providerNames(all *step.Registry) string {
	names := slices.DeleteFunc(all.Names(), func(n string) bool { return n == scriptedProvider })
	return strings.Join(names, ", ")
}
