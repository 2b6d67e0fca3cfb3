package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// A logHandler adds the ids of the span of a record's context to it.
type logHandler struct{ slog.Handler }

// NewLogHandler returns a handler that adds "trace_id" and "span_id" to the records of
// what is traced, and passes all on to next.
func NewLogHandler(next slog.Handler) slog.Handler { return logHandler{next} }

// Handle implements slog.Handler.
func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	if at := trace.SpanContextFromContext(ctx); at.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", at.TraceID().String()), slog.String("span_id", at.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }

// NoMeters and NoTracers drop what they are given.
var (
	NoMeters  metric.MeterProvider = metricnoop.NewMeterProvider()
	NoTracers trace.TracerProvider = tracenoop.NewTracerProvider()
)
