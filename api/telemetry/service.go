// Package telemetry measures and traces what passes an interface: its types stand
// before a service, call it, and report to a meter and a tracer. They report no contents
// of documents, prompts or answers.
package telemetry

import (
	"context"
	"iter"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// CallDuration is the name of the histogram of how long calls of a service take, in
// seconds. It has the attributes "method", and of calls that fail "error.type", an
// errs.Kind.
const CallDuration = "coditect.service.call.duration"

var _ mapreduce.Service = (*Service)(nil)

// A Service passes each call on to another service, times it and traces it. A span has
// the attributes of CallDuration, and "coditect.job.id", "coditect.tenant.id" and
// "coditect.principal.name" as far as these are known.
type Service struct {
	next     mapreduce.Service
	tracer   trace.Tracer
	duration metric.Float64Histogram
}

// NewService returns a service that reports the calls of next to m and t. Either may be
// nil.
func NewService(next mapreduce.Service, m metric.Meter, t trace.Tracer) (*Service, error) {
	if m == nil {
		m = metricnoop.Meter{}
	}
	if t == nil {
		t = tracenoop.Tracer{}
	}

	duration, err := m.Float64Histogram(CallDuration, metric.WithUnit("s"), metric.WithDescription("How long calls of the service take."))
	if err != nil {
		return nil, errs.New(errs.Internal, "instrument %s: %w", CallDuration, err)
	}
	return &Service{next: next, tracer: t, duration: duration}, nil
}

// observe makes a call of a method. id is the job that it is about, or empty.
func (s *Service) observe(ctx context.Context, method string, by mapreduce.Principal, id mapreduce.JobID, call func(context.Context) error) {
	ctx, span := s.tracer.Start(ctx, "Service/"+method, trace.WithAttributes(
		attribute.String("method", method), attribute.String("coditect.tenant.id", string(by.Tenant)),
		attribute.String("coditect.principal.name", by.Name),
	))
	defer span.End()
	if id != "" {
		span.SetAttributes(attribute.String("coditect.job.id", string(id)))
	}

	begun := time.Now()
	err := call(ctx)
	about := []attribute.KeyValue{attribute.String("method", method)}
	if err != nil {
		failed := attribute.String("error.type", errs.KindOf(err).String())
		about = append(about, failed)
		span.SetAttributes(failed)
		span.SetStatus(codes.Error, errs.KindOf(err).String())
	}

	s.duration.Record(ctx, time.Since(begun).Seconds(), metric.WithAttributes(about...))
}

// SubmitJob implements mapreduce.Service.
func (s *Service) SubmitJob(ctx context.Context, by mapreduce.Principal, spec mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (job *mapreduce.Job, err error) {
	s.observe(ctx, "SubmitJob", by, "", func(ctx context.Context) error {
		job, err = s.next.SubmitJob(ctx, by, spec, docs)
		return err
	})
	return job, err
}

// PlanJob implements mapreduce.Service.
func (s *Service) PlanJob(ctx context.Context, by mapreduce.Principal, q mapreduce.PlanQuery, docs iter.Seq2[*mapreduce.Document, error]) (plan *mapreduce.Plan, err error) {
	s.observe(ctx, "PlanJob", by, "", func(ctx context.Context) error {
		plan, err = s.next.PlanJob(ctx, by, q, docs)
		return err
	})
	return plan, err
}

// GetJob implements mapreduce.Service.
func (s *Service) GetJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID) (job *mapreduce.Job, err error) {
	s.observe(ctx, "GetJob", by, id, func(ctx context.Context) error {
		job, err = s.next.GetJob(ctx, by, id)
		return err
	})
	return job, err
}

// ListJobs implements mapreduce.Service.
func (s *Service) ListJobs(ctx context.Context, by mapreduce.Principal, q mapreduce.ListJobsQuery) (page *mapreduce.JobPage, err error) {
	s.observe(ctx, "ListJobs", by, "", func(ctx context.Context) error {
		page, err = s.next.ListJobs(ctx, by, q)
		return err
	})
	return page, err
}

// WatchJob implements mapreduce.Service.
func (s *Service) WatchJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID, fn func(*mapreduce.Job) error) (err error) {
	// It lasts as long as the job, for which no span can stay open.
	return s.next.WatchJob(ctx, by, id, fn)
}

