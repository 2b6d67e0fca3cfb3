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
func (p *Program) WithTelemetry(ctx context.Context, name string, run func(context.Context) error) error {
	if !observe.IsConfigured(p.Getenv) {
		return run(ctx)
	}

	log := slog.New(slog.NewTextHandler(p.Stderr, nil))
	if err := p.OpenTelemetry(ctx, "coditect", false, log); err != nil {
		return err
	}

	ctx, end := p.beginCommand(ctx, name)
	err := run(ctx)
	end(err)
	p.CloseTelemetry(ctx, log)
	return err
}

// OpenTelemetry sets up what the environment asks for; scraped, metrics are kept for an
// admin listener as well.
func (p *Program) OpenTelemetry(ctx context.Context, service string, scraped bool, log *slog.Logger) error {
	t, err := observe.Open(ctx, observe.Config{Name: service, Version: p.Version, Getenv: p.Getenv, Scraped: scraped, Logger: log})
	if err != nil {
		return exit.UsageError("%w", err)
	}
	p.Telemetry = t

	// Without a meter and a tracer, calls of models need no observers.
	if t.Meter() == nil && t.Tracer() == nil {
		return nil
	}

	prices, err := llm.ListPrices()
	if err != nil {
		return err
	}

	p.Runners.Observers, err = decorator.NewObservers(t.Meter(), strings.Contains(p.Getenv("OTEL_SEMCONV_STABILITY_OPT_IN"), decorator.LatestNames), prices)
	if err != nil {
		return err
	}

	p.Runners.ToolCalls, err = observed.Calls(t.Meter())
	return err
}

// CloseTelemetry sends what is left. A collector that cannot be reached is no failure of
// the command.
func (p *Program) CloseTelemetry(ctx context.Context, log *slog.Logger) {
	if err := p.Telemetry.Close(ctx); err != nil {
		log.Warn("telemetry was not exported", "error", err)
	}
	p.Telemetry = nil
}

// beginCommand begins the span of a command, and returns what ends it.
func (p *Program) beginCommand(ctx context.Context, name string) (context.Context, func(error)) {
	t := p.Telemetry.Tracer()
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
