package decorator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/api/telemetry"
	"github.com/coditect/mapreduce/worker/llm"
)

// Names of metrics, by OpenTelemetry's conventions for generative models. Most programs
// that show such metrics know the older names; the newer ones are experimental, and are
// used if OTEL_SEMCONV_STABILITY_OPT_IN asks for them.
const (
	OperationDuration = "gen_ai.client.operation.duration" // s
	TokenUsage        = "gen_ai.client.token.usage"        //nolint:gosec // the name of a metric
	InferenceDuration = "gen_ai.client.inference.duration" // s; of the newer ones, as is the next
	InferenceUsage    = "gen_ai.client.inference.usage."   // input_tokens, output_tokens, cache_read.input_tokens, cache_write.input_tokens

	// LatestNames is what the variable has to hold for the newer names.
	LatestNames = "gen_ai_latest_experimental"
)

// maxModelLabels is how many models have a label of their own: jobs name models as they like.
const maxModelLabels = 64

// Observers make providers observed. A nil one makes none.
type Observers struct {
	latest   bool
	models   *telemetry.Labels
	prices   *llm.Prices
	duration metric.Float64Histogram
	usage    metric.Int64Histogram
	counts   map[string]metric.Int64Counter // by kind of token; of the newer names
}

// NewObservers returns what observes providers. Each call is measured by instruments of m,
// which may be nil. Spans are made wherever a call is a part of something that is traced.
// latest chooses the newer names.
func NewObservers(m metric.Meter, latest bool, prices *llm.Prices) (*Observers, error) {
	o := &Observers{latest: latest, models: telemetry.NewLabels(maxModelLabels), prices: prices}

	if m == nil {
		return o, nil
	}

	name := OperationDuration
	if latest {
		name = InferenceDuration
	}

	duration, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription("How long calls of models take, each attempt for itself."),
		metric.WithExplicitBucketBoundaries(.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92))
	errs := []error{err}
	o.duration = duration

	if !latest {
		o.usage, err = m.Int64Histogram(TokenUsage, metric.WithUnit("{token}"), metric.WithDescription("Tokens of calls of models, by type."),
			metric.WithExplicitBucketBoundaries(1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304))
		errs = append(errs, err)
	} else {
		// The newer names have a counter for each kind of token.
		o.counts = make(map[string]metric.Int64Counter)
		for _, kind := range []string{"input_tokens", "output_tokens", "cache_read.input_tokens", "cache_write.input_tokens"} {
			o.counts[kind], err = m.Int64Counter(InferenceUsage+kind, metric.WithUnit("{token}"), metric.WithDescription("Tokens of calls of models: "+kind+"."))
			errs = append(errs, err)
		}
	}

	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("instruments of calls of models: %w", err)
	}

	return o, nil
}

// Around returns a provider whose calls are measured and traced: one attempt each, so that
// what was paid for is counted where it was.
func (o *Observers) Around(p llm.Provider) llm.Provider {
	if o == nil {
		return p
	}
	return &observed{p, o}
}

// An observed provider measures and traces each attempt at a call.
type observed struct {
	llm.Provider
	*Observers
}

// Complete implements llm.Provider.
func (o *observed) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	tracer := trace.SpanFromContext(ctx)
	if o.duration == nil && !tracer.IsRecording() {
		return o.Provider.Complete(ctx, req)
	}

	of := []attribute.KeyValue{attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", o.Name())}
	var span trace.Span
	// The span has the name of the model as it is, the metrics below only one of a bounded
	// number.
	if tracer.IsRecording() {
		named := append(of, attribute.String("gen_ai.request.model", string(req.Model)), attribute.Int64("gen_ai.request.max_tokens", req.AnswerBound()),
			attribute.String("openinference.span.kind", telemetry.KindModel))
		ctx, span = tracer.TracerProvider().Tracer("github.com/coditect/mapreduce/worker/llm").Start(ctx, "chat "+string(req.Model), trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(append(named, parameterAttributes(req.Parameters)...)...))
	}

	begun := time.Now()
	res, err := o.Provider.Complete(ctx, req)

	if o.duration != nil {
		o.measure(ctx, append(of, attribute.String("gen_ai.request.model", o.models.Of(string(req.Model)))), time.Since(begun), usageOf(res, err), err)
	}

	if span != nil {
		o.describe(ctx, span, req, res, err)
		span.End()
	}

	return res, err
}

