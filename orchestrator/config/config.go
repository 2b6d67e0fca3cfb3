// Package config has the settings of an orchestrator, and their defaults.
package config

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/placement"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/text/token"
	"github.com/coditect/mapreduce/orchestrator/ingest"
	"github.com/coditect/mapreduce/orchestrator/schedule/model"
)

// A Config says how an orchestrator works. The zero value works.
type Config struct {
	// Adopt makes it run every job that may run. Without it, it runs the jobs
	// that were submitted to it, or resumed by it, and no others.
	Adopt bool
	// Exclusive says that no other orchestrator can be alive on this store,
	// so whatever another left may be taken at once.
	Exclusive bool
	// Committers is how many transactions move units at the same time. Defaults
	// to 2, and to 8 on a store that others may use too: it is further away,
	// and most of a transaction's time is spent on the way.
	Committers int
	// Shards is how many queues a new job's units are spread over. More of
	// them make claims of several orchestrators conflict less. Defaults to 1.
	Shards int
	// Lease is how long another orchestrator, or a silent worker, may show
	// no sign of life. Defaults to 10 s.
	Lease time.Duration
	// Heartbeat is how often workers give signs of life. Defaults to 3 s.
	Heartbeat time.Duration
	// Beat is how often this orchestrator gives one in the store. Others have
	// what it was granted and does not use once two of them are missing.
	// Defaults to Heartbeat, and 1 s at most.
	Beat time.Duration
	// Grace is how long a worker whose stream broke has to come back: 0.3 s at most if its own
	// system closed the connection, as it does when a process ends.
	// Defaults to 1.5 s.
	Grace time.Duration
	// Poll is the approximate interval of the search for work without a notification.
	// Defaults to 2 s.
	Poll time.Duration
	// Seal is how often new checkpoints are chained. Defaults to 250 ms.
	Seal time.Duration
	// Stuck is how long a job may have nothing that can run before it is
	// paused. Defaults to 10 minutes.
	Stuck time.Duration
	// BatchLinger is how long no call of a job may have come that goes by batch, before a batch is made
	// that is not full, if none is on its way. Defaults to 10 s.
	BatchLinger time.Duration
	// BatchWait is how long such calls wait at most until a batch is made of them, whatever else of their
	// job is on its way. Defaults to 5 minutes.
	BatchWait time.Duration
	// MaxCalls is how many units that call models may run at once over the
	// whole fleet. Defaults to 50.
	MaxCalls int
	// Limits returns what the fleet may ask of a model, "provider/model", as far
	// as that is known beforehand. All orchestrators must have the same. Defaults
	// to nothing known.
	Limits func(model string) ModelLimits
	// MaxDocument is the largest document taken, in bytes. Defaults to 64 MiB.
	MaxDocument int64
	// AnswerBytes bounds the answers of models that are kept for jobs of a tenant
	// to share. Defaults to 1 GiB.
	AnswerBytes int64
	// AnswerAge is how long one is kept. Defaults to 30 days.
	AnswerAge time.Duration
	// Provider returns what is known of a provider, so that nothing here depends on
	// the names of providers. Defaults to one that has every kind of step and asks
	// models, unless it is mapreduce.DefaultProvider.
	Provider func(name string) mapreduce.Provider
	// Cost returns what tokens cost by the dearest model of a job, in millionths of a US
	// dollar, as far as prices are known. Defaults to nothing.
	Cost func(spec *mapreduce.JobSpec, t mapreduce.Tokens) int64
	// Estimate returns what of its budget the first call of a unit may spend at
	// worst, given the tokens of its text. Defaults to none for the rules
	// provider, and for others the text, the schema and 8,192 for the answer.
	Estimate func(spec *mapreduce.JobSpec, tokens int64) int64
	// Warms reports whether the units of a job begin their prompts so long alike
	// that its vendor keeps that: then the first unit runs alone. Defaults to no.
	Warms func(spec *mapreduce.JobSpec) bool
	// WarmFor is how long, at most, the other units at this orchestrator wait for the
	// first. Defaults to 30 s.
	WarmFor time.Duration
	// Rates returns what the plan of a job assumes of its calls: what they cost
	// and how long they take. How many run at a time is the job's. Defaults to
	// calls that cost nothing and take no time, and for the rules provider to
	// none.
	Rates func(spec *mapreduce.JobSpec) plan.Rates
	// Look says of the plan of a job what documents that are pictures will come to, by their headers: see
	// ingest.Config. Defaults to nothing, and they are planned as if their bytes were text.
	Look func(spec *mapreduce.JobSpec, mediaType string, data []byte) (plan.Look, bool)

	// Offer returns which tiers the models of a job have beside the standard one, for jobs with a deadline.
	// Defaults to batches alone.
	Offer func(spec *mapreduce.JobSpec) placement.Offer

	// Address returns where a provider is unless a job says otherwise: a job that says the same has the same account
	// there. Defaults to "", which is not known.
	Address func(provider string) string

	// Overhead returns the tokens that a call of a job's reduces, or of its direct unit,
	// needs besides its inputs: those of the prompt, and the most of the answer. They are
	// subtracted from the budget of the job's tree, unless the job has its own numbers;
	// see JobSpec.PromptOverhead. Defaults to nothing.
	Overhead func(spec *mapreduce.JobSpec) (prompt, answer int64)

	// Answer returns the most tokens that a model's answer may have in a job, which the
	// first call of each unit reserves; 0 if that is not known. Defaults to 0.
	Answer func(spec *mapreduce.JobSpec) int64
	// Check returns an error that names the field if no worker could carry out a job. It
	// is called before a job is planned or stored. Defaults to refusing nothing.
	Check func(spec *mapreduce.JobSpec) error
	// Advise returns what the owner of a job should know of what no worker does as the job
	// asks: warnings of the job and of its plan. Defaults to nothing.
	Advise func(spec *mapreduce.JobSpec) []string
	// SmallResult is how many units may map the documents of a job whose result is
	// assembled in memory and stored by the transaction that ends the job. Defaults
	// to 256.
	SmallResult int64
	// Count counts the tokens of a text of a job that names no other estimator.
	// Defaults to those of token.O200kBase.
	Count func(text string) int
	// Rules returns what is set for a tenant: its quotas, and for how long its jobs are kept
	// after their end. All orchestrators must have the same. Defaults to nothing.
	Rules func(mapreduce.TenantID) mapreduce.TenantRule
	// Retire is how often jobs are looked for whose time is over. Defaults to a minute.
	Retire time.Duration
	// Without leaves courtesies out. Benchmarks set it. Defaults to none.
	Without Courtesies
	// Logger defaults to none.
	Logger *slog.Logger
	// Meter measures what happens, and observes what is. Defaults to none.
	Meter metric.Meter
	// Tracer makes spans of what is done for jobs. Defaults to none.
	Tracer trace.Tracer
}

