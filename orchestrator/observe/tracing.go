package observe

import (
	"context"
	"iter"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/telemetry"
)

const (
	claimsASecond = 100 // that are traced, at most
	claimsAtOnce  = 200 // of these, when there were few before
	turnsASecond  = 20
	maxLinks      = 64     // of the span of a turn
	maxOpen       = 50_000 // attempts that are traced at once
)

// A Tracer makes the spans of an orchestrator. Its methods are safe for concurrent use. All
// spans of a job are in one trace: that of the client's call, which is stored with the job,
// so that other orchestrators, and this one after a restart, go on with it. A nil *Tracer
// traces nothing.
//
// A job may last for days, and any process may end at any time. So no span is as long as a
// job or waits for another process: there is one for a submission, one for a claim, one for
// an attempt (made by its worker, or by the orchestrator that gives it up for lost), and one
// for the end. Their ids are derived from the names of job, unit and attempt.
//
// Units that do nothing pass by the ten thousand a second. So only so many claims a second
// are traced, with the attempts, calls and tools below them; whatever asks a model is far
// below that. A traced unit that does nothing takes twice as long as another, so what may
// be traced at once, after a pause, is kept small too.
type Tracer struct {
	tracer trace.Tracer
	node   mapreduce.NodeID
	claims *rate.Limiter // of first attempts
	again  *rate.Limiter // of later ones, which are rarer and tell more
	turns  *rate.Limiter

	mu   sync.Mutex // guards the variable below
	open map[protocol.Held]openAttempt
}

// An openAttempt is an attempt that is traced and has not ended.
type openAttempt struct {
	claim trace.SpanContext
	begun time.Time
	stage string
}

// NewTracer returns a tracer of a node, or nil if t is nil.
func NewTracer(t trace.Tracer, node mapreduce.NodeID) *Tracer {
	if t == nil {
		return nil
	}
	return &Tracer{
		tracer: t, node: node, open: make(map[protocol.Held]openAttempt),
		claims: rate.NewLimiter(claimsASecond, claimsAtOnce), again: rate.NewLimiter(claimsASecond, claimsAtOnce), turns: rate.NewLimiter(turnsASecond, turnsASecond),
	}
}

// ofJob returns what all spans of a job have in common.
func (t *Tracer) ofJob(id mapreduce.JobID, tenant mapreduce.TenantID, more ...attribute.KeyValue) trace.SpanStartEventOption {
	return trace.WithAttributes(append(more,
		attribute.String("coditect.job.id", string(id)), attribute.String("coditect.tenant.id", string(tenant)),
		attribute.String("session.id", string(id)), attribute.String("coditect.node.id", string(t.node)),
		attribute.String(telemetry.KindKey, telemetry.KindChain))...)
}

// under returns a context below the span of a job's submission, as its spec has it. A job
// without one was submitted where nothing was traced: then its trace is its own.
func under(ctx context.Context, id mapreduce.JobID, spec *mapreduce.JobSpec) context.Context {
	var at trace.SpanContext
	if spec != nil {
		at = telemetry.ReadParent(spec.TraceParent)
	}
	if !at.IsValid() {
		at = trace.NewSpanContext(trace.SpanContextConfig{TraceID: telemetry.TraceOf(id), SpanID: telemetry.JobSpan(id), TraceFlags: trace.FlagsSampled})
	}
	return trace.ContextWithRemoteSpanContext(ctx, at)
}

// BeginSubmission begins the span of a job's submission, as of when that began, and has the
// spec say under which span those of the job stand. The job is visible when end is called,
// or it failed. ctx is that of the client's call.
func (t *Tracer) BeginSubmission(ctx context.Context, id mapreduce.JobID, spec *mapreduce.JobSpec, pipeline string, begun time.Time) (end func(error)) {
	spec.TraceParent = telemetry.ParentOf(trace.SpanContextFromContext(ctx))
	if t == nil {
		return func(error) {}
	}

	ctx = telemetry.WithIDs(ctx, telemetry.TraceOf(id), telemetry.JobSpan(id))
	_, span := t.tracer.Start(ctx, "invoke_workflow "+pipeline, trace.WithTimestamp(begun), t.ofJob(id, spec.Tenant,
		attribute.String("gen_ai.operation.name", "invoke_workflow"), attribute.String("gen_ai.workflow.name", pipeline),
		attribute.String("gen_ai.provider.name", spec.Provider), attribute.String("gen_ai.request.model", spec.Model)))
	spec.TraceParent = telemetry.ParentOf(span.SpanContext())
	return func(err error) { finish(span, err) }
}

// finish ends a span. What an error says may be of a document, so its kind must do.
func finish(span trace.Span, err error) {
	if err != nil {
		kind := errs.KindOf(err).String()
		span.SetAttributes(attribute.String("error.type", kind))
		span.SetStatus(codes.Error, kind)
	}
	span.End()
}

// BeginTurn begins the span of a turn, which has links to the attempts that it finishes. Not
// every turn has one. ctx without a span is returned otherwise. The reports are so many as
// count says, and are looked at only if the turn is traced.
func (t *Tracer) BeginTurn(ctx context.Context, id mapreduce.JobID, spec *mapreduce.JobSpec, reports iter.Seq[protocol.Held], count int) (_ context.Context, end func(claimed int, err error)) {
	if t == nil || !t.turns.Allow() {
		return ctx, func(int, error) {}
	}

	ctx = under(ctx, id, spec)
	to := trace.SpanContextFromContext(ctx)
	links := make([]trace.Link, 0, min(count, maxLinks))
	for h := range reports {
		if len(links) == maxLinks {
			break
		}
		links = append(links, trace.Link{SpanContext: to.WithSpanID(telemetry.AttemptSpan(h))})
	}

	ctx, span := t.tracer.Start(ctx, "turn", trace.WithLinks(links...), t.ofJob(id, tenantOf(spec), attribute.Int("coditect.turn.reports", count)))
	return ctx, func(claimed int, err error) {
		span.SetAttributes(attribute.Int("coditect.turn.claimed", claimed))
		finish(span, err)
	}
}

