// Package observed measures and traces the calls of tools: their duration, and a span for
// each that is a part of something traced. It never records what a tool was given or
// brought.
package observed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/coditect/mapreduce/api/telemetry"
	"github.com/coditect/mapreduce/worker/tool"
)

// Duration is the name of the histogram of how long calls of tools take, in seconds, by the
// conventions for generative models.
const Duration = "gen_ai.execute_tool.duration"

const maxTools = 128 // that have a label of their own

// Calls returns the function that Box.Observe of package toolbox takes: it begins a call of
// a tool, and returns what ends it. m may be nil.
func Calls(m metric.Meter) (func(ctx context.Context, name string) (context.Context, func(error)), error) {
	o := &observer{tools: telemetry.NewLabels(maxTools)}
	if m != nil {
		var err error
		o.duration, err = m.Float64Histogram(Duration, metric.WithUnit("s"), metric.WithDescription("How long calls of tools take."),
			metric.WithExplicitBucketBoundaries(.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60))
		if err != nil {
			return nil, fmt.Errorf("instrument %s: %w", Duration, err)
		}
	}
	return o.begin, nil
}

type observer struct {
	tools    *telemetry.Labels
	duration metric.Float64Histogram // nil without metrics
}

func (o *observer) begin(ctx context.Context, name string) (context.Context, func(error)) {
	var span trace.Span
	if parent := trace.SpanFromContext(ctx); parent.IsRecording() {
		ctx, span = parent.TracerProvider().Tracer("github.com/coditect/mapreduce/worker/tool").Start(ctx, "execute_tool "+name, trace.WithAttributes(
			attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", name),
			attribute.String("gen_ai.tool.type", "function"), attribute.String(telemetry.KindKey, telemetry.KindTool)))
	}

	begun := time.Now()
	return ctx, func(err error) {
		kind := errorType(err)
		if o.duration != nil {
			of := []attribute.KeyValue{attribute.String("gen_ai.tool.name", o.tools.Of(name))}
			if kind != "" {
				of = append(of, attribute.String("error.type", kind))
			}
			o.duration.Record(ctx, time.Since(begun).Seconds(), metric.WithAttributes(of...))
		}

		if span == nil {
			return
		}
		if kind != "" {
			span.SetAttributes(attribute.String("error.type", kind))
			span.SetStatus(codes.Error, kind)
		}
		span.End()
	}
}

// errorType names why a call failed; what its error says may be of a page or a file.
func errorType(err error) string {
	if err == nil {
		return ""
	}
	if _, ok := errors.AsType[*tool.Refused](err); ok {
		return "refused"
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return "timeout"
	}
	return "tool_error"
}
