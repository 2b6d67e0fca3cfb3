package observe

import (
	"context"
	"crypto/rand"

	"go.opentelemetry.io/otel/trace"

	"github.com/coditect/mapreduce/api/telemetry"
)

// idGenerator gives spans the ids that their context asks for, and others random ones.
type idGenerator struct{}

// NewIDs implements the generator of a tracer provider: those of the root of a trace.
func (g idGenerator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, span := telemetry.IDsFrom(ctx)
	for !id.IsValid() {
		_, _ = rand.Read(id[:]) // never fails
	}
	if !span.IsValid() {
		span = g.NewSpanID(ctx, id)
	}
	return id, span
}

// NewSpanID implements the generator of a tracer provider.
func (idGenerator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	_, span := telemetry.IDsFrom(ctx)
	for !span.IsValid() {
		_, _ = rand.Read(span[:]) // never fails
	}
	return span
}
