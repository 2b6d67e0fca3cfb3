package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const parentHeader = "traceparent" // of W3C Trace Context

// ParentOf returns a span's context as a traceparent of W3C Trace Context, or "" if it
// is none.
func ParentOf(at trace.SpanContext) string {
	if !at.IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), at), carrier)
	return carrier[parentHeader]
}

// ReadParent returns what a traceparent says. It is not valid if that says nothing.
func ReadParent(parent string) trace.SpanContext {
	if parent == "" {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{parentHeader: parent}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// Kinds of spans for those who look at agents, as OpenInference names them: a hint that
// others pass over.
const (
	KindKey   = "openinference.span.kind"
	KindChain = "CHAIN"
	KindAgent = "AGENT"
	KindModel = "LLM"
	KindTool  = "TOOL"
)

type contentKey struct{}

// WithContent returns a context in which spans may hold prompts and answers: those of a job
// that captures them.
func WithContent(ctx context.Context) context.Context {
	return context.WithValue(ctx, contentKey{}, true)
}

// HoldsContent reports whether spans may hold prompts and answers.
func HoldsContent(ctx context.Context) bool {
	on, _ := ctx.Value(contentKey{}).(bool)
	return on
}
