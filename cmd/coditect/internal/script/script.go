// Package script has the provider of units that run by a script in the variables of their job.
// It is for tests: a program has it if its build tag, scripted, is set, and the program of the
// scripts of cmd/coditect has it. The program that is released has not.
package script

import (
	"context"
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
	"github.com/coditect/mapreduce/internal/outcome/output"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/scripted"
	"github.com/coditect/mapreduce/worker/step"
)

// Environment variables of the provider.
const (
	ledgerVariable = "CODITECT_LEDGER" // a file in which it records its calls; it stays open as long as the process
	holdVariable   = "CODITECT_HOLD"   // a file that holds its units: see holder
)

// Extra returns the provider "scripted", as a program has it beside its own.
func Extra() runners.Extra {
	return runners.Extra{Name: "scripted", Variables: []string{ledgerVariable, holdVariable}, Add: add}
}

// add adds the steps of the provider to those of a program.
func add(all *step.Registry, name string, getenv func(string) string) error {
	script := &scripted.Agent{Encode: encodeByRules(all.Table(runners.RulesProvider))}
	if ledger := getenv(ledgerVariable); ledger != "" {
		l, err := scripted.OpenFileLedger(ledger)
		if err != nil {
			return fmt.Errorf("%s: %w", ledgerVariable, err)
		}
		script.Ledger = l
	}

	held, err := holdRunner(script, getenv(holdVariable))
	if err != nil {
		return err
	}

	all.Provide(mapreduce.Provider{Name: name, Models: true}, step.Table{
		step.Parse: held, step.Extract: held, step.Merge: held, step.Write: held, step.Agent: held,
	})
	return nil
}

// encodeByRules gives scripted units the outputs of the rules, so that results can be
// compared whatever a script does to the units. A unit with a huge output, or one that
// the rules cannot run, has the script's output.
func encodeByRules(rules step.Runner) func(*agent.Task, scripted.Payload) []byte {
	return func(task *agent.Task, p scripted.Payload) []byte {
		if p.Filler == "" {
			if res, err := rules.Run(context.Background(), task, new(scripted.Calls)); err == nil {
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
