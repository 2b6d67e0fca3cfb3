package access

import (
	"context"
	"iter"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// It embeds nothing: a new method of the interface has no rule, and does not build.
var _ mapreduce.Service = (*Service)(nil)

// A Service lets through to another service what its callers may do.
type Service struct {
	next  mapreduce.Service
	rules Rules
}

// NewService returns a service that keeps the rules before next.
func NewService(next mapreduce.Service, rules Rules) *Service {
	return &Service{next: next, rules: rules}
}

// SubmitJob implements mapreduce.Service. The job is of the caller's tenant.
func (s *Service) SubmitJob(ctx context.Context, by mapreduce.Principal, spec mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Job, error) {
	var err error
	if spec.Tenant, err = s.rules.TenantFor(ctx, by, mapreduce.Submitter, spec.Tenant); err != nil {
		return nil, err
	}
	if spec.Replay != "" {
		if err := s.rules.ownJob(ctx, by, spec.Replay); err != nil {
			return nil, err
		}
	}
	return s.next.SubmitJob(ctx, by, spec, docs)
}

// PlanJob implements mapreduce.Service.
func (s *Service) PlanJob(ctx context.Context, by mapreduce.Principal, q mapreduce.PlanQuery, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Plan, error) {
	var err error
	if q.Spec.Tenant, err = s.rules.TenantFor(ctx, by, mapreduce.Submitter, q.Spec.Tenant); err != nil {
		return nil, err
	}
	return s.next.PlanJob(ctx, by, q, docs)
}

// GetJob implements mapreduce.Service.
func (s *Service) GetJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID) (*mapreduce.Job, error) {
	if err := s.rules.UseJob(ctx, by, mapreduce.Observer, id); err != nil {
		return nil, err
	}
	job, err := s.next.GetJob(ctx, by, id)
	if err != nil || by.Has(mapreduce.Viewer) {
		return job, err
	}
	return job.WithoutContents(), nil
}

// ListJobs implements mapreduce.Service.
func (s *Service) ListJobs(ctx context.Context, by mapreduce.Principal, q mapreduce.ListJobsQuery) (*mapreduce.JobPage, error) {
	var err error
	if q.Tenant, err = s.rules.ListedTenant(ctx, by, q.Tenant); err != nil {
		return nil, err
	}

	page, err := s.next.ListJobs(ctx, by, q)
	if err != nil || by.Has(mapreduce.Viewer) {
		return page, err
	}
	seen := *page
	seen.Jobs = withoutContents(page.Jobs)
	return &seen, nil
}

// withoutContents returns copies for an observer.
func withoutContents[T interface{ WithoutContents() T }](all []T) []T {
	seen := make([]T, len(all))
	for i, one := range all {
		seen[i] = one.WithoutContents()
	}
	return seen
}

// WatchJob implements mapreduce.Service.
func (s *Service) WatchJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID, fn func(*mapreduce.Job) error) error {
	if err := s.rules.UseJob(ctx, by, mapreduce.Observer, id); err != nil {
		return err
	}
	if by.Has(mapreduce.Viewer) {
		return s.next.WatchJob(ctx, by, id, fn)
	}
	return s.next.WatchJob(ctx, by, id, func(job *mapreduce.Job) error { return fn(job.WithoutContents()) })
}

// ResumeJob implements mapreduce.Service.
func (s *Service) ResumeJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID, r mapreduce.Resume) (*mapreduce.Job, error) {
	if err := s.rules.UseJob(ctx, by, mapreduce.Operator, id); err != nil {
		return nil, err
	}
	return s.next.ResumeJob(ctx, by, id, r)
}

// MarkCause implements mapreduce.Service.
func (s *Service) MarkCause(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID, cause string, state mapreduce.CauseState) (*mapreduce.Job, error) {
	if err := s.rules.UseJob(ctx, by, mapreduce.Operator, id); err != nil {
		return nil, err
	}
	return s.next.MarkCause(ctx, by, id, cause, state)
}

