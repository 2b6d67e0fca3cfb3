package observe_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/observe"
)

// What a worker counts is read when it is measured, each number under its name and label.
func TestCounts(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
	now := observe.Reading{Slots: 4, Connected: true, Open: []string{"p/m"}}
	if err := observe.Register(meter, func() observe.Reading { return now }); err != nil {
		t.Fatal(err)
	}
	if err := observe.Register(nil, nil); err != nil {
		t.Errorf("without a meter: %v", err)
	}

	now.Running, now.Waiting, now.Held, now.Abandoned, now.Panics, now.Connections = 1, 2, 6, 7, 8, 9
	now.Accepted, now.Refused, now.Unknown = 10, 11, 12
	for i, o := range []protocol.Outcome{protocol.Done, protocol.Errored, protocol.Returned, protocol.Parked} {
		for range i + 1 {
			now.CountReport(&protocol.Report{Outcome: o})
		}
	}

	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{
		"slots": 4, "units running": 1, "units waiting": 2, "units reported": 3, "units abandoned": 7, "connected": 1, "breaker.open p/m": 1,
		"attempts done": 1, "attempts errored": 2, "attempts returned": 3, "attempts parked": 4, "panics": 8,
		"verdicts accepted": 10, "verdicts refused": 11, "verdicts unknown": 12, "connections": 9,
	}
	if diff := cmp.Diff(want, numbersOf(all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// numbersOf returns what was measured, by the names and labels of it.
func numbersOf(all metricdata.ResourceMetrics) map[string]int64 {
	out := make(map[string]int64)
	note := func(name string, points []metricdata.DataPoint[int64]) {
		for _, p := range points {
			key := strings.TrimPrefix(name, "coditect.worker.")
			for _, label := range p.Attributes.ToSlice() {
				key += " " + label.Value.AsString()
			}
			out[key] = p.Value
		}
	}

	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Gauge[int64]:
				note(m.Name, data.DataPoints)
			case metricdata.Sum[int64]:
				note(m.Name, data.DataPoints)
			}
		}
	}
	return out
}

// An attempt has a span only if its orchestrator and its worker trace it; the span says how it ended, and of
// what went wrong the class alone.
func TestSpans(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	task := &agent.Task{Assignment: protocol.Assignment{Job: "j", Unit: "u", Attempt: 2, Stage: "extract", Kind: mapreduce.KindMap}}

	ctx, end := observe.BeginSpan(t.Context(), tracer, "s", task)
	if end != nil || ctx != t.Context() {
		t.Error("an attempt is traced that its orchestrator does not trace")
	}
	task.TraceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if _, end = observe.BeginSpan(t.Context(), nil, "s", task); end != nil {
		t.Error("an attempt is traced without a tracer")
	}

	_, end = observe.BeginSpan(t.Context(), tracer, "s", task)
	end(&protocol.Report{Outcome: protocol.Errored, Class: protocol.PermanentUnit, Errors: []string{"Mrs Smith's document"}})
	ended := spans.Ended()
	if len(ended) != 1 {
		t.Fatalf("%d spans, want 1", len(ended))
	}

	one := ended[0]
	if one.Name() != "unit extract" || one.Parent().SpanID().String() != "b7ad6b7169203331" || len(one.Links()) != 1 {
		t.Errorf("span %q below %s, with %d links", one.Name(), one.Parent().SpanID(), len(one.Links()))
	}
	if st := one.Status(); st.Code != codes.Error || st.Description != "permanent_unit" {
		t.Errorf("the span ended as %+v", st)
	}
	of := attribute.NewSet(one.Attributes()...)
	for key, want := range map[attribute.Key]string{"coditect.unit.id": "u", "coditect.unit.outcome": "errored", "error.type": "permanent_unit"} {
		if got, _ := of.Value(key); got.AsString() != want {
			t.Errorf("%s is %q, want %q", key, got.AsString(), want)
		}
	}
}
