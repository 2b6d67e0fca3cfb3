package observe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/telemetry"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/store"
)

// maxTenants is how many tenants have a label of their own: of gauges those whose units wait
// longest, of counters those who spend first. The others stand together under telemetry.Other.
const maxTenants = 50

// A Fleet is what an orchestrator sees when it is asked.
type Fleet struct {
	Snapshot func() schedule.Snapshot
	Store    *store.Stats
	// StoreAnswers reports whether the store answered the latest sign of life.
	StoreAnswers func() bool
	// Orchestrators returns how many of them share the store, this one included.
	Orchestrators func() int
	// Demand returns how many units of each job could run, over the whole fleet.
	Demand func(context.Context) ([]protocol.Demand, error)
}

// gauges are the instruments that RegisterGauges fills.
type gauges struct {
	workers, slots, busy, calls, breakers, limits, storeUp, peers metric.Int64ObservableGauge
	runs, runnable                                                metric.Int64ObservableGauge
	age                                                           metric.Float64ObservableGauge
	paused                                                        metric.Float64ObservableGauge
	transactions                                                  metric.Int64ObservableCounter
}

// RegisterGauges has m ask f whenever it is read itself.
func RegisterGauges(m metric.Meter, f Fleet) error {
	if m == nil {
		return nil
	}

	// Errors are collected, so that the instruments stand in one table.
	var errs []error
	gauge := func(name, unit, says string) metric.Int64ObservableGauge {
		g, err := m.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(says))
		errs = append(errs, err)
		return g
	}
	seconds := func(name, says string) metric.Float64ObservableGauge {
		g, err := m.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(says))
		errs = append(errs, err)
		return g
	}

	g := gauges{
		workers:  gauge("coditect.workers", "{worker}", "Workers at this orchestrator, by state: connected, draining, away (their stream ended a moment ago)."),
		slots:    gauge("coditect.slots", "{slot}", "Units that the connected workers can run at once."),
		busy:     gauge("coditect.slots.busy", "{slot}", "Units that they run."),
		runs:     gauge("coditect.jobs.running", "{job}", "Jobs at this orchestrator that may run, by tenant."),
		age:      seconds("coditect.queue.age", "For how long a job of the tenant has had waiting units without one of them being claimed here: the longest."),
		calls:    gauge("coditect.calls", "{call}", "Units that ask models: granted to this orchestrator, and held by its workers."),
		breakers: gauge("coditect.breaker.open", "", "1 while the breaker of a model is open, as the fleet knows it."),
		limits:   gauge("coditect.model.limit", "", "What the fleet may ask of a model: calls at once, and requests, input and output tokens a minute; 0 is no limit."),
		paused:   seconds("coditect.model.pause", "How long no unit of a model begins, as its vendor refused some."),
		storeUp:  gauge("coditect.store.up", "", "1 while the store answers."),
		runnable: gauge("coditect.runnable.units", "{unit}", "Units of the whole fleet that run or wait for nothing but a worker, by tenant and model; the model is empty for those that ask none."),
		peers:    gauge("coditect.orchestrators", "{orchestrator}", "Orchestrators that share the store, as this one sees it."),
	}

	transactions, err := m.Int64ObservableCounter("coditect.store.transactions", metric.WithUnit("{transaction}"),
		metric.WithDescription("Runs of transactions, by outcome: committed, read, conflict, too_old, unknown."))
	g.transactions = transactions
	if err := errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("gauges of the orchestrator: %w", err)
	}

	_, err = m.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		g.observeFleet(o, f.Snapshot())
		g.observeStore(o, f)
		if f.StoreAnswers() {
			g.observeDemand(ctx, o, f)
		}
		return nil
	}, g.runnable, g.workers, g.slots, g.busy, g.runs, g.age, g.calls, g.breakers, g.limits, g.paused, g.storeUp, g.peers, g.transactions)
	return err
}