// PauseJob implements mapreduce.Service.
func (s *Service) PauseJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID) (*mapreduce.Job, error) {
	if err := s.rules.UseJob(ctx, by, mapreduce.Operator, id); err != nil {
		return nil, err
	}
	return s.next.PauseJob(ctx, by, id)
}

// CancelJob implements mapreduce.Service.
func (s *Service) CancelJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID) (*mapreduce.Job, error) {
	if err := s.rules.UseJob(ctx, by, mapreduce.Operator, id); err != nil {
		return nil, err
	}
	return s.next.CancelJob(ctx, by, id)
}

// DeleteJob implements mapreduce.Service.
func (s *Service) DeleteJob(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID) error {
	if err := s.rules.UseJob(ctx, by, mapreduce.Operator, id); err != nil {
		return err
	}
	return s.next.DeleteJob(ctx, by, id)
}

// ListUnits implements mapreduce.Service.
func (s *Service) ListUnits(ctx context.Context, by mapreduce.Principal, q mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error) {
	if err := s.rules.UseJob(ctx, by, mapreduce.Observer, q.Job); err != nil {
		return nil, err
	}
	if by.Has(mapreduce.Viewer) {
		return s.next.ListUnits(ctx, by, q)
	}

	q.Outputs = false
	page, err := s.next.ListUnits(ctx, by, q)
	if err != nil {
		return nil, err
	}
	seen := *page
	seen.Units = withoutContents(page.Units)
	return &seen, nil
}

// WakeUnit implements mapreduce.Service.
func (s *Service) WakeUnit(ctx context.Context, by mapreduce.Principal, job mapreduce.JobID, unit mapreduce.UnitID, handle string, answer []byte) (*mapreduce.Unit, error) {
	if err := s.rules.UseJob(ctx, by, mapreduce.Operator, job); err != nil {
		return nil, err
	}
	return s.next.WakeUnit(ctx, by, job, unit, handle, answer)
}

// ReadText implements mapreduce.Service.
func (s *Service) ReadText(ctx context.Context, by mapreduce.Principal, job mapreduce.JobID, unit mapreduce.UnitID, document mapreduce.DocumentID, sink func([]byte) error) error {
	if err := s.rules.UseJob(ctx, by, mapreduce.Viewer, job); err != nil {
		return err
	}
	return s.next.ReadText(ctx, by, job, unit, document, sink)
}

// GetResult implements mapreduce.Service.
func (s *Service) GetResult(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID, partial bool, sink func(*mapreduce.ResultPart) error) error {
	if err := s.rules.UseJob(ctx, by, mapreduce.Viewer, id); err != nil {
		return err
	}
	return s.next.GetResult(ctx, by, id, partial, sink)
}

// DecideValue implements mapreduce.Service.
func (s *Service) DecideValue(ctx context.Context, by mapreduce.Principal, d mapreduce.NewDecision) (*mapreduce.Decision, error) {
	if err := s.rules.UseJob(ctx, by, mapreduce.Reviewer, d.Job); err != nil {
		return nil, err
	}
	return s.next.DecideValue(ctx, by, d)
}

// ListDecisions implements mapreduce.Service.
func (s *Service) ListDecisions(ctx context.Context, by mapreduce.Principal, q mapreduce.ListDecisionsQuery) (*mapreduce.DecisionPage, error) {
	if err := s.rules.UseJob(ctx, by, mapreduce.Viewer, q.Job); err != nil {
		return nil, err
	}
	return s.next.ListDecisions(ctx, by, q)
}

// ListWaiting implements mapreduce.Service.
func (s *Service) ListWaiting(ctx context.Context, by mapreduce.Principal, q mapreduce.ListWaitingQuery) (*mapreduce.WaitingPage, error) {
	if err := s.rules.UseJob(ctx, by, mapreduce.Viewer, q.Job); err != nil {
		return nil, err
	}
	return s.next.ListWaiting(ctx, by, q)
}

// ClaimRecords implements mapreduce.Service.
func (s *Service) ClaimRecords(ctx context.Context, by mapreduce.Principal, c mapreduce.Claim) ([]mapreduce.RecordClaim, error) {
	if err := s.rules.UseJob(ctx, by, mapreduce.Reviewer, c.Job); err != nil {
		return nil, err
	}
	return s.next.ClaimRecords(ctx, by, c)
}