// ResumeJob implements mapreduce.Service.
func (s *Service) ResumeJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID, r mapreduce.Resume) (job *mapreduce.Job, err error) {
	s.observe(ctx, "ResumeJob", by, id, func(ctx context.Context) error {
		job, err = s.next.ResumeJob(ctx, by, id, r)
		return err
	})
	return job, err
}

// MarkCause implements mapreduce.Service.
func (s *Service) MarkCause(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID, cause string, state mapreduce.CauseState) (job *mapreduce.Job, err error) {
	s.observe(ctx, "MarkCause", by, id, func(ctx context.Context) error {
		job, err = s.next.MarkCause(ctx, by, id, cause, state)
		return err
	})
	return job, err
}

// PauseJob implements mapreduce.Service.
func (s *Service) PauseJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID) (job *mapreduce.Job, err error) {
	s.observe(ctx, "PauseJob", by, id, func(ctx context.Context) error {
		job, err = s.next.PauseJob(ctx, by, id)
		return err
	})
	return job, err
}

// CancelJob implements mapreduce.Service.
func (s *Service) CancelJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID) (job *mapreduce.Job, err error) {
	s.observe(ctx, "CancelJob", by, id, func(ctx context.Context) error {
		job, err = s.next.CancelJob(ctx, by, id)
		return err
	})
	return job, err
}

// DeleteJob implements mapreduce.Service.
func (s *Service) DeleteJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID) (err error) {
	s.observe(ctx, "DeleteJob", by, id, func(ctx context.Context) error {
		err = s.next.DeleteJob(ctx, by, id)
		return err
	})
	return err
}

// ListUnits implements mapreduce.Service.
func (s *Service) ListUnits(ctx context.Context, by mapreduce.Principal, q mapreduce.ListUnitsQuery) (page *mapreduce.UnitPage, err error) {
	s.observe(ctx, "ListUnits", by, q.Job, func(ctx context.Context) error {
		page, err = s.next.ListUnits(ctx, by, q)
		return err
	})
	return page, err
}

// WakeUnit implements mapreduce.Service.
func (s *Service) WakeUnit(ctx context.Context, by mapreduce.Principal, job mapreduce.JobID, unit mapreduce.UnitID, handle string, answer []byte) (woken *mapreduce.Unit, err error) {
	s.observe(ctx, "WakeUnit", by, job, func(ctx context.Context) error {
		woken, err = s.next.WakeUnit(ctx, by, job, unit, handle, answer)
		return err
	})
	return woken, err
}

// GetResult implements mapreduce.Service.
func (s *Service) GetResult(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID, partial bool, sink func(*mapreduce.ResultPart) error) (err error) {
	s.observe(ctx, "GetResult", by, id, func(ctx context.Context) error {
		err = s.next.GetResult(ctx, by, id, partial, sink)
		return err
	})
	return err
}

// ReadText implements mapreduce.Service.
func (s *Service) ReadText(ctx context.Context, by mapreduce.Principal, job mapreduce.JobID, unit mapreduce.UnitID, document mapreduce.DocumentID, sink func([]byte) error) (err error) {
	s.observe(ctx, "ReadText", by, job, func(ctx context.Context) error {
		err = s.next.ReadText(ctx, by, job, unit, document, sink)
		return err
	})
	return err
}

// DecideValue implements mapreduce.Service.
func (s *Service) DecideValue(ctx context.Context, by mapreduce.Principal, d mapreduce.NewDecision) (kept *mapreduce.Decision, err error) {
	s.observe(ctx, "DecideValue", by, d.Job, func(ctx context.Context) error {
		kept, err = s.next.DecideValue(ctx, by, d)
		return err
	})
	return kept, err
}

// ListDecisions implements mapreduce.Service.
func (s *Service) ListDecisions(ctx context.Context, by mapreduce.Principal, q mapreduce.ListDecisionsQuery) (page *mapreduce.DecisionPage, err error) {
	s.observe(ctx, "ListDecisions", by, q.Job, func(ctx context.Context) error {
		page, err = s.next.ListDecisions(ctx, by, q)
		return err
	})
	return page, err
}

