package orchestrator

import (
	"context"
	"iter"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/orchestrator/ingest"
	"github.com/coditect/mapreduce/orchestrator/observe"
)

// PlanJob implements mapreduce.Service.
func (o *Orchestrator) PlanJob(ctx context.Context, _ mapreduce.Principal, q mapreduce.PlanQuery, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Plan, error) {
	p, err := o.config.ingestConfig(nil).PlanJob(ctx, q, docs)
	if err != nil || p.Deadline.IsZero() {
		return p, err
	}
	p.Turnarounds, err = o.jobs.Batches.Turnarounds(ctx, q.Spec.Provider+"/"+q.Spec.Model)
	return p, err
}

// Plan says what an orchestrator with a configuration would do for a job. It
// needs no store.
func Plan(ctx context.Context, c Config, q mapreduce.PlanQuery, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Plan, error) {
	c = c.withDefaults()
	return c.ingestConfig(nil).PlanJob(ctx, q, docs)
}

// defaultRates are those of a provider of which nothing more is known. Every level
// of one that asks no models is computed.
func (c *Config) defaultRates(spec *mapreduce.JobSpec) plan.Rates {
	if !c.Provider(spec.Provider).Models {
		return plan.Rates{Merge: plan.MergeTyped}
	}
	return plan.Rates{Model: true}
}

// ingestConfig returns how documents become units.
func (c *Config) ingestConfig(t *observe.Tracer) *ingest.Config {
	return &ingest.Config{
		Rules: c.specRules(), Shards: c.Shards, MaxDocument: c.MaxDocument, MaxCalls: c.MaxCalls,
		Estimate: c.Estimate, Rates: c.Rates, Look: c.Look, Count: c.Count, Logger: c.Logger, Tracing: t,
	}
}
