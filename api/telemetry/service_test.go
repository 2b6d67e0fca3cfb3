package telemetry_test

import (
	"context"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/server/servertest"
	"github.com/coditect/mapreduce/api/telemetry"
)

// observed returns a service in memory that is observed, what was measured, and the
// spans that have ended.
func observed(t *testing.T) (mapreduce.Service, *sdkmetric.ManualReader, *tracetest.SpanRecorder) {
	t.Helper()
	reader, spans := sdkmetric.NewManualReader(), tracetest.NewSpanRecorder()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	t.Cleanup(func() {
		if err := meters.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := tracers.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	s, err := telemetry.NewService(new(servertest.Service), meters.Meter("test"), tracers.Tracer("test"))
	if err != nil {
		t.Fatal(err)
	}
	return s, reader, spans
}

// calls returns how many calls were measured, by method and error.
func calls(t *testing.T, r *sdkmetric.ManualReader) map[string]uint64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]uint64)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != telemetry.CallDuration || m.Unit != "s" {
				t.Errorf("measured %s in %s", m.Name, m.Unit)
			}
			for _, p := range m.Data.(metricdata.Histogram[float64]).DataPoints {
				method, _ := p.Attributes.Value("method")
				failed, _ := p.Attributes.Value("error.type")
				counts[method.AsString()+" "+failed.AsString()] += p.Count
			}
		}
	}
	return counts
}

// The answers and errors of a service pass unchanged; each call is measured once and
// has a span that names who called, and about what.
func TestCallsAreMeasuredAndTraced(t *testing.T) {
	s, reader, spans := observed(t)
	by := mapreduce.Principal{Tenant: "acme", Name: "ann"}
	docs := iter.Seq2[*mapreduce.Document, error](func(yield func(*mapreduce.Document, error) bool) {
		yield(&mapreduce.Document{ID: "a", Content: []byte("secret text")}, nil)
	})
	job, err := s.SubmitJob(t.Context(), by, mapreduce.JobSpec{Tenant: "acme"}, docs)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.GetJob(t.Context(), by, job.ID); err != nil || got.ID != job.ID {
		t.Errorf("got %v and %v, want job %s", got, err, job.ID)
	}
	if _, err := s.GetJob(t.Context(), by, "mr_20260704_999999"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("got %v, want the error of the service", err)
	}
	want := map[string]uint64{"SubmitJob ": 1, "GetJob ": 1, "GetJob not_found": 1}
	if diff := cmp.Diff(want, calls(t, reader)); diff != "" {
		t.Errorf("calls wanted (-), measured (+):\n%s", diff)
	}
	ended := spans.Ended()
	if len(ended) != 3 {
		t.Fatalf("got %d spans, want 3", len(ended))
	}
	last := ended[2]
	if last.Name() != "Service/GetJob" || last.Status().Code != codes.Error {
		t.Errorf("got span %s with status %v", last.Name(), last.Status())
	}
	for _, a := range []attribute.KeyValue{
		attribute.String("coditect.tenant.id", "acme"), attribute.String("coditect.principal.name", "ann"),
		attribute.String("coditect.job.id", "mr_20260704_999999"), attribute.String("error.type", "not_found"),
	} {
		if !hasAttribute(last, a) {
			t.Errorf("the span lacks %s=%s", a.Key, a.Value.AsString())
		}
	}
}

func hasAttribute(s sdktrace.ReadOnlySpan, want attribute.KeyValue) bool {
	return slices.Contains(s.Attributes(), want)
}
