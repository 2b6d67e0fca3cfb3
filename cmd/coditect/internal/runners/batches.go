package runners

import (
	"fmt"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
	"github.com/coditect/mapreduce/worker/batching"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/batch"
	"github.com/coditect/mapreduce/worker/step"
)

// Batches returns what sees to batches of the providers that this process offers and has the keys of; nil
// if there is none.
func (r *Runners) Batches() (worker.Batcher, error) {
	all, err := r.StepRegistry()
	if err != nil {
		return nil, err
	}

	var names []string
	for name, asker := range r.askers {
		if slices.Contains(all.Names(), name) && asker.CanBatch() {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	slices.Sort(names)

	return batching.New(batching.Config{
		Names:  names,
		Vendor: func(o *protocol.BatchOrder) (batch.Vendor, error) { return r.askers[o.Provider].Batches(o) },
		Prices: func(o *protocol.BatchOrder) (*llm.Prices, error) { return r.askers[o.Provider].BatchPrices(o) },
		Logger: r.log,
	}), nil
}

// AdviseOnBatches returns a line for what of a job is asked in real time, though its calls are to go by
// batch.
func AdviseOnBatches(spec *mapreduce.JobSpec) (lines []string) {
	p, err := step.PipelineOf(spec)
	if err != nil {
		return nil // the job is refused
	}
	run, err := settings.ParametersOf(p, spec.Vars)
	if err != nil {
		return nil
	}

	batched := false
	for _, stage := range p.Stages {
		if stage.Parameters.Over(run).Tier != parameters.Batch {
			continue
		}
		if batched = true; len(stage.Tools) > 0 {
			lines = append(lines, fmt.Sprintf("stage %s has tools: its calls do not go by batch, and cost their full price, as each waits for the one before", stage.Name))
		}
	}
	if see := spec.Vars[settings.VarSee]; batched && see != "" && see != string(mapreduce.SeeNever) {
		lines = append(lines, fmt.Sprintf("calls with pictures (--see %s) do not go by batch, and cost their full price", see))
	}
	return lines
}
