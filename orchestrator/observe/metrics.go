// Package observe has an orchestrator measured and traced: it counts what the orchestrator
// does, shows what it sees of its fleet when it is asked, and makes spans of what it does for
// a job.
//
// It knows instruments and spans by the API of OpenTelemetry alone. What collects them is
// wired by the program.
package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/telemetry"
)

// The names of attributes, which are labels on /metrics.
const (
	tenantKey  = "tenant"
	modelKey   = "model" // provider/model
	tierKey    = "tier"  // of answers: standard, flex, priority or batch
	stateKey   = "state"
	outcomeKey = "outcome"
	verdictKey = "verdict"
	typeKey    = "type"
	kindKey    = "kind"
	reasonKey  = "reason"
)

// maxModels is how many models have a label of their own; names of models come from
// clients, and nobody else may decide how many time series there are.
const maxModels = 64

// maxTiers is how many tiers have one: workers name them. unknownTier is of what nobody knows the tier of.
const (
	maxTiers    = 8
	unknownTier = "unknown"
)

// Metrics are the instruments of an orchestrator. They are safe for concurrent use. A nil
// *Metrics counts nothing, so that an orchestrator which nobody measures pays for a
// comparison with nil and no more.
type Metrics struct {
	tenants *telemetry.Labels
	models  *telemetry.Labels
	tiers   *telemetry.Labels

	turns    metric.Float64Histogram
	claimed  metric.Int64Counter
	attempts metric.Int64Counter
	retries  metric.Int64Counter
	failed   metric.Int64Counter
	setAside metric.Int64Counter
	tokens   metric.Int64Counter
	cost     metric.Float64Counter
	spent    metric.Float64Counter
	resets   metric.Int64Counter
	lost     metric.Int64Counter
	jobs     metric.Int64Counter
	jobTime  metric.Float64Histogram
	batches  metric.Float64Histogram

	committed, uncommitted metric.MeasurementOption
	ends                   [4][4]metric.MeasurementOption // of attempts, by outcome and verdict
}

// NewMetrics returns the instruments of an orchestrator, or nil if m is nil.
func NewMetrics(m metric.Meter) (*Metrics, error) {
	if m == nil {
		return nil, nil
	}

	var errs []error
	count := func(name, unit, says string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(says))
		errs = append(errs, err)
		return c
	}
	time := func(name, says string, bounds ...float64) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(says), metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}

	t := &Metrics{
		tenants: telemetry.NewLabels(maxTenants),
		models:  telemetry.NewLabels(maxModels),
		tiers:   telemetry.NewLabels(maxTiers),
		turns: time("coditect.turn.duration", "How long turns take: transactions that finish units and claim others.",
			.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10),
		claimed:  count("coditect.units.claimed", "{unit}", "Units that were claimed for workers."),
		attempts: count("coditect.attempts", "{attempt}", "Attempts that ended, by how they ended and whether that counted."),
		retries:  count("coditect.units.retried", "{unit}", "Units that wait for another attempt after one that failed."),
		failed:   count("coditect.units.failed", "{unit}", "Units that failed for good."),
		setAside: count("coditect.units.set.aside", "{unit}", "Units that failed for good and had run in a process of their own, because workers were lost that ran them; and units that cannot be handed out."),
		tokens:   count("coditect.tokens", "{token}", "Tokens that attempts and batches have spent, by model, tier and type."),
		resets:   count("coditect.stream.resets", "{stream}", "Streams of workers that ended other than in order."),
		lost:     count("coditect.workers.lost", "{worker}", "Workers that were given up with units in hand."),
		jobs:     count("coditect.jobs.ended", "{job}", "Jobs that ended, by the state that they ended in."),
		jobTime: time("gen_ai.invoke_workflow.duration", "How long jobs took from their submission to their end.",
			.1, .5, 1, 5, 10, 30, 60, 300, 900, 3600, 4*3600, 12*3600, 24*3600),
		batches: time("coditect.batch.duration", "How long vendors took for batches, from when they were begun to be created until they had ended, by model.",
			60, 300, 600, 1800, 3600, 2*3600, 4*3600, 8*3600, 16*3600, 24*3600, 48*3600),
		committed:   oneLabel(outcomeKey, "committed"),
		uncommitted: oneLabel(outcomeKey, "failed"),
	}

	var err error
	t.cost, err = m.Float64Counter("coditect.cost.usd", metric.WithUnit("{USD}"), metric.WithDescription("What attempts and batches have cost in US dollars, by model and tier, as far as prices are known."))
	errs = append(errs, err)
	t.spent, err = m.Float64Counter("coditect.tenant.cost.usd", metric.WithUnit("{USD}"), metric.WithDescription("The same by tenant."))
	if err = errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("instruments of the orchestrator: %w", err)
	}

	// Labels of attempts are made once: there may be thousands of attempts a second.
	for o := range t.ends {
		for v := range t.ends[o] {
			t.ends[o][v] = attemptLabels(protocol.Outcome(o+1), protocol.Verdict(v))
		}
	}
	t.beginAtZero()
	return t, nil
}

// oneLabel returns the option of a measurement with one attribute.
func oneLabel(key, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
}

// beginAtZero makes the counters stand at zero from the start: of a counter that appears
// with its first event, an alert would not see that event.
func (m *Metrics) beginAtZero() {
	ctx := context.Background()

	for _, c := range []metric.Int64Counter{m.claimed, m.retries, m.failed, m.setAside, m.lost} {
		c.Add(ctx, 0)
	}
	for _, o := range []protocol.Outcome{protocol.Done, protocol.Errored, protocol.Returned, protocol.Parked} {
		m.attempts.Add(ctx, 0, attemptLabels(o, protocol.Accepted))
	}
	for _, reason := range []string{resetBroken, resetRefused} {
		m.resets.Add(ctx, 0, oneLabel(reasonKey, reason))
	}
	for _, s := range []mapreduce.JobState{mapreduce.JobComplete, mapreduce.JobFailed, mapreduce.JobCancelled} {
		m.jobs.Add(ctx, 0, oneLabel(stateKey, s.String()))
	}
}

