// Package servertest holds a Service and a Fleet that live in memory and do no
// more than keep what they are given. They are for tests of what lies between
// them and their users: edges, commands, workers' connections. It must import
// nothing of the project but the vocabulary and the error kinds.
package servertest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

var _ mapreduce.Service = (*Service)(nil)

// A Service keeps jobs in memory. Their units, one a document, end when Finish
// says so. The zero Service is empty.
type Service struct {
	tenants
	jobs jobs
}

// SubmitJob implements mapreduce.Service.
func (s *Service) SubmitJob(ctx context.Context, _ mapreduce.Principal, spec mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Job, error) {
	if old := s.jobs.earlier(spec); old != nil {
		return old, nil
	}

	var all []*mapreduce.Document
	for doc, err := range docs {
		if err != nil {
			return nil, err
		}
		all = append(all, doc)
	}

	if len(all) == 0 {
		return nil, errs.Field("documents", "there are none")
	}

	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	r := newRecord(len(s.jobs.records), spec, all)
	s.jobs.records = append(s.jobs.records, r)
	s.jobs.recordChange(r, mapreduce.EventSubmitted)
	return copyOf(&r.job), ctx.Err()
}

func copyOf[T any](v *T) *T {
	c := *v
	return &c
}

// Finish completes a running job and its units, whose outputs are the documents.
func (s *Service) Finish(id mapreduce.JobID) (*mapreduce.Job, error) {
	if _, err := s.jobs.changeState(id, mapreduce.Reducing, nil); err != nil {
		return nil, err
	}

	return s.jobs.changeState(id, mapreduce.JobComplete, func(r *record) {
		for _, u := range r.units {
			u.State, u.Attempts, u.Confidence = mapreduce.UnitComplete, 1, 1
			u.Elapsed = time.Duration(u.Index) * time.Millisecond
			u.Output = r.docs[u.Index].Content
		}
		r.job.CompletedUnits = r.job.TotalUnits
		r.job.Coverage.Documents.Mapped = r.job.TotalUnits
	})
}

// Documents returns what was submitted.
func (s *Service) Documents(id mapreduce.JobID) []*mapreduce.Document {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	r, err := s.jobs.find(id)
	if err != nil {
		return nil
	}
	return r.docs
}

// GetJob implements mapreduce.Service.
func (s *Service) GetJob(_ context.Context, _ mapreduce.Principal, id mapreduce.JobID) (*mapreduce.Job, error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	r, err := s.jobs.find(id)
	if err != nil {
		return nil, err
	}
	return copyOf(&r.job), nil
}

