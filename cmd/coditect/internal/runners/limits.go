package runners

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/orchestrator"
)

// limitFlags are the flags that limit the calls of models of all jobs.
type limitFlags struct {
	MaxCalls int
	rates    []string // PROVIDER[/MODEL]=LIMIT:N
}

func (l *limitFlags) AddFlags(f *pflag.FlagSet) {
	f.IntVar(&l.MaxCalls, "max-calls", mapreduce.MaxFleetCalls, "largest number of units, over all jobs, that may call models at the same time")
	f.StringArrayVar(&l.rates, "rate", nil, "`PROVIDER[/MODEL]=LIMIT:N`: limit for a model, where LIMIT is calls (at a time), or "+
		"requests, input or output (tokens) a minute; may be repeated. The provider's own limit counts if it is lower")
}

// ModelLimits returns the limits of a model by its name.
func (l *limitFlags) ModelLimits() (func(model string) orchestrator.ModelLimits, error) {
	if l.MaxCalls < 1 {
		return nil, exit.UsageError("--max-calls: must be at least 1")
	}

	all := make(map[string]orchestrator.ModelLimits)
	for _, text := range l.rates {
		if err := addLimit(all, text); err != nil {
			return nil, err
		}
	}

	return func(model string) orchestrator.ModelLimits {
		provider, _, _ := strings.Cut(model, "/")
		own, its := all[model], all[provider]
		return orchestrator.ModelLimits{Calls: cmp.Or(own.Calls, its.Calls), Rates: mapreduce.Rates{
			Requests: cmp.Or(own.Rates.Requests, its.Rates.Requests),
			Input:    cmp.Or(own.Rates.Input, its.Rates.Input),
			Output:   cmp.Or(own.Rates.Output, its.Rates.Output),
		}}
	}, nil
}

// addLimit adds one limit. The name of a model may contain any character.
func addLimit(all map[string]orchestrator.ModelLimits, text string) error {
	// The limit has no equals sign, so the last one ends the name.
	at := strings.LastIndex(text, "=")
	name, limit := text[:max(at, 0)], text[at+1:]
	kind, number, _ := strings.Cut(limit, ":")
	provider, model, isModel := strings.Cut(name, "/")
	if keyVariables[provider] == "" || isModel && model == "" {
		return exit.UsageError("--rate: %q is not PROVIDER[/MODEL]=LIMIT:N, with one of the providers %s, such as openai/gpt-5=requests:500",
			text, strings.Join(ModelProviders(), ", "))
	}

	m := all[name]
	to := map[string]*int64{"calls": &m.Calls, "requests": &m.Rates.Requests, "input": &m.Rates.Input, "output": &m.Rates.Output}[kind]
	if to == nil {
		return exit.UsageError("--rate: %q: %q is no limit; the limits are calls (at a time), requests, input and output (a minute)", text, kind)
	}

	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 {
		return exit.UsageError("--rate: %q: %q is not a number above 0", text, number)
	}
	if *to != 0 && *to != n {
		return exit.UsageError("--rate: %q: the same limit of %s was set to %d before", text, name, *to)
	}

	*to = n
	all[name] = m
	return nil
}
