package overhead

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/proto"

	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

const scope = "github.com/coditect/mapreduce"

// signals are traces and metrics, as a process has them that exports both by OTLP: spans in
// batches, metrics as often as users' collectors ask for them. Exports are encoded and then
// thrown away, so that no collector's work is measured. A nil one exports nothing.
type signals struct {
	tracers *sdktrace.TracerProvider
	meters  *sdkmetric.MeterProvider
}

// readEvery is how often metrics are read: four times as often as Prometheus does by default.
const readEvery = 15 * time.Second

func newSignals() *signals {
	return &signals{
		tracers: sdktrace.NewTracerProvider(sdktrace.WithBatcher(otlptrace.NewUnstarted(discard{}))),
		meters:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(forgetful{}, sdkmetric.WithInterval(readEvery)))),
	}
}

func (s *signals) meter() metric.Meter {
	if s == nil {
		return nil
	}
	return s.meters.Meter(scope)
}

func (s *signals) tracer() trace.Tracer {
	if s == nil {
		return nil
	}
	return s.tracers.Tracer(scope)
}

func (s *signals) options() []otelgrpc.Option {
	return []otelgrpc.Option{
		otelgrpc.WithTracerProvider(s.tracers), otelgrpc.WithMeterProvider(s.meters),
		otelgrpc.WithFilter(func(i *stats.RPCTagInfo) bool {
			return i.FullMethodName != pb.WorkerService_Work_FullMethodName && i.FullMethodName != pb.MapReduceService_WatchJob_FullMethodName
		}),
	}
}

func (s *signals) serverOptions() []grpc.ServerOption {
	if s == nil {
		return nil
	}
	return []grpc.ServerOption{grpc.StatsHandler(otelgrpc.NewServerHandler(s.options()...))}
}

func (s *signals) dialOptions() []grpc.DialOption {
	if s == nil {
		return nil
	}
	return []grpc.DialOption{grpc.WithStatsHandler(otelgrpc.NewClientHandler(s.options()...))}
}

func (s *signals) close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	return errors.Join(s.tracers.Shutdown(ctx), s.meters.Shutdown(ctx))
}

// discard is a client of a collector that encodes spans and throws them away.
type discard struct{}

func (discard) Start(context.Context) error { return nil }

func (discard) Stop(context.Context) error { return nil }

// UploadTraces implements otlptrace.Client.
func (discard) UploadTraces(_ context.Context, spans []*tracepb.ResourceSpans) error {
	_, err := proto.Marshal(&coltrace.ExportTraceServiceRequest{ResourceSpans: spans})
	return err
}

// forgetful is an exporter that forgets what it is given.
type forgetful struct{}

// Temporality implements sdkmetric.Exporter.
func (forgetful) Temporality(k sdkmetric.InstrumentKind) metricdata.Temporality {
	return sdkmetric.DefaultTemporalitySelector(k)
}

// Aggregation implements sdkmetric.Exporter.
func (forgetful) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(k)
}

// Export implements sdkmetric.Exporter.
func (forgetful) Export(context.Context, *metricdata.ResourceMetrics) error { return nil }

// ForceFlush implements sdkmetric.Exporter.
func (forgetful) ForceFlush(context.Context) error { return nil }

// Shutdown implements sdkmetric.Exporter.
func (forgetful) Shutdown(context.Context) error { return nil }
