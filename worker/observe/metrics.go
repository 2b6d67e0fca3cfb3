package observe

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// A Reading is how a worker stands when it is measured.
type Reading struct {
	Stats
	Slots     int      // units that it can run at once
	Connected bool     // it has a stream to an orchestrator
	Open      []string // models whose breaker it has opened
}

// Register has m call read whenever it is read itself, so that a worker that is not measured
// counts nothing more than it does for its own log. Without m it does nothing.
func Register(m metric.Meter, read func() Reading) error {
	if m == nil {
		return nil
	}

	var errs []error
	gauge := func(name, unit, says string) metric.Int64ObservableGauge {
		g, err := m.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(says))
		errs = append(errs, err)
		return g
	}
	count := func(name, unit, says string) metric.Int64ObservableCounter {
		c, err := m.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(says))
		errs = append(errs, err)
		return c
	}

	slots := gauge("coditect.worker.slots", "{slot}", "Units that this worker can run at once.")
	units := gauge("coditect.worker.units", "{unit}", "Units at this worker: running, waiting for a slot, reported without a verdict, abandoned.")
	connected := gauge("coditect.worker.connected", "", "1 while this worker has a stream to an orchestrator.")
	breakers := gauge("coditect.worker.breaker.open", "", "1 for each model whose breaker this worker has opened.")
	attempts := count("coditect.worker.attempts", "{attempt}", "Attempts that this worker has ended, by how they ended.")
	panics := count("coditect.worker.panics", "{panic}", "Attempts that panicked.")
	verdicts := count("coditect.worker.verdicts", "{verdict}", "Verdicts on this worker's reports.")
	streams := count("coditect.worker.connections", "{stream}", "Streams to orchestrators that this worker has begun.")
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("instruments of the worker: %w", err)
	}

	label := func(key, value string) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(attribute.String(key, value)))
	}
	running, waiting, reported, abandoned := label("state", "running"), label("state", "waiting"), label("state", "reported"), label("state", "abandoned")
	done, errored, returned, parked := label("outcome", "done"), label("outcome", "errored"), label("outcome", "returned"), label("outcome", "parked")
	accepted, refused, unknown := label("verdict", "accepted"), label("verdict", "refused"), label("verdict", "unknown")

	_, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		st := read()
		o.ObserveInt64(slots, int64(st.Slots))
		o.ObserveInt64(units, int64(st.Running), running)
		o.ObserveInt64(units, int64(st.Waiting), waiting)
		o.ObserveInt64(units, int64(max(0, st.Held-st.Running-st.Waiting)), reported)
		o.ObserveInt64(units, int64(st.Abandoned), abandoned)
		o.ObserveInt64(attempts, st.Done, done)
		o.ObserveInt64(attempts, st.Errored, errored)
		o.ObserveInt64(attempts, st.Returned, returned)
		o.ObserveInt64(attempts, st.Parked, parked)
		o.ObserveInt64(panics, st.Panics)
		o.ObserveInt64(verdicts, st.Accepted, accepted)
		o.ObserveInt64(verdicts, st.Refused, refused)
		o.ObserveInt64(verdicts, st.Unknown, unknown)
		o.ObserveInt64(streams, st.Connections)
		o.ObserveInt64(connected, asNumber(st.Connected))
		// Models are named by jobs, so the series are bounded.
		for _, name := range st.Open[:min(len(st.Open), maxBreakers)] {
			o.ObserveInt64(breakers, 1, label("model", name))
		}
		return nil
	}, slots, units, connected, breakers, attempts, panics, verdicts, streams)
	return err
}

// maxBreakers is how many open breakers are shown: jobs name models as they like.
const maxBreakers = 64

func asNumber(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}