// parameterAttributes returns the parameters of an answer under the names of the conventions, which
// have none for a budget of thinking and for verbosity.
func parameterAttributes(set parameters.Set) (all []attribute.KeyValue) {
	if set.Temperature != nil {
		all = append(all, attribute.Float64("gen_ai.request.temperature", *set.Temperature))
	}
	if set.TopP != nil {
		all = append(all, attribute.Float64("gen_ai.request.top_p", *set.TopP))
	}
	if set.Seed != nil {
		all = append(all, attribute.Int64("gen_ai.request.seed", *set.Seed))
	}
	if len(set.Stop) > 0 {
		all = append(all, attribute.StringSlice("gen_ai.request.stop_sequences", set.Stop))
	}

	for _, name := range []parameters.Name{parameters.Effort, parameters.Thinking, parameters.Verbosity} {
		if value := set.Value(name); value != "" {
			all = append(all, attribute.String("coditect.request."+string(name), value))
		}
	}
	return all
}

// usageOf returns what a call has spent, as far as its vendor said so.
func usageOf(res *llm.Response, err error) llm.Usage {
	if res != nil {
		return res.Usage
	}
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e.Usage
	}
	return llm.Usage{}
}

// errorType names why a call failed: by its status, or by its kind.
func errorType(err error) string {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e.Kind.String()
	}
	return "_OTHER"
}

func (o *observed) measure(ctx context.Context, of []attribute.KeyValue, took time.Duration, u llm.Usage, err error) {
	all := metric.WithAttributes(of...)

	if !o.latest {
		o.usage.Record(ctx, u.In(), metric.WithAttributes(append(of, attribute.String("gen_ai.token.type", "input"))...))
		o.usage.Record(ctx, u.Output, metric.WithAttributes(append(of, attribute.String("gen_ai.token.type", "output"))...))
	} else {
		for kind, n := range map[string]int64{
			"input_tokens": u.In(), "output_tokens": u.Output, "cache_read.input_tokens": u.CacheRead, "cache_write.input_tokens": u.CacheWrite + u.CacheWrite1h,
		} {
			o.counts[kind].Add(ctx, n, all)
		}
	}

	if err != nil {
		all = metric.WithAttributes(append(of, attribute.String("error.type", errorType(err)))...)
	}

	o.duration.Record(ctx, took.Seconds(), all)
}

// describe sets the attributes of a span once its call has ended. They hold nothing of what
// was asked and answered, unless the job captures that.
func (o *observed) describe(ctx context.Context, span trace.Span, req *llm.Request, res *llm.Response, err error) {
	u := usageOf(res, err)
	cacheWrite := "gen_ai.usage.cache_creation.input_tokens"
	if o.latest {
		cacheWrite = "gen_ai.usage.cache_write.input_tokens"
	}

	span.SetAttributes(attribute.Int64("gen_ai.usage.input_tokens", u.In()), attribute.Int64("gen_ai.usage.output_tokens", u.Output),
		attribute.Int64("gen_ai.usage.cache_read.input_tokens", u.CacheRead), attribute.Int64(cacheWrite, u.CacheWrite+u.CacheWrite1h))

	if o.prices != nil {
		if cost, known := o.prices.Cost(o.Name(), req.Model, u, chargedTier(req, res)); known {
			span.SetAttributes(attribute.Float64("gen_ai.usage.cost", float64(cost)/1e6))
		}
	}

	if res != nil {
		span.SetAttributes(attribute.String("gen_ai.response.model", string(res.Model)), attribute.String("gen_ai.response.id", res.RequestID),
			attribute.StringSlice("gen_ai.response.finish_reasons", []string{string(res.Stop)}))
	}

	if err != nil {
		kind := errorType(err)
		span.SetAttributes(attribute.String("error.type", kind))
		span.SetStatus(codes.Error, kind)
	}

	if telemetry.HoldsContent(ctx) {
		span.SetAttributes(attribute.String("gen_ai.input.messages", messageText("user", renderRequest(req))))
		if res != nil {
			span.SetAttributes(attribute.String("gen_ai.output.messages", messageText("assistant", renderResponse(res))))
		}
	}
}

// maxContent bounds what a span holds of a prompt or an answer, in bytes.
const maxContent = 64 << 10

// messageText returns a message as the conventions write it.
func messageText(role, text string) string {
	type part struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}
	type message struct {
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}
	// A longer text is cut, even within a character.
	if len(text) > maxContent {
		text = text[:maxContent]
	}

	data, err := json.Marshal([]message{{Role: role, Parts: []part{{Type: "text", Content: text}}}})
	if err != nil {
		return ""
	}
	return string(data)
}
