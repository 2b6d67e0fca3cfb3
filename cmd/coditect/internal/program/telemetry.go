package program

import (
	"context"
	"log/slog"
	"strings"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/observe"
	"github.com/coditect/mapreduce/worker/llm"
	"github.com/coditect/mapreduce/worker/llm/decorator"
	"github.com/coditect/mapreduce/worker/tool/observed"
)

// WithTelemetry runs a command that ends by itself, and traces and measures it if the
// environment says where to. The span of the command is the root of what it calls.
func (a *Program) WithTelemetry(ctx context.Context, name string, run func(context.Context) error) error {
	if !observe.IsConfigured(a.Getenv) {
		return run(ctx)
	}

	log := slog.New(slog.NewTextHandler(a.Stderr, nil))
	if err := a.OpenTelemetry(ctx, "coditect", false, log); err != nil {
		return err
	}

	ctx, end := a.beginCommand(ctx, name)
	err := run(ctx)
	end(err)
	a.CloseTelemetry(ctx, log)
	return err
}

// OpenTelemetry sets up what the environment asks for; scraped, metrics are kept for an
// admin listener as well.
func (a *Program) OpenTelemetry(ctx context.Context, service string, scraped bool, log *slog.Logger) error {
	t, err := observe.Open(ctx, observe.Config{Name: service, Version: a.Version, Getenv: a.Getenv, Scraped: scraped, Logger: log})
	if err != nil {
		return exit.UsageError("%w", err)
	}
	a.Telemetry = t

	// Without a meter and a tracer, calls of models need no observers.
	if t.Meter() == nil && t.Tracer() == nil {
		return nil
	}

	prices, err := llm.ListPrices()
	if err != nil {
		return err
	}

	a.Runners.Observers, err = decorator.NewObservers(t.Meter(), strings.Contains(a.Getenv("OTEL_SEMCONV_STABILITY_OPT_IN"), decorator.LatestNames), prices)
	if err != nil {
		return err
	}

	a.Runners.ToolCalls, err = observed.Calls(t.Meter())
	return err
}

// CloseTelemetry sends what is left. A collector that cannot be reached is no failure of
// the command.
func (a *Program) CloseTelemetry(ctx context.Context, log *slog.Logger) {
	if err := a.Telemetry.Close(ctx); err != nil {
		log.Warn("telemetry was not exported", "error", err)
	}
	a.Telemetry = nil
}

// beginCommand begins the span of a command, and returns what ends it.
func (a *Program) beginCommand(ctx context.Context, name string) (context.Context, func(error)) {
	t := a.Telemetry.Tracer()
	if t == nil {
		return ctx, func(error) {}
	}

	ctx, span := t.Start(ctx, name, trace.WithSpanKind(trace.SpanKindInternal))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}
