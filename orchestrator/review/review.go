// Package review is where people decide about values of results: it finds the value, checks that what
// was decided fits it and the schema and that a marked passage stands in its document, and has it kept.
//
// It imports the records of store/jobs, and of the workers' side only pure packages.
package review

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/schema"
	"github.com/coditect/mapreduce/internal/outcome/review"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Sources are where a Reviewer finds what it decides about.
type Sources struct {
	// StoredAt streams the result of a complete job as it is stored, without decisions, from a record or some
	// before it on.
	StoredAt func(ctx context.Context, id mapreduce.JobID, record mapreduce.RecordID, sink func(*mapreduce.ResultPart) error) error
	// Schema returns the schema of the records of a job.
	Schema func(ctx context.Context, id mapreduce.JobID) (*schema.Schema, error)
	// Text streams the text of a document that a unit read.
	Text func(ctx context.Context, by mapreduce.Principal, id mapreduce.JobID, unit mapreduce.UnitID, document mapreduce.DocumentID, sink func([]byte) error) error
	// Specs finds what jobs are to do.
	Specs *jobspec.Finder
	// Verify checks an output of a unit, as dispatch.Checker does.
	Verify func(ctx context.Context, id mapreduce.JobID, u *records.Unit, data []byte) (why, err error)
	// Enqueue tells the scheduler of units that go on.
	Enqueue func(id mapreduce.JobID, units []records.Candidate)
}

// A Reviewer takes decisions about values of results. Its methods are those of mapreduce.Service of the
// same names, believe their callers, and are safe for concurrent use.
type Reviewer struct {
	jobs    *jobs.Jobs
	signals *cluster.Signals
	sources Sources
}

// New returns a reviewer. All of s must be set.
func New(j *jobs.Jobs, signals *cluster.Signals, s Sources) *Reviewer {
	return &Reviewer{jobs: j, signals: signals, sources: s}
}

// DecideValue keeps a decision about a value of a complete job's result.
func (r *Reviewer) DecideValue(ctx context.Context, by mapreduce.Principal, d mapreduce.NewDecision) (*mapreduce.Decision, error) {
	ctx = mapreduce.WithActor(ctx, by)
	_, _, valid := d.Record.Parse()
	switch {
	case !valid:
		return nil, errs.Field("record_id", "%q is not the id of a record: a result has them beside its records", string(d.Record))
	case len(d.Note) > mapreduce.MaxReviewNote || !utf8.ValidString(d.Note):
		return nil, errs.Field("note", "must be text of at most %d bytes", mapreduce.MaxReviewNote)
	}

	ctl, err := r.jobs.View.Control(ctx, d.Job)
	if err != nil {
		return nil, err
	}
	if ctl.State != mapreduce.JobComplete {
		w, err := r.findWaiting(ctx, d.Job, d.Record)
		if err != nil {
			return nil, err
		}
		if w == nil || ctl.State.Ended() {
			return r.repeated(ctx, &d, ctl.State)
		}
		return r.decideWaiting(ctx, by, w, &d)
	}

	taken, err := r.settle(ctx, by, &d)
	if err != nil {
		return nil, err
	}
	kept, err := r.jobs.Review.Decide(ctx, d.Job, ctl.Epoch, storedDecision(by, taken))
	if err != nil {
		return nil, err
	}
	r.signals.NotifyWatchers(d.Job)
	return decisionOf(kept), nil
}

// repeated returns the decision that a call has taken already; an error if it has not, as nobody waits for
// it.
func (r *Reviewer) repeated(ctx context.Context, d *mapreduce.NewDecision, state mapreduce.JobState) (*mapreduce.Decision, error) {
	for had, err := range Decisions(ctx, r.jobs, d.Job, d.Record) {
		if err != nil {
			return nil, err
		}
		if d.Request != "" && had.Request == d.Request && had.Field == d.Field {
			return had, nil
		}
	}

	if state.Ended() {
		return nil, records.WrongState("review", d.Job, state)
	}
	return nil, &errs.Error{
		Kind: errs.Precondition, Reason: "JOB_STATE",
		Message: fmt.Sprintf("nobody can decide about record %s now: its unit waits for nobody, and job %s is %s; a result is reviewed when its job is complete", d.Record, d.Job, state),
	}
}

