// Package observe sets up OpenTelemetry for a process, by the environment variables that
// OpenTelemetry has for it: where traces, metrics and logs go, what is sampled, and what
// the process calls itself. Without them it sets up nothing, and nothing leaves the process.
//
// It alone knows the SDK and its exporters. All other packages know the API.
package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/coditect/mapreduce/api/telemetry"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// scope is the name of the instrumentation scope of all that this program measures.
const scope = "github.com/coditect/mapreduce"

// A Config says what a process is, and what it is asked to show.
type Config struct {
	// Name is what the process is, such as coditect-server. OTEL_SERVICE_NAME and
	// OTEL_RESOURCE_ATTRIBUTES go before it.
	Name    string
	Version string
	// Getenv returns variables of the environment that this package reads itself. Those of
	// exporters, processors and samplers the SDK reads from the process.
	Getenv func(string) string
	// Scraped keeps metrics for Handler, whether they are exported or not.
	Scraped bool
	// Logger gets the failures to export.
	Logger *slog.Logger
}

// A Telemetry exports the traces, metrics and logs of a process. The zero value and nil
// export nothing. Its methods are safe for concurrent use.
type Telemetry struct {
	meters   *sdkmetric.MeterProvider // nil if nothing is measured
	tracers  *sdktrace.TracerProvider // nil if nothing is traced
	loggers  *sdklog.LoggerProvider   // nil if logs are not exported
	gatherer prometheus.Gatherer      // nil if nothing is scraped
}

// Signals that can be exported, as the names of their variables have them.
const (
	traces  = "TRACES"
	metrics = "METRICS"
	logs    = "LOGS"
)

// IsConfigured reports whether the environment asks for any signal to be exported.
func IsConfigured(getenv func(string) string) bool {
	for _, signal := range []string{traces, metrics, logs} {
		if on, err := isExported(getenv, signal); on || err != nil {
			return true
		}
	}
	return false
}

// isExported reports whether a signal is to be exported. By default OpenTelemetry exports
// all of them to this machine; this program exports only what the environment names an
// exporter or an endpoint for.
func isExported(getenv func(string) string, signal string) (bool, error) {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}

	name := "OTEL_" + signal + "_EXPORTER"
	switch value := strings.TrimSpace(getenv(name)); {
	case value == "none", value == "prometheus" && signal == metrics: // which --admin gives
		return false, nil
	case value == "" && getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") == "":
		return false, nil
	case value != "" && value != "otlp":
		return false, fmt.Errorf("%s: %q is not otlp or none", name, value)
	}

	for _, name := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if value := getenv(name); value != "" && value != "grpc" {
			return false, fmt.Errorf("%s: %q is not grpc, the only protocol that this program has for it", name, value)
		} else if value != "" {
			break
		}
	}

	return true, nil
}

// Open sets up what the environment asks for, and what c does. Exporters connect when they
// have something to send. The result must be closed.
func Open(ctx context.Context, c Config) (*Telemetry, error) {
	t := &Telemetry{}
	about, err := resource.New(ctx, resource.WithAttributes(
		attribute.String("service.name", c.Name), attribute.String("service.version", c.Version),
		attribute.Int("process.pid", os.Getpid()),
	), resource.WithHost(), resource.WithTelemetrySDK(), resource.WithFromEnv())
	// A host that cannot say all about itself is no reason to export nothing.
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}

	for _, set := range []func(context.Context, *resource.Resource, Config) error{t.openMetrics, t.openTraces, t.openLogs} {
		if err := set(ctx, about, c); err != nil {
			return nil, errors.Join(err, t.Close(ctx))
		}
	}

	if c.Logger != nil {
		otel.SetErrorHandler(&failures{log: c.Logger})
	}
	return t, nil
}

func (t *Telemetry) openMetrics(ctx context.Context, about *resource.Resource, c Config) error {
	exported, err := isExported(c.Getenv, metrics)
	if err != nil || !exported && !c.Scraped {
		return err
	}

	// One provider may have both readers: metrics can be exported and scraped.
	options := []sdkmetric.Option{sdkmetric.WithResource(about)}
	if exported {
		exporter, err := otlpmetricgrpc.New(ctx)
		if err != nil {
			return fmt.Errorf("OTLP metrics: %w", err)
		}
		options = append(options, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)))
	}

	if c.Scraped {
		reader, gatherer, err := newScrape(c.Version)
		if err != nil {
			return err
		}
		t.gatherer = gatherer
		options = append(options, sdkmetric.WithReader(reader))
	}

	t.meters = sdkmetric.NewMeterProvider(options...)
	return nil
}

func (t *Telemetry) openTraces(ctx context.Context, about *resource.Resource, c Config) error {
	exported, err := isExported(c.Getenv, traces)
	if err != nil || !exported {
		return err
	}

	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		return fmt.Errorf("OTLP traces: %w", err)
	}
	t.tracers = sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithBatcher(exporter), sdktrace.WithIDGenerator(idGenerator{}))
	return nil
}

