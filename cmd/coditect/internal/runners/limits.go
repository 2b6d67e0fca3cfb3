package runners

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners/asked"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

// limitFlags are the flags that limit the calls of models of all jobs.
type limitFlags struct {
	MaxCalls int
	rates    []string // PROVIDER[/MODEL]=LIMIT:N
}

func (l *limitFlags) AddFlags(f *pflag.FlagSet) {
	f.IntVar(&l.MaxCalls, "max-calls", mapreduce.MaxFleetCalls, "largest number of units, over all jobs, that may call models at the same time")
	f.StringArrayVar(&l.rates, "rate", nil, "`PROVIDER[/MODEL]=LIMIT:N`: limit for a model, where LIMIT is calls (at a time), or "+
		"requests, input or output (tokens) a minute; may be repeated. The provider's own limit counts if it is lower. Of batches: "+
		"batch-calls, batch-tokens and batches (at a time), and batches-hour")
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

	usual := make(map[string]batch.Vendor)
	for _, v := range vendors.All() {
		if v.NewBatches == nil {
			continue
		}
		// One that needs an address says nothing of limits without it.
		if b, err := v.NewBatches(llm.Config{Key: llm.NewKey("unused")}); err == nil {
			usual[v.Name] = b
		}
	}

	return func(model string) orchestrator.ModelLimits {
		provider, name, _ := strings.Cut(model, "/")
		own, its := all[model], all[provider]
		return orchestrator.ModelLimits{Calls: cmp.Or(own.Calls, its.Calls), Rates: mapreduce.Rates{
			Requests: cmp.Or(own.Rates.Requests, its.Rates.Requests),
			Input:    cmp.Or(own.Rates.Input, its.Rates.Input),
			Output:   cmp.Or(own.Rates.Output, its.Rates.Output),
		}, Batches: own.Batches.Or(its.Batches).Or(batchRoom(usual[provider], llm.Model(name)))}
	}, nil
}

// AddressOf returns where a provider that makes batches is unless a job says otherwise, "" if each job has to say.
func AddressOf(provider string) string {
	all := vendors.All()
	if i := slices.IndexFunc(all, func(v vendors.Vendor) bool { return v.Name == provider }); i >= 0 {
		return all[i].Address
	}
	return ""
}

// batchRoom returns what a vendor says that any account may have of batches of a model.
func batchRoom(v batch.Vendor, model llm.Model) protocol.BatchRoom {
	if v == nil {
		return protocol.BatchRoom{}
	}
	l := v.Limits(model)
	return protocol.BatchRoom{Lines: l.Queue, Tokens: l.QueueTokens, Batches: int64(l.QueueBatches), Creates: int64(l.CreatesPerHour)}
}

// addLimit adds one limit. The name of a model may contain any character.
func addLimit(all map[string]orchestrator.ModelLimits, text string) error {
	// The limit has no equals sign, so the last one ends the name.
	at := strings.LastIndex(text, "=")
	name, limit := text[:max(at, 0)], text[at+1:]
	kind, number, _ := strings.Cut(limit, ":")
	provider, model, isModel := strings.Cut(name, "/")
	if asked.KeyVariables[provider] == "" || isModel && model == "" {
		return exit.UsageError("--rate: %q is not PROVIDER[/MODEL]=LIMIT:N, with one of the providers %s, such as openai/gpt-5=requests:500",
			text, strings.Join(ModelProviders(), ", "))
	}

	m := all[name]
	to := map[string]*int64{
		"calls": &m.Calls, "requests": &m.Rates.Requests, "input": &m.Rates.Input, "output": &m.Rates.Output,
		"batch-calls": &m.Batches.Lines, "batch-tokens": &m.Batches.Tokens, "batches": &m.Batches.Batches, "batches-hour": &m.Batches.Creates,
	}[kind]
	if to == nil {
		return exit.UsageError("--rate: %q: %q is no limit; the limits are calls (at a time), requests, input and output (a minute), and of batches batch-calls, batch-tokens and batches (at a time), and batches-hour", text, kind)
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
