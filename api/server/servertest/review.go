package servertest

import (
	"context"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
)

// DecideValue implements mapreduce.Service. Decisions are kept in order, a second after each other; a
// marked passage is not looked for.
func (s *Service) DecideValue(_ context.Context, by mapreduce.Principal, d mapreduce.NewDecision) (*mapreduce.Decision, error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()

	r, err := s.jobs.find(d.Job)
	if err != nil {
		return nil, err
	}
	if r.job.State != mapreduce.JobComplete {
		return nil, errs.New(errs.Precondition, "job %s is %v, not complete", d.Job, r.job.State)
	}

	kept := &mapreduce.Decision{
		Record: d.Record, Field: d.Field, Number: 1, Request: d.Request, Time: epoch.Add(time.Duration(len(r.decisions)) * time.Second), By: by.Name,
		Verdict: d.Verdict, Value: d.Value, Note: d.Note, Model: d.Model,
	}
	if p := d.Passage; p != nil {
		kept.Passage = &mapreduce.Citation{Document: p.Document, Unit: p.Unit, ByteStart: p.ByteStart, ByteEnd: p.ByteEnd}
	}
	for _, had := range r.decisions {
		if had.Record != d.Record || had.Field != d.Field {
			continue
		}
		if kept.Number++; had.Request == d.Request && d.Request != "" {
			return copyOf(had), nil
		}
	}

	r.decisions = append(r.decisions, kept)
	return copyOf(kept), nil
}

// ListDecisions implements mapreduce.Service, in the order in which they were taken.
func (s *Service) ListDecisions(_ context.Context, _ mapreduce.Principal, q mapreduce.ListDecisionsQuery) (*mapreduce.DecisionPage, error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()

	r, err := s.jobs.find(q.Job)
	if err != nil {
		return nil, err
	}

	var chosen []*mapreduce.Decision
	for _, d := range r.decisions {
		if q.Record == "" || d.Record == q.Record {
			chosen = append(chosen, d)
		}
	}
	page, next, err := cutPage(chosen, q.PageToken, q.PageSize, 100)
	return &mapreduce.DecisionPage{Decisions: page, NextPageToken: next}, err
}

// ListWaiting implements mapreduce.Service. No unit of this service waits for a person.
func (s *Service) ListWaiting(_ context.Context, _ mapreduce.Principal, q mapreduce.ListWaitingQuery) (*mapreduce.WaitingPage, error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()

	if _, err := s.jobs.find(q.Job); err != nil {
		return nil, err
	}
	return &mapreduce.WaitingPage{}, nil
}

// ClaimRecords implements mapreduce.Service. Claims of this service never lapse.
func (s *Service) ClaimRecords(_ context.Context, by mapreduce.Principal, c mapreduce.Claim) ([]mapreduce.RecordClaim, error) {
	s.jobs.mu.Lock()
	defer s.jobs.mu.Unlock()

	r, err := s.jobs.find(c.Job)
	if err != nil {
		return nil, err
	}
	for _, id := range c.Records {
		i := slices.IndexFunc(r.claims, func(had mapreduce.RecordClaim) bool { return had.Record == id })
		switch {
		case i < 0 && c.Time > 0:
			r.claims = append(r.claims, mapreduce.RecordClaim{Record: id, By: by.Name, End: epoch.Add(c.Time)})
		case i >= 0 && c.Time == 0 && r.claims[i].By == by.Name:
			r.claims = slices.Delete(r.claims, i, i+1)
		}
	}

	all := slices.Clone(r.claims)
	for i := range all {
		all[i].Own = all[i].By == by.Name
	}
	return all, nil
}