// Turn counts a turn that took so long and claimed so many units, or failed.
func (m *Metrics) Turn(ctx context.Context, took time.Duration, claimed int, err error) {
	if m == nil {
		return
	}
	if err != nil {
		m.turns.Record(ctx, took.Seconds(), m.uncommitted)
		return
	}
	m.turns.Record(ctx, took.Seconds(), m.committed)
	m.claimed.Add(ctx, int64(claimed))
}

// Attempts sums up attempts that ended in one turn, so that each instrument is used once a
// turn.
type Attempts struct {
	ends                      [4][4]int64 // by outcome and verdict
	retried, failed, setAside int64
}

// Add adds an attempt with its verdict. The state is that of its unit from then on; suspect
// says that workers were lost while they ran the unit, or that it cannot be handed out.
func (a *Attempts) Add(r *protocol.Report, v protocol.Verdict, state mapreduce.UnitState, suspect bool) {
	if o := int(r.Outcome) - 1; o >= 0 && o < len(a.ends) && int(v) < len(a.ends[o]) {
		a.ends[o][v]++
	}

	switch {
	case v != protocol.Accepted:
	case state == mapreduce.UnitFailed:
		a.failed++
		if suspect {
			a.setAside++
		}
	case r.Outcome == protocol.Errored && state == mapreduce.Pending:
		a.retried++
	}
}

// Attempts counts attempts at units of one job.
func (m *Metrics) Attempts(ctx context.Context, a *Attempts) {
	if m == nil {
		return
	}

	for o := range a.ends {
		for v, n := range a.ends[o] {
			if n > 0 {
				m.attempts.Add(ctx, n, m.ends[o][v])
			}
		}
	}

	addSome(ctx, m.retries, a.retried)
	addSome(ctx, m.failed, a.failed)
	addSome(ctx, m.setAside, a.setAside)
}

// Charges counts what calls took, once it is settled, of a tenant's job that asks a model, "provider/model".
func (m *Metrics) Charges(ctx context.Context, tenant mapreduce.TenantID, model string, charges []mapreduce.Charge) {
	if m == nil {
		return
	}

	var spent int64
	for _, c := range charges {
		if c.IsZero() {
			continue
		}
		of, tier := attribute.String(modelKey, m.models.Of(cmp.Or(c.Model, model))), attribute.String(tierKey, m.tiers.Of(cmp.Or(c.Tier, unknownTier)))
		m.tokens.Add(ctx, c.Tokens.In, metric.WithAttributes(of, tier, attribute.String(typeKey, "input")))
		m.tokens.Add(ctx, c.Tokens.Out, metric.WithAttributes(of, tier, attribute.String(typeKey, "output")))
		m.cost.Add(ctx, float64(c.CostMicros)/1e6, metric.WithAttributes(of, tier))
		spent += c.CostMicros
	}

	// A tenant who spends nothing takes no label from one who does.
	if spent > 0 {
		m.spent.Add(ctx, float64(spent)/1e6, oneLabel(tenantKey, m.tenants.Of(string(tenant))))
	}
}

// BatchEnded counts a batch of a model, "provider/model", for which its vendor took so long.
func (m *Metrics) BatchEnded(ctx context.Context, model string, took time.Duration) {
	if m == nil {
		return
	}
	m.batches.Record(ctx, took.Seconds(), oneLabel(modelKey, m.models.Of(model)))
}

func addSome(ctx context.Context, c metric.Int64Counter, n int64) {
	if n > 0 {
		c.Add(ctx, n)
	}
}

var (
	outcomeNames = [...]string{protocol.Done: "done", protocol.Errored: "errored", protocol.Returned: "returned", protocol.Parked: "parked"}
	verdictNames = [...]string{protocol.VerdictUnknown: "unknown", protocol.Accepted: "accepted", protocol.Stale: "stale", protocol.Gone: "gone"}
)

func attemptLabels(o protocol.Outcome, v protocol.Verdict) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(outcomeKey, outcomeNames[o]), attribute.String(verdictKey, verdictNames[v])))
}

// Why streams of workers end other than in order.
const (
	resetBroken  = "broken"  // the connection broke, or its worker died
	resetRefused = "refused" // this orchestrator ended it: the worker was silent, did not read, or broke the protocol
)

// StreamReset counts a stream that ended other than in order; by this orchestrator if
// refused.
func (m *Metrics) StreamReset(ctx context.Context, refused bool) {
	if m == nil {
		return
	}
	reason := resetBroken
	if refused {
		reason = resetRefused
	}
	m.resets.Add(ctx, 1, oneLabel(reasonKey, reason))
}

// WorkerLost counts a worker that was given up with units in hand.
func (m *Metrics) WorkerLost(ctx context.Context) {
	if m == nil {
		return
	}
	m.lost.Add(ctx, 1)
}

// JobEnded counts a job that ended after so long. The pipeline is that of the job if it
// is a preset.
func (m *Metrics) JobEnded(ctx context.Context, state mapreduce.JobState, pipeline string, took time.Duration) {
	if m == nil {
		return
	}
	m.jobs.Add(ctx, 1, oneLabel(stateKey, state.String()))
	m.jobTime.Record(ctx, took.Seconds(), metric.WithAttributes(attribute.String("gen_ai.workflow.name", pipeline), attribute.String(stateKey, state.String())))
}