// ListEvents implements mapreduce.Service. Records as they are stored are for viewers.
func (s *Service) ListEvents(ctx context.Context, by mapreduce.Principal, q mapreduce.ListEventsQuery) (*mapreduce.EventPage, error) {
	role := mapreduce.Observer
	if q.Proofs {
		role = mapreduce.Viewer
	}

	var err error
	if q.Job == "" {
		q.Tenant, err = s.rules.TenantFor(ctx, by, role, q.Tenant)
	} else {
		err = s.rules.UseJob(ctx, by, role, q.Job)
	}
	if err != nil {
		return nil, err
	}

	page, err := s.next.ListEvents(ctx, by, q)
	if err != nil || by.Has(mapreduce.Viewer) {
		return page, err
	}
	seen := *page
	seen.Checkpoints = withoutContents(page.Checkpoints)
	return &seen, nil
}

// AnswerCache implements mapreduce.Service.
func (s *Service) AnswerCache(ctx context.Context, by mapreduce.Principal, t mapreduce.TenantID, forget bool) (*mapreduce.AnswerCache, error) {
	t, err := s.rules.TenantFor(ctx, by, mapreduce.Operator, t)
	if err != nil {
		return nil, err
	}
	return s.next.AnswerCache(ctx, by, t, forget)
}

// TenantUse implements mapreduce.Service.
func (s *Service) TenantUse(ctx context.Context, by mapreduce.Principal, t mapreduce.TenantID) (*mapreduce.TenantUse, error) {
	t, err := s.rules.TenantFor(ctx, by, mapreduce.Observer, t)
	if err != nil {
		return nil, err
	}
	return s.next.TenantUse(ctx, by, t)
}

// SumCosts implements mapreduce.Service.
func (s *Service) SumCosts(ctx context.Context, by mapreduce.Principal, q mapreduce.CostQuery) (*mapreduce.CostSums, error) {
	var err error
	if q.Tenant, err = s.rules.ListedTenant(ctx, by, q.Tenant); err != nil {
		return nil, err
	}
	return s.next.SumCosts(ctx, by, q)
}

// ListCertificates implements mapreduce.Service. A certificate names fields of the schema.
func (s *Service) ListCertificates(ctx context.Context, by mapreduce.Principal, t mapreduce.TenantID) ([]mapreduce.Certificate, error) {
	t, err := s.rules.TenantFor(ctx, by, mapreduce.Viewer, t)
	if err != nil {
		return nil, err
	}
	return s.next.ListCertificates(ctx, by, t)
}

// DropCertificate implements mapreduce.Service.
func (s *Service) DropCertificate(ctx context.Context, by mapreduce.Principal, t mapreduce.TenantID, id mapreduce.CertificateID) error {
	t, err := s.rules.TenantFor(ctx, by, mapreduce.Operator, t)
	if err != nil {
		return err
	}
	return s.next.DropCertificate(ctx, by, t, id)
}

// Caller implements mapreduce.Service. Whoever is known may ask, so no quota counts it.
func (s *Service) Caller(ctx context.Context, by mapreduce.Principal) (*mapreduce.Principal, error) {
	return s.next.Caller(ctx, by)
}

// CheckStore implements mapreduce.Service. The store is that of all tenants.
func (s *Service) CheckStore(ctx context.Context, by mapreduce.Principal, q mapreduce.CheckQuery, found func(mapreduce.Finding) error) error {
	if err := needs(by, mapreduce.Admin); err != nil {
		return err
	}
	return s.next.CheckStore(ctx, by, q, found)
}

// FleetStatus implements mapreduce.Service. The fleet is that of all tenants.
func (s *Service) FleetStatus(ctx context.Context, by mapreduce.Principal) (*mapreduce.FleetStatus, error) {
	if err := needs(by, mapreduce.Admin); err != nil {
		return nil, err
	}
	return s.next.FleetStatus(ctx, by)
}