func (t *Telemetry) openLogs(ctx context.Context, about *resource.Resource, c Config) error {
	exported, err := isExported(c.Getenv, logs)
	if err != nil || !exported {
		return err
	}

	exporter, err := otlploggrpc.New(ctx)
	if err != nil {
		return fmt.Errorf("OTLP logs: %w", err)
	}
	t.loggers = sdklog.NewLoggerProvider(sdklog.WithResource(about), sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)))
	return nil
}

// closeWait bounds how long a process that ends waits for a collector.
const closeWait = 3 * time.Second

// Close sends what is left and ends all that Open began.
func (t *Telemetry) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}

	// The context of a command that was interrupted has ended; what is left is sent all the
	// same.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), closeWait)
	defer stop()

	var errs []error
	if t.tracers != nil {
		errs = append(errs, t.tracers.Shutdown(ctx))
	}
	if t.meters != nil {
		errs = append(errs, t.meters.Shutdown(ctx))
	}
	if t.loggers != nil {
		errs = append(errs, t.loggers.Shutdown(ctx))
	}

	return errors.Join(errs...)
}

// Meter returns the meter for measurements, or nil if nothing is measured.
func (t *Telemetry) Meter() metric.Meter {
	if t == nil || t.meters == nil {
		return nil
	}
	return t.meters.Meter(scope)
}

// Tracer returns the tracer for spans, or nil if nothing is traced.
func (t *Telemetry) Tracer() trace.Tracer {
	if t == nil || t.tracers == nil {
		return nil
	}
	return t.tracers.Tracer(scope)
}

// Handler returns what answers GET /metrics, or nil if nothing is scraped.
func (t *Telemetry) Handler() http.Handler {
	if t == nil || t.gatherer == nil {
		return nil
	}
	return scrapeHandler(t.gatherer)
}

// LogHandler returns what log records go to: to next, with the ids of the
// span that they are of, and to the collector if logs are exported.
func (t *Telemetry) LogHandler(next slog.Handler) slog.Handler {
	if t == nil {
		return next
	}
	if t.tracers != nil {
		next = telemetry.NewLogHandler(next)
	}
	if t.loggers != nil {
		return slog.NewMultiHandler(next, otelslog.NewHandler(scope, otelslog.WithLoggerProvider(t.loggers)))
	}
	return next
}

// ServerOptions returns the options by which a server measures and traces calls.
func (t *Telemetry) ServerOptions() []grpc.ServerOption {
	if !t.hearsCalls() {
		return nil
	}
	return []grpc.ServerOption{grpc.StatsHandler(otelgrpc.NewServerHandler(t.callOptions()...))}
}

// DialOptions returns the options by which a client measures and traces calls, and passes
// on the trace that they are part of.
func (t *Telemetry) DialOptions() []grpc.DialOption {
	if !t.hearsCalls() {
		return nil
	}
	return []grpc.DialOption{grpc.WithStatsHandler(otelgrpc.NewClientHandler(t.callOptions()...))}
}

func (t *Telemetry) hearsCalls() bool { return t != nil && (t.meters != nil || t.tracers != nil) }

func (t *Telemetry) callOptions() []otelgrpc.Option {
	options := []otelgrpc.Option{otelgrpc.WithPropagators(propagation.TraceContext{}), otelgrpc.WithFilter(lastsNotForEver)}
	tracers, meters := telemetry.NoTracers, telemetry.NoMeters // else it takes global ones
	if t.tracers != nil {
		tracers = t.tracers
	}
	if t.meters != nil {
		meters = t.meters
	}
	return append(options, otelgrpc.WithTracerProvider(tracers), otelgrpc.WithMeterProvider(meters))
}

// lastsNotForEver leaves out the streams of workers, which last as long as these do, and
// those that watch a job, which last as long as that: a span of such a stream would end days
// later, and what goes over a worker's has spans of its own.
func lastsNotForEver(info *stats.RPCTagInfo) bool {
	return info.FullMethodName != pb.WorkerService_Work_FullMethodName && info.FullMethodName != pb.MapReduceService_WatchJob_FullMethodName
}

// failures logs failures to export, the first of each minute.
type failures struct {
	log *slog.Logger

	mu   sync.Mutex // guards the variable below
	last time.Time  // when one was logged
}

// Handle implements otel.ErrorHandler.
func (f *failures) Handle(err error) {
	f.mu.Lock()
	quiet := time.Since(f.last) < time.Minute
	if !quiet {
		f.last = time.Now()
	}
	f.mu.Unlock()

	if !quiet {
		f.log.Warn("telemetry was not exported; jobs go on without", "error", err)
	}
}
