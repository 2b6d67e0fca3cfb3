package observe

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/telemetry"
	"github.com/coditect/mapreduce/worker/agent"
)

// BeginSpan begins the span of an attempt, if its orchestrator and this worker trace it, and
// returns the context to run it in and what ends the span; nil if there is none. What the attempt does stands
// below it, by that context. A later attempt has a link to the one before, whose span stands in the same
// trace, whoever made it.
func BeginSpan(ctx context.Context, tracer trace.Tracer, session mapreduce.SessionID, task *agent.Task) (traced context.Context, end func(*protocol.Report)) {
	parent := telemetry.ReadParent(task.TraceParent)
	if tracer == nil || !parent.IsValid() {
		return ctx, nil
	}
	return startSpan(ctx, tracer, parent, session, task)
}

// startSpan is BeginSpan of an attempt that is traced. It needs much of a stack, which
// others do not pay for.
func startSpan(ctx context.Context, tracer trace.Tracer, parent trace.SpanContext, session mapreduce.SessionID, task *agent.Task) (traced context.Context, end func(*protocol.Report)) {
	held := protocol.Held{Job: task.Job, Unit: task.Unit, Attempt: task.Attempt}
	kind, name := telemetry.KindChain, "unit "

	of := []attribute.KeyValue{
		attribute.String("coditect.job.id", string(held.Job)), attribute.String("coditect.unit.id", string(held.Unit)),
		attribute.Int("coditect.unit.attempt", held.Attempt), attribute.String("coditect.session.id", string(session)),
		attribute.String("session.id", string(held.Job)),
	}

	if task.Spec != nil && task.Spec.Model != "" && task.Kind != mapreduce.KindParse {
		kind, name = telemetry.KindAgent, "invoke_agent "
		of = append(of, attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.String("gen_ai.agent.name", stageName(task)),
			attribute.String("gen_ai.provider.name", task.Spec.Provider), attribute.String("gen_ai.request.model", task.Spec.Model))
	}

	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(append(of, attribute.String(telemetry.KindKey, kind))...)}
	if held.Attempt > 1 {
		before := held
		before.Attempt--
		options = append(options, trace.WithLinks(trace.Link{SpanContext: parent.WithSpanID(telemetry.AttemptSpan(before))}))
	}

	// The orchestrator computes the same span from the attempt, so it must have this
	// number.
	ctx = telemetry.WithIDs(trace.ContextWithRemoteSpanContext(ctx, parent), trace.TraceID{}, telemetry.AttemptSpan(held))
	ctx, span := tracer.Start(ctx, name+stageName(task), options...)
	ctx = telemetry.WithIDs(ctx, trace.TraceID{}, trace.SpanID{}) // those below have their own

	if task.Spec != nil && task.Spec.Capture == mapreduce.CaptureFull {
		ctx = telemetry.WithContent(ctx)
	}

	return ctx, func(r *protocol.Report) { endSpan(span, r) }
}

// stageName names the stage of a unit; those that parse documents are of none.
func stageName(task *agent.Task) string {
	if task.Stage == "" {
		return "parse"
	}
	return task.Stage
}

// endSpan ends the span of an attempt. What went wrong may be said in words of a document,
// so its class must do.
func endSpan(span trace.Span, r *protocol.Report) {
	defer span.End()
	span.SetAttributes(attribute.String("coditect.unit.outcome", outcomeNames[r.Outcome]),
		attribute.Int64("coditect.unit.tokens.input", r.Tokens.In), attribute.Int64("coditect.unit.tokens.output", r.Tokens.Out),
		attribute.Int("coditect.unit.calls", r.Calls), attribute.Int("coditect.unit.tools", r.Tools))
	if r.Outcome == protocol.Errored {
		class := classNames[min(int(r.Class), len(classNames)-1)]
		span.SetAttributes(attribute.String("error.type", class))
		span.SetStatus(codes.Error, class)
	}
}

var (
	outcomeNames = [...]string{protocol.OutcomeUnknown: "unknown", protocol.Done: "done", protocol.Errored: "errored", protocol.Returned: "returned", protocol.Parked: "parked"}
	classNames   = [...]string{protocol.Retryable: "retryable", protocol.PermanentUnit: "permanent_unit", protocol.PermanentJob: "permanent_job"}
)