func tenantOf(spec *mapreduce.JobSpec) mapreduce.TenantID {
	if spec == nil {
		return ""
	}
	return spec.Tenant
}

// Claim makes the span of an attempt that is sent to its worker, with a link to the turn
// that claimed it, which ctx has, and returns the traceparent for the worker; "" if the
// attempt is not traced.
func (t *Tracer) Claim(ctx context.Context, a *protocol.Assignment, spec *mapreduce.JobSpec, session mapreduce.SessionID) string {
	if t == nil || a.Attempt == 1 && !t.claims.Allow() || a.Attempt > 1 && !t.again.Allow() {
		return ""
	}

	held := protocol.Held{Job: a.Job, Unit: a.Unit, Attempt: a.Attempt}
	var links []trace.Link
	if turn := trace.SpanContextFromContext(ctx); turn.IsValid() {
		links = append(links, trace.Link{SpanContext: turn})
	}

	below := telemetry.WithIDs(under(ctx, a.Job, spec), trace.TraceID{}, telemetry.ClaimSpan(held))
	_, span := t.tracer.Start(below, "claim "+stageName(a), trace.WithSpanKind(trace.SpanKindProducer), trace.WithLinks(links...), t.ofJob(a.Job, tenantOf(spec),
		attribute.String("coditect.unit.id", string(a.Unit)), attribute.Int("coditect.unit.attempt", a.Attempt),
		attribute.String("coditect.stage", a.Stage), attribute.Int("coditect.level", a.Level), attribute.String("coditect.session.id", string(session))))
	span.End()

	if !span.SpanContext().IsSampled() {
		return ""
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.open) < maxOpen {
		t.open[held] = openAttempt{claim: span.SpanContext(), begun: time.Now(), stage: stageName(a)}
	}
	return telemetry.ParentOf(span.SpanContext())
}

// stageName names the stage of a unit; those that parse documents are of none.
func stageName(a *protocol.Assignment) string {
	if a.Stage == "" {
		return "parse"
	}
	return a.Stage
}

// Ended notes that attempts have ended, and that their workers have said so.
func (t *Tracer) Ended(reports iter.Seq[protocol.Held]) {
	if t == nil {
		return
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	for h := range reports {
		if len(t.open) == 0 {
			return
		}
		delete(t.open, protocol.Held{Job: h.Job, Unit: h.Unit, Attempt: h.Attempt})
	}
}

// Lost makes the spans of attempts whose worker is lost, which it cannot make any more, so
// that what it sent of them before stands under something.
func (t *Tracer) Lost(ctx context.Context, attempts map[protocol.Held]bool) {
	if t == nil {
		return
	}

	for h := range attempts {
		// Attempts are kept without whether they run.
		h.Running = false
		t.mu.Lock()
		open, ok := t.open[h]
		delete(t.open, h)
		t.mu.Unlock()

		if !ok {
			continue
		}

		below := telemetry.WithIDs(trace.ContextWithRemoteSpanContext(ctx, open.claim), trace.TraceID{}, telemetry.AttemptSpan(h))
		_, span := t.tracer.Start(below, "unit "+open.stage, trace.WithTimestamp(open.begun), trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
			attribute.String("coditect.job.id", string(h.Job)), attribute.String("coditect.unit.id", string(h.Unit)), attribute.Int("coditect.unit.attempt", h.Attempt),
			attribute.String("coditect.unit.outcome", "lost"), attribute.String("error.type", "worker_lost")))
		span.SetStatus(codes.Error, "worker_lost")
		span.End()
	}
}

// JobEnded makes the span of a job's end, with a link to its submission, and returns ctx
// with that span, so that what is measured of the end leads to it.
func (t *Tracer) JobEnded(ctx context.Context, job *mapreduce.Job, pipeline string) context.Context {
	if t == nil {
		return ctx
	}

	ctx = under(ctx, job.ID, &job.Spec)
	link := trace.WithLinks(trace.Link{SpanContext: trace.SpanContextFromContext(ctx)})
	ctx, span := t.tracer.Start(telemetry.WithIDs(ctx, trace.TraceID{}, telemetry.EndSpan(job.ID, job.Epoch)), "finish "+pipeline, link, t.ofJob(job.ID, job.Spec.Tenant,
		attribute.String("coditect.job.state", job.State.String()), attribute.Float64("coditect.job.duration", job.Updated.Sub(job.Created).Seconds()),
		attribute.Int64("coditect.job.units", job.TotalUnits), attribute.Int64("coditect.job.failed_units", job.FailedUnits),
		attribute.Int64("coditect.job.tokens.input", job.TotalTokens.In), attribute.Int64("coditect.job.tokens.output", job.TotalTokens.Out),
		attribute.Float64("coditect.job.cost", float64(job.CostMicros)/1e6)))

	if job.State == mapreduce.JobFailed {
		span.SetAttributes(attribute.String("error.type", "job_failed"))
		span.SetStatus(codes.Error, "job_failed")
	}
	span.End()
	return ctx
}
