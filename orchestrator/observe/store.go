package observe

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/coditect/mapreduce/store"
)

// StoreDuration is the name of the histogram of how long runs of transactions take, by the
// conventions for databases. Its attributes are "db.system.name", "db.operation.name"
// (update or view), and of those that failed "error.type", a store.Outcome.
const StoreDuration = "db.client.operation.duration"

// NewStoreObserver returns what a store.Config has to observe transactions, so that m has how
// long each took, and t a span for each that is a part of something traced; nil if both
// are nil. The system is what keeps the data: "pebble" or "foundationdb".
func NewStoreObserver(m metric.Meter, t trace.Tracer, system string) (func(context.Context, store.Run), error) {
	if m == nil && t == nil {
		return nil, nil
	}

	o := &storeObserver{tracer: t, system: system, kinds: make(map[kind]measured)}
	if m != nil {
		var err error
		o.duration, err = m.Float64Histogram(StoreDuration, metric.WithUnit("s"), metric.WithDescription("How long runs of transactions take."),
			metric.WithExplicitBucketBoundaries(.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5))
		if err != nil {
			return nil, fmt.Errorf("instrument %s: %w", StoreDuration, err)
		}
	}

	// Labels are made once: there are few kinds of runs, and many runs.
	for _, write := range []bool{false, true} {
		for _, outcome := range []store.Outcome{store.Succeeded, store.Conflict, store.TooOld, store.Unknown, store.Failed} {
			o.kinds[kind{write, outcome}] = o.labels(write, outcome)
		}
	}
	return o.observe, nil
}

// A kind is what the labels of a run depend on.
type kind struct {
	write   bool
	outcome store.Outcome
}

// measured is a kind in the words of OpenTelemetry, made once.
type measured struct {
	attributes []attribute.KeyValue
	option     metric.MeasurementOption
}

// A storeObserver tells of transactions. It does not change once it is made.
type storeObserver struct {
	duration metric.Float64Histogram // nil if nobody measures
	tracer   trace.Tracer            // nil if nobody traces
	system   string
	kinds    map[kind]measured
}

func (o *storeObserver) labels(write bool, outcome store.Outcome) measured {
	all := []attribute.KeyValue{attribute.String("db.system.name", o.system), attribute.String("db.operation.name", operation(write))}
	if outcome != store.Succeeded {
		all = append(all, attribute.String("error.type", string(outcome)))
	}
	return measured{all, metric.WithAttributeSet(attribute.NewSet(all...))}
}

func operation(write bool) string {
	if write {
		return "update"
	}
	return "view"
}

func (o *storeObserver) observe(ctx context.Context, r store.Run) {
	k := o.kinds[kind{r.Write, r.Outcome}]
	if o.duration != nil {
		o.duration.Record(ctx, r.Took.Seconds(), k.option)
	}

	if o.tracer == nil || !trace.SpanFromContext(ctx).IsRecording() {
		return
	}

	_, span := o.tracer.Start(ctx, operation(r.Write)+" "+o.system, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithTimestamp(r.Begun), trace.WithAttributes(k.attributes...))
	if r.Outcome != store.Succeeded {
		span.SetStatus(codes.Error, string(r.Outcome))
	}
	span.End(trace.WithTimestamp(r.Begun.Add(max(r.Took, time.Nanosecond))))
}