func (g *gauges) observeFleet(o metric.Observer, s schedule.Snapshot) {
	for state, n := range map[string]int{"connected": s.Workers.Here - s.Workers.Draining, "draining": s.Workers.Draining, "away": s.Workers.Away} {
		o.ObserveInt64(g.workers, int64(n), oneLabel(stateKey, state))
	}

	o.ObserveInt64(g.slots, int64(s.Workers.Slots))
	o.ObserveInt64(g.busy, int64(s.Workers.Busy))
	o.ObserveInt64(g.calls, s.CallsGranted, oneLabel(stateKey, "granted"))
	o.ObserveInt64(g.calls, s.CallsHeld, oneLabel(stateKey, "held"))

	for _, t := range foldTenants(s.Tenants) {
		of := oneLabel(tenantKey, string(t.Tenant))
		o.ObserveInt64(g.runs, int64(t.Jobs), of)
		o.ObserveFloat64(g.age, t.Age.Seconds(), of)
	}

	for _, m := range s.Models[:min(len(s.Models), maxModels)] {
		of := oneLabel(modelKey, m.Name)
		o.ObserveInt64(g.breakers, asNumber(m.BreakerOpen), of)
		o.ObserveFloat64(g.paused, m.Pause.Seconds(), of)
		for kind, n := range map[string]int64{"calls": m.Calls, "requests": m.Rates.Requests, "input": m.Rates.Input, "output": m.Rates.Output} {
			o.ObserveInt64(g.limits, n, metric.WithAttributes(attribute.String(modelKey, m.Name), attribute.String(kindKey, kind)))
		}
	}
}

func (g *gauges) observeStore(o metric.Observer, f Fleet) {
	o.ObserveInt64(g.storeUp, asNumber(f.StoreAnswers()))
	o.ObserveInt64(g.peers, int64(f.Orchestrators()))
	for outcome, n := range map[string]int64{
		"committed": f.Store.Commits.Load(), "read": f.Store.Reads.Load(), "conflict": f.Store.Conflicts.Load(),
		"too_old": f.Store.TooOld.Load(), "unknown": f.Store.Unknown.Load(),
	} {
		o.ObserveInt64(g.transactions, n, oneLabel(outcomeKey, outcome))
	}
}

// demandWait bounds the reading of the demand for one scrape.
const demandWait = 2 * time.Second

// observeDemand shows what autoscalers without KEDA go by. While the store does not answer
// there is nothing to show, which an autoscaler takes as a reason to change nothing.
func (g *gauges) observeDemand(ctx context.Context, o metric.Observer, f Fleet) {
	ctx, stop := context.WithTimeout(ctx, demandWait)
	defer stop()
	all, err := f.Demand(ctx)
	if err != nil {
		return // coditect.store.up says it
	}

	type series struct{ tenant, model string }
	units := make(map[series]int64)
	for _, d := range all {
		units[series{string(d.Tenant), d.Model}] += d.Units
	}
	most := func(a, b series) int {
		return cmp.Or(cmp.Compare(units[b], units[a]), cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.model, b.model))
	}

	// The models beyond the bound stand together.
	rest := int64(0)
	for i, s := range slices.SortedFunc(maps.Keys(units), most) {
		if i >= maxModels {
			rest += units[s]
			continue
		}
		o.ObserveInt64(g.runnable, units[s], metric.WithAttributes(attribute.String(tenantKey, s.tenant), attribute.String(modelKey, s.model)))
	}

	if rest > 0 {
		o.ObserveInt64(g.runnable, rest, metric.WithAttributes(attribute.String(tenantKey, telemetry.Other), attribute.String(modelKey, telemetry.Other)))
	}
}

func asNumber(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// foldTenants keeps the tenants whose units wait longest, and makes one of the others.
func foldTenants(all []schedule.TenantQueue) []schedule.TenantQueue {
	slices.SortFunc(all, func(a, b schedule.TenantQueue) int {
		return cmp.Or(cmp.Compare(b.Age, a.Age), cmp.Compare(a.Tenant, b.Tenant))
	})
	if len(all) <= maxTenants {
		return all
	}

	rest := schedule.TenantQueue{Tenant: mapreduce.TenantID(telemetry.Other)}
	for _, t := range all[maxTenants:] {
		rest.Jobs += t.Jobs
		rest.Age = max(rest.Age, t.Age)
	}
	return append(slices.Clone(all[:maxTenants]), rest)
}
