package orchestrator

import (
	"context"
	"iter"
	"runtime"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/config"
	"github.com/coditect/mapreduce/orchestrator/ingest"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/lifecycle"
	"github.com/coditect/mapreduce/orchestrator/observe"
)

// A Config says how an orchestrator works. The zero value works.
type Config = config.Config

// Courtesies are what orchestrators do for each other and for small jobs.
type Courtesies = config.Courtesies

// ModelLimits are what the fleet may ask of one model, as its owner says.
type ModelLimits = config.ModelLimits

// batchFresh is how long what was seen of jobs with batches serves all workers that ask: a little less than
// the time between two questions of one.
const batchFresh = 4 * time.Second

// specRules returns what the specs of jobs are completed and checked with.
func specRules(c *Config) *jobspec.Rules {
	return &jobspec.Rules{Provider: c.Provider, Overhead: c.Overhead, Count: c.Count, Check: c.Check, Advise: c.Advise}
}

// CheckSpec returns what SubmitJob would refuse of s, whatever the documents
// are, so that it can be said before any is read. Provider returns what is known of a
// provider, as Config.Provider.
func CheckSpec(s mapreduce.JobSpec, provider func(name string) mapreduce.Provider) error {
	c := Config{Provider: provider}.WithDefaults()
	return specRules(&c).CheckOpen(s)
}

// Plan says what an orchestrator with a configuration would do for a job. It
// needs no store.
func Plan(ctx context.Context, c Config, q mapreduce.PlanQuery, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Plan, error) {
	c = c.WithDefaults()
	return ingestConfig(&c, nil).PlanJob(ctx, q, docs)
}

// ingestConfig returns how documents become units.
func ingestConfig(c *Config, t *observe.Tracer) *ingest.Config {
	return &ingest.Config{
		Rules: specRules(c), Shards: c.Shards, MaxDocument: c.MaxDocument, MaxCalls: c.MaxCalls,
		Estimate: c.Estimate, Rates: c.Rates, Look: c.Look, Count: c.Count, Logger: c.Logger, Tracing: t,
	}
}

// jobsAtOnce is how many jobs are looked after at once. Looking after jobs mostly waits for
// the store. With too many at once, all other calls would wait behind them: with thousands
// of jobs, for minutes. Where the store is in this process, looking after jobs mostly
// computes: texts are cut, small results put together. More of that at once than there are
// processors ends no job sooner, and makes every call wait for a processor.
func jobsAtOnce(exclusive bool) lifecycle.AtOnce {
	if exclusive {
		processors := runtime.GOMAXPROCS(0)
		return lifecycle.AtOnce{All: 8 * processors, OfTenant: 2 * processors}
	}
	return lifecycle.AtOnce{All: 128, OfTenant: 16}
}