// WatchJob implements mapreduce.Service.
func (s *Service) WatchJob(ctx context.Context, _ mapreduce.Principal, id mapreduce.JobID, fn func(*mapreduce.Job) error) error {
	for {
		job, changed, err := s.jobs.withChange(id)
		if err != nil {
			return err
		}
		if err := fn(job); err != nil || !job.State.Running() {
			return err
		}

		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ResumeJob implements mapreduce.Service.
func (s *Service) ResumeJob(_ context.Context, _ mapreduce.Principal, id mapreduce.JobID, r mapreduce.Resume) (*mapreduce.Job, error) {
	return s.jobs.changeState(id, mapreduce.Mapping, func(rec *record) {
		if r.Budget != 0 {
			rec.job.Spec.Budget = r.Budget
		}
	})
}

// MarkCause implements mapreduce.Service. Each cause has units that failed for it.
func (s *Service) MarkCause(_ context.Context, by mapreduce.Principal, id mapreduce.JobID, cause string, state mapreduce.CauseState) (*mapreduce.Job, error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()

	r, err := s.jobs.find(id)
	if err != nil {
		return nil, err
	}
	r.job.Causes = slices.DeleteFunc(slices.Clone(r.job.Causes), func(m mapreduce.CauseMark) bool { return m.Cause == cause })
	if state != mapreduce.CauseOpen {
		r.job.Causes = append(r.job.Causes, mapreduce.CauseMark{Cause: cause, State: state, By: by.Name, Units: 1})
	}
	return copyOf(&r.job), nil
}

// PauseJob implements mapreduce.Service.
func (s *Service) PauseJob(_ context.Context, _ mapreduce.Principal, id mapreduce.JobID) (*mapreduce.Job, error) {
	return s.jobs.changeState(id, mapreduce.JobPaused, nil)
}

// CancelJob implements mapreduce.Service.
func (s *Service) CancelJob(_ context.Context, _ mapreduce.Principal, id mapreduce.JobID) (*mapreduce.Job, error) {
	return s.jobs.changeState(id, mapreduce.JobCancelled, nil)
}

// DeleteJob implements mapreduce.Service.
func (s *Service) DeleteJob(_ context.Context, _ mapreduce.Principal, id mapreduce.JobID) error {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()

	r, err := s.jobs.find(id)
	switch {
	case err != nil:
		return err
	case !r.job.State.Ended():
		return errs.New(errs.Precondition, "job %s has not ended", id)
	}

	s.jobs.records = slices.DeleteFunc(s.jobs.records, func(other *record) bool { return other == r })
	return nil
}

// ListJobs implements mapreduce.Service.
func (s *Service) ListJobs(_ context.Context, _ mapreduce.Principal, q mapreduce.ListJobsQuery) (*mapreduce.JobPage, error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	var chosen []*mapreduce.Job
	for _, r := range slices.Backward(s.jobs.records) {
		if (q.Tenant == "" || q.Tenant == r.job.Spec.Tenant) && (len(q.States) == 0 || slices.Contains(q.States, r.job.State)) {
			chosen = append(chosen, copyOf(&r.job))
		}
	}
	page, next, err := cutPage(chosen, q.PageToken, q.PageSize, 20)
	return &mapreduce.JobPage{Jobs: page, NextPageToken: next}, err
}

// ListUnits implements mapreduce.Service.
func (s *Service) ListUnits(_ context.Context, _ mapreduce.Principal, q mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()

	r, err := s.jobs.find(q.Job)
	if err != nil {
		return nil, err
	}

	var chosen []*mapreduce.Unit
	for _, u := range r.units {
		if len(q.States) > 0 && !slices.Contains(q.States, u.State) {
			continue
		}
		u = copyOf(u)
		if !q.Outputs {
			u.Output = nil
		}
		chosen = append(chosen, u)
	}

	page, next, err := cutPage(chosen, q.PageToken, q.PageSize, 100)
	return &mapreduce.UnitPage{Units: page, NextPageToken: next}, err
}

// Park parks a unit of a job, as an attempt at it would.
func (s *Service) Park(job mapreduce.JobID, unit mapreduce.UnitID, p mapreduce.Parking) error {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	u, err := s.jobs.findUnit(job, unit)
	if err == nil {
		u.Attempts, u.Parking = u.Attempts+1, &p
	}
	return err
}

// WakeUnit implements mapreduce.Service. The answer becomes the unit's output.
func (s *Service) WakeUnit(_ context.Context, _ mapreduce.Principal, job mapreduce.JobID, unit mapreduce.UnitID, handle string, answer []byte) (*mapreduce.Unit, error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()

	u, err := s.jobs.findUnit(job, unit)
	switch {
	case err != nil:
		return nil, err
	case handle == "":
		return nil, errs.Field("handle", "is missing")
	case len(answer) > mapreduce.MaxWakeAnswer:
		return nil, errs.Field("answer", "is too long")
	}

	if u.Parking == nil || u.Parking.Handle != handle {
		return nil, errs.New(errs.NotFound, "unit %s of job %s is not parked under %q", unit, job, handle)
	}

	u.Parking, u.Output = nil, answer
	return copyOf(u), nil
}

// ListEvents implements mapreduce.Service.
func (s *Service) ListEvents(_ context.Context, _ mapreduce.Principal, q mapreduce.ListEventsQuery) (*mapreduce.EventPage, error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()

	r, err := s.jobs.find(q.Job)
	if err != nil {
		return nil, err
	}

	page, next, err := cutPage(r.events, q.PageToken, q.PageSize, 100)
	if err != nil || len(page) == 0 {
		return &mapreduce.EventPage{}, err
	}

	last := page[len(page)-1].ID
	sum := sha256.Sum256([]byte(last))
	return &mapreduce.EventPage{
		Checkpoints:   page,
		Seals:         []*mapreduce.Seal{{Number: 1, Count: len(page), Last: last, Hash: sum[:]}},
		NextPageToken: next,
	}, nil
}

// cutPage returns a page of all, whose token is the index of its first entry.
func cutPage[T any](all []T, token string, size, usual int) (page []T, next string, err error) {
	first := 0
	if token != "" {
		if first, err = strconv.Atoi(token); err != nil || first < 0 || first > len(all) {
			return nil, "", errs.Field("page_token", "%q is not from a page before", token)
		}
	}

	if size == 0 {
		size = usual
	}

	end := min(first+size, len(all))
	if end < len(all) {
		next = strconv.Itoa(end)
	}
	return all[first:end], next, nil
}

// ReadText implements mapreduce.Service.
func (s *Service) ReadText(_ context.Context, _ mapreduce.Principal, job mapreduce.JobID, unit mapreduce.UnitID, document mapreduce.DocumentID, sink func([]byte) error) error {
	for _, doc := range s.Documents(job) {
		if doc.ID == document && mapreduce.MapUnit(doc.ID) == unit {
			return sink(doc.Content)
		}
	}
	return errs.New(errs.NotFound, "unit %q of job %q read no document %q", unit, job, document)
}

// GetResult implements mapreduce.Service. There is one record a document, with a
// citation of all of it.
func (s *Service) GetResult(ctx context.Context, _ mapreduce.Principal, id mapreduce.JobID, partial bool, sink func(*mapreduce.ResultPart) error) error {
	job, err := s.GetJob(ctx, mapreduce.Local(""), id)
	if err != nil {
		return err
	}

	if job.State != mapreduce.JobComplete && !partial {
		return errs.New(errs.Precondition, "job %s is %v, not complete", id, job.State)
	}

	for _, part := range resultParts(job, s.Documents(id)) {
		if err := sink(part); err != nil {
			return err
		}
	}

	return ctx.Err()
}

func resultParts(job *mapreduce.Job, docs []*mapreduce.Document) []*mapreduce.ResultPart {
	all := []*mapreduce.ResultPart{{Job: job}}
	var citations, sources []*mapreduce.ResultPart
	summary := &mapreduce.Summary{Statistics: []byte("{}")}

	for i, doc := range docs {
		if doc.Skip != "" {
			summary.Skipped = append(summary.Skipped, mapreduce.SkippedDocument{Document: doc.ID, Reason: doc.Skip})
			continue
		}

		record, err := json.Marshal(map[string]string{"document": string(doc.ID)})
		if err != nil {
			panic(err) // a string is always good JSON
		}
		all = append(all, &mapreduce.ResultPart{Record: record})

		n := int64(len(doc.Content))
		citations = append(citations, &mapreduce.ResultPart{Citation: &mapreduce.Citation{
			Ref: fmt.Sprintf("REF_%08x", i), Document: doc.ID, Unit: mapreduce.MapUnit(doc.ID),
			End: n, ByteEnd: n, Quote: string(doc.Content), Grade: "exact",
		}})
		sources = append(sources, &mapreduce.ResultPart{Source: &mapreduce.Source{Unit: mapreduce.MapUnit(doc.ID)}})
	}

	return slices.Concat(all, citations, sources, []*mapreduce.ResultPart{{Summary: summary}})
}

// TenantUse implements mapreduce.Service. A tenant uses its jobs, of which it may have ten.
func (s *Service) TenantUse(ctx context.Context, _ mapreduce.Principal, t mapreduce.TenantID) (*mapreduce.TenantUse, error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()
	jobs := mapreduce.QuotaUse{Name: "jobs", Limit: 10}
	for _, r := range s.jobs.records {
		if r.job.Spec.Tenant == t {
			jobs.Used++
		}
	}
	return &mapreduce.TenantUse{Tenant: t, Quotas: []mapreduce.QuotaUse{jobs}, Keep: time.Hour}, ctx.Err()
}

// Caller implements mapreduce.Service.
func (s *Service) Caller(ctx context.Context, by mapreduce.Principal) (*mapreduce.Principal, error) {
	by.Roles = by.AllRoles()
	return &by, ctx.Err()
}

// CheckStore implements mapreduce.Service. A job without documents is wrong.
func (s *Service) CheckStore(ctx context.Context, _ mapreduce.Principal, _ mapreduce.CheckQuery, found func(mapreduce.Finding) error) error {
	s.jobs.mu.Lock()
	jobs := slices.Clone(s.jobs.records)
	s.jobs.mu.Unlock()

	for _, r := range jobs {
		f := mapreduce.Finding{Job: r.job.ID, Key: "jobs", Message: "checked"}
		if len(r.docs) == 0 {
			f.Severity, f.Message = mapreduce.Wrong, "has no documents"
		}
		if err := found(f); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// FleetStatus implements mapreduce.Service. There is a server with one worker, for which the jobs
// wait.
func (s *Service) FleetStatus(ctx context.Context, _ mapreduce.Principal) (*mapreduce.FleetStatus, error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()

	at := time.Unix(1_700_000_000, 0).UTC()
	f := &mapreduce.FleetStatus{
		Node: "n1", Time: at, Servers: []mapreduce.ServerStatus{{Node: "n0", Silent: time.Minute, Dead: true}, {Node: "n1"}},
		Workers: []mapreduce.WorkerStatus{
			{
				Session: "w1", Node: "n1", Known: true, Version: "v1", Tenant: "acme", Slots: 4, Prefetch: 2, Held: 3, Draining: true, Seen: at,
				Offer: mapreduce.Offer{Providers: []string{"rules"}, Tools: []string{"fetch"}, Parsers: []string{"pdf"}}, Refused: 1, Breakers: []string{"openai/m"},
			},
			{Session: "w2", Node: "n0", Embedded: true},
			{Session: "w3", Known: true, Away: true},
		},
		MoreWorkers: 5,
		Models:      []mapreduce.ModelStatus{{Name: "openai/m", BreakerOpen: true, Pause: time.Second, Calls: 7, Rates: mapreduce.Rates{Requests: 1, Input: 2, Output: 3}}},
		Store:       mapreduce.StoreStatus{Answers: true, Full: true, Read: time.Millisecond, Write: 2 * time.Millisecond, Commits: 1, Reads: 2, Conflicts: 3, TooOld: 4, Unknown: 5},
	}

	tenants := make(map[mapreduce.TenantID]int64)
	for _, r := range s.jobs.records {
		tenants[r.job.Spec.Tenant]++
	}
	for _, t := range slices.Sorted(maps.Keys(tenants)) {
		f.Tenants = append(f.Tenants, mapreduce.TenantQueue{Tenant: t, Jobs: tenants[t], Running: 1, Ready: 2, Age: time.Second})
	}
	return f, ctx.Err()
}

// PlanJob implements mapreduce.Service: a map for each document, and a final
// reduce. The plan of an adaptive tree is not exact.
func (s *Service) PlanJob(ctx context.Context, _ mapreduce.Principal, q mapreduce.PlanQuery, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Plan, error) {
	p := &mapreduce.Plan{Strategy: q.Spec.Strategy, Exact: q.Spec.Strategy != mapreduce.StrategyAdaptive}
	final := mapreduce.PlanTask{Unit: mapreduce.FinalUnit, Kind: mapreduce.KindFinal, Level: 1}

	for doc, err := range docs {
		if err != nil {
			return nil, err
		}
		n := int64(len(doc.Content))
		p.Tasks = append(p.Tasks, mapreduce.PlanTask{Unit: mapreduce.MapUnit(doc.ID), Kind: mapreduce.KindMap, Items: 1, Read: n, Written: n})
		final.DependsOn = append(final.DependsOn, mapreduce.MapUnit(doc.ID))
		final.Read += n
	}

	if q.Exact && !p.Exact {
		return nil, errs.New(errs.Precondition, "the plan is not exact")
	}

	p.Levels = []mapreduce.PlanLevel{{Tasks: len(p.Tasks)}, {Level: 1, Tasks: 1, Expected: !p.Exact}}
	p.Estimate = mapreduce.PlanEstimate{Maps: len(p.Tasks), Reduces: 1, Levels: 1, Parallelism: q.Spec.Parallelism, Makespan: time.Second}
	p.Tasks = append(p.Tasks, final)
	p.Warnings = []mapreduce.PlanWarning{{Kind: "test", Message: "there is no model"}}

	return p, ctx.Err()
}