// Courtesies are what orchestrators do for each other and for small jobs. Nothing but
// speed and fairness depends on them. BENCHMARKS.md tells what each is worth; the figures
// here are of 16 orchestrators with one job on FoundationDB, and of a small tenant beside a
// large one.
type Courtesies struct {
	// Precedence leaves out an order in which orchestrators begin transactions of which one
	// can commit. Of commits 9 % conflict then, not 2.5 to 4 %.
	Precedence bool
	// SplitReads leaves out the division of a long queue among orchestrators. Of commits
	// some 70 % conflict then, and a fifth of the units are done in the same time.
	SplitReads bool
	// ReservedSlots leaves out slots that stay free for jobs with few, beside other tenants'
	// jobs. A small tenant's unit waits 1.9 ms then, not 0.35 ms (p50).
	ReservedSlots bool
}

// ModelLimits are what the fleet may ask of one model, as its owner says.
type ModelLimits = model.Limits

// WithDefaults returns c with its defaults in place of what is not set.
func (c Config) WithDefaults() Config {
	// A store that others may use too is further away.
	if c.Committers == 0 && !c.Exclusive {
		c.Committers = 8
	}
	c.Committers = cmp.Or(c.Committers, 2)

	c.Shards = cmp.Or(c.Shards, 1)
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	c.Heartbeat = cmp.Or(c.Heartbeat, 3*time.Second)
	c.Beat = cmp.Or(c.Beat, min(c.Heartbeat, time.Second))
	c.Grace = cmp.Or(c.Grace, 1500*time.Millisecond)
	c.Poll = cmp.Or(c.Poll, 2*time.Second)
	c.Seal = cmp.Or(c.Seal, 250*time.Millisecond)
	c.Stuck = cmp.Or(c.Stuck, 10*time.Minute)
	c.BatchLinger = cmp.Or(c.BatchLinger, 10*time.Second)
	c.BatchWait = cmp.Or(c.BatchWait, 5*time.Minute)
	c.MaxCalls = cmp.Or(c.MaxCalls, mapreduce.MaxFleetCalls)
	c.MaxDocument = cmp.Or(c.MaxDocument, 64<<20)
	c.WarmFor = cmp.Or(c.WarmFor, 30*time.Second)
	c.AnswerBytes = cmp.Or(c.AnswerBytes, 1<<30)
	c.AnswerAge = cmp.Or(c.AnswerAge, 30*24*time.Hour)
	c.Retire = cmp.Or(c.Retire, time.Minute)
	c.SmallResult = cmp.Or(c.SmallResult, 256)

	if c.Provider == nil {
		c.Provider = anyProvider
	}
	if c.Estimate == nil {
		c.Estimate = c.estimateReservation
	}
	if c.Rates == nil {
		c.Rates = c.defaultRates
	}
	if c.Overhead == nil {
		c.Overhead = func(*mapreduce.JobSpec) (prompt, answer int64) { return 0, 0 }
	}
	if c.Offer == nil {
		c.Offer = func(*mapreduce.JobSpec) placement.Offer { return placement.Offer{Batch: true} }
	}
	if c.Address == nil {
		c.Address = func(string) string { return "" }
	}
	if c.Cost == nil {
		c.Cost = func(*mapreduce.JobSpec, mapreduce.Tokens) int64 { return 0 }
	}
	if c.Answer == nil {
		c.Answer = func(*mapreduce.JobSpec) int64 { return 0 }
	}
	if c.Limits == nil {
		c.Limits = func(string) ModelLimits { return ModelLimits{} }
	}
	if c.Count == nil {
		c.Count = token.New().Count
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate returns an error that names the first field whose value is not possible, of a Config with its defaults.
func (c Config) Validate() error {
	switch {
	case c.MaxCalls < 1:
		return fmt.Errorf("orchestrator: MaxCalls is %d; it must be positive", c.MaxCalls)
	case c.Committers < 1 || c.Committers > 64:
		return fmt.Errorf("orchestrator: Committers is %d; it must be 1 to 64", c.Committers)
	case c.Shards < 1 || c.Shards > 1024:
		return fmt.Errorf("orchestrator: Shards is %d; it must be 1 to 1024", c.Shards)
	case c.Beat*2 > c.Lease:
		return fmt.Errorf("orchestrator: Beat is %v; it must be at most half of Lease, %v", c.Beat, c.Lease)
	case c.Heartbeat*2 > c.Lease:
		return fmt.Errorf("orchestrator: Heartbeat is %v; it must be at most half of Lease, %v", c.Heartbeat, c.Lease)
	}
	return nil
}

// anyProvider describes a provider of whose steps nothing is known: workers say what they
// lack. All but the default one may ask models.
func anyProvider(name string) mapreduce.Provider {
	return mapreduce.Provider{Name: name, Models: name != mapreduce.DefaultProvider}
}

// estimateReservation is what the first call of a unit may spend: its text and the schema, and as much as an
// answer may have.
func (c *Config) estimateReservation(spec *mapreduce.JobSpec, tokens int64) int64 {
	if !c.Provider(spec.Provider).Models {
		return 0
	}
	in := min(tokens+int64(len(spec.Schema))/4, mapreduce.MaxUnitDraw)
	out := cmp.Or(c.Answer(spec), ingest.AnswerTokens)
	if spec.BudgetIn == mapreduce.InDollars {
		return c.Cost(spec, mapreduce.Tokens{In: in, Out: out})
	}
	return min(in+out, mapreduce.MaxUnitDraw)
}

// defaultRates are those of a provider of which nothing more is known. Every level
// of one that asks no models is computed.
func (c *Config) defaultRates(spec *mapreduce.JobSpec) plan.Rates {
	if !c.Provider(spec.Provider).Models {
		return plan.Rates{Merge: plan.MergeTyped}
	}
	return plan.Rates{Model: true}
}