// ListWaiting implements mapreduce.Service.
func (s *Service) ListWaiting(ctx context.Context, by mapreduce.Principal, q mapreduce.ListWaitingQuery) (page *mapreduce.WaitingPage, err error) {
	s.observe(ctx, "ListWaiting", by, q.Job, func(ctx context.Context) error {
		page, err = s.next.ListWaiting(ctx, by, q)
		return err
	})
	return page, err
}

// ClaimRecords implements mapreduce.Service.
func (s *Service) ClaimRecords(ctx context.Context, by mapreduce.Principal, c mapreduce.Claim) (all []mapreduce.RecordClaim, err error) {
	s.observe(ctx, "ClaimRecords", by, c.Job, func(ctx context.Context) error {
		all, err = s.next.ClaimRecords(ctx, by, c)
		return err
	})
	return all, err
}

// ListEvents implements mapreduce.Service.
func (s *Service) ListEvents(ctx context.Context, by mapreduce.Principal, q mapreduce.ListEventsQuery) (page *mapreduce.EventPage, err error) {
	s.observe(ctx, "ListEvents", by, q.Job, func(ctx context.Context) error {
		page, err = s.next.ListEvents(ctx, by, q)
		return err
	})
	return page, err
}

// AnswerCache implements mapreduce.Service.
func (s *Service) AnswerCache(ctx context.Context, by mapreduce.Principal, t mapreduce.TenantID, forget bool) (cache *mapreduce.AnswerCache, err error) {
	s.observe(ctx, "AnswerCache", by, "", func(ctx context.Context) error {
		cache, err = s.next.AnswerCache(ctx, by, t, forget)
		return err
	})
	return cache, err
}

// TenantUse implements mapreduce.Service.
func (s *Service) TenantUse(ctx context.Context, by mapreduce.Principal, t mapreduce.TenantID) (use *mapreduce.TenantUse, err error) {
	s.observe(ctx, "TenantUse", by, "", func(ctx context.Context) error {
		use, err = s.next.TenantUse(ctx, by, t)
		return err
	})
	return use, err
}

// SumCosts implements mapreduce.Service.
func (s *Service) SumCosts(ctx context.Context, by mapreduce.Principal, q mapreduce.CostQuery) (sums *mapreduce.CostSums, err error) {
	s.observe(ctx, "SumCosts", by, "", func(ctx context.Context) error {
		sums, err = s.next.SumCosts(ctx, by, q)
		return err
	})
	return sums, err
}

// ListCertificates implements mapreduce.Service.
func (s *Service) ListCertificates(ctx context.Context, by mapreduce.Principal, t mapreduce.TenantID) (all []mapreduce.Certificate, err error) {
	s.observe(ctx, "ListCertificates", by, "", func(ctx context.Context) error {
		all, err = s.next.ListCertificates(ctx, by, t)
		return err
	})
	return all, err
}

// DropCertificate implements mapreduce.Service.
func (s *Service) DropCertificate(ctx context.Context, by mapreduce.Principal, t mapreduce.TenantID, id mapreduce.CertificateID) (err error) {
	s.observe(ctx, "DropCertificate", by, "", func(ctx context.Context) error {
		err = s.next.DropCertificate(ctx, by, t, id)
		return err
	})
	return err
}

// Caller implements mapreduce.Service.
func (s *Service) Caller(ctx context.Context, by mapreduce.Principal) (caller *mapreduce.Principal, err error) {
	s.observe(ctx, "Caller", by, "", func(ctx context.Context) error {
		caller, err = s.next.Caller(ctx, by)
		return err
	})
	return caller, err
}

// CheckStore implements mapreduce.Service.
func (s *Service) CheckStore(ctx context.Context, by mapreduce.Principal, q mapreduce.CheckQuery, found func(mapreduce.Finding) error) (err error) {
	s.observe(ctx, "CheckStore", by, "", func(ctx context.Context) error {
		err = s.next.CheckStore(ctx, by, q, found)
		return err
	})
	return err
}

// FleetStatus implements mapreduce.Service.
func (s *Service) FleetStatus(ctx context.Context, by mapreduce.Principal) (fleet *mapreduce.FleetStatus, err error) {
	s.observe(ctx, "FleetStatus", by, "", func(ctx context.Context) error {
		fleet, err = s.next.FleetStatus(ctx, by)
		return err
	})
	return fleet, err
}