// settle checks a decision, and returns it as it is to be kept.
func (r *Reviewer) settle(ctx context.Context, by mapreduce.Principal, d *mapreduce.NewDecision) (*mapreduce.Decision, error) {
	found, err := r.find(ctx, d.Job, d.Record)
	if err != nil {
		return nil, err
	}
	s, err := r.sources.Schema(ctx, d.Job)
	if err != nil {
		return nil, err
	}

	// Decisions about other values of the record are a part of what the value has to fit.
	var others []*mapreduce.Decision
	for o, err := range Decisions(ctx, r.jobs, d.Job, d.Record) {
		if err != nil {
			return nil, err
		}
		others = append(others, o)
	}

	if err := checkWithdrawal(others, d); err != nil {
		return nil, err
	}

	out := &mapreduce.Decision{Record: d.Record, Field: d.Field, Request: d.Request, Verdict: d.Verdict, Note: d.Note, By: by.Name}
	if out.Value, out.Model, err = review.Settle(s, found.record, others, d); err != nil {
		return nil, err
	}
	if d.Passage != nil {
		out.Passage, err = r.cite(ctx, by, d, found)
	}
	return out, err
}

// checkWithdrawal refuses to withdraw what the output of a unit has already: other units have gone on from
// there.
func checkWithdrawal(all []*mapreduce.Decision, d *mapreduce.NewDecision) error {
	if d.Verdict != mapreduce.ReviewWithdraw {
		return nil
	}

	waited := false
	for _, o := range all {
		if o.Field == d.Field {
			waited = o.Waited
		}
	}
	if waited {
		return errs.New(errs.Precondition, "%s of record %s was decided while its unit waited, and all that followed has it: give the right value instead", d.Field, d.Record)
	}
	return nil
}

// A foundRecord is a record of a stored result, with its citations.
type foundRecord struct {
	record    []byte
	citations []*mapreduce.Citation
}

// sources returns the documents of the record.
func (f *foundRecord) sources() (documents []mapreduce.DocumentID) {
	var about struct {
		Sources []mapreduce.DocumentID `json:"_sources"`
	}
	if json.Unmarshal(f.record, &about) == nil {
		documents = about.Sources
	}
	for _, c := range f.citations {
		documents = append(documents, c.Document)
	}
	return documents
}

// of returns a citation of a document, nil if the record has none.
func (f *foundRecord) of(document mapreduce.DocumentID) *mapreduce.Citation {
	i := slices.IndexFunc(f.citations, func(c *mapreduce.Citation) bool { return c.Document == document })
	if i < 0 {
		return nil
	}
	return f.citations[i]
}

// errFound ends the reading of a result, or of a text, of which the rest is of no interest.
var errFound = errors.New("found")

// find returns a record of the stored result of a job.
func (r *Reviewer) find(ctx context.Context, id mapreduce.JobID, record mapreduce.RecordID) (*foundRecord, error) {
	found := &foundRecord{}
	err := r.sources.StoredAt(ctx, id, record, func(p *mapreduce.ResultPart) error {
		switch {
		case p.Record != nil && found.record != nil:
			return errFound
		case p.Record != nil && p.RecordID == record:
			found.record = p.Record
		case p.Citation != nil && found.record != nil:
			found.citations = append(found.citations, p.Citation)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return nil, err
	}

	if found.record == nil {
		return nil, &errs.Error{
			Kind: errs.NotFound, Reason: "RECORD_NOT_FOUND",
			Message: fmt.Sprintf("the result of job %s has no record %q; the parts of the result name those there are, if they are records of a schema", id, record),
		}
	}
	return found, nil
}

// ListDecisions returns a page of what was decided about values of a job's result.
func (r *Reviewer) ListDecisions(ctx context.Context, _ mapreduce.Principal, q mapreduce.ListDecisionsQuery) (*mapreduce.DecisionPage, error) {
	if _, _, valid := q.Record.Parse(); q.Record != "" && !valid {
		return nil, errs.Field("record_id", "%q is not the id of a record", string(q.Record))
	}
	if q.PageSize == 0 {
		q.PageSize = 100
	}

	stored, next, err := r.jobs.Review.List(ctx, q)
	if err != nil {
		return nil, err
	}
	page := &mapreduce.DecisionPage{NextPageToken: next}
	for _, d := range stored {
		page.Decisions = append(page.Decisions, decisionOf(d))
	}
	return page, nil
}
