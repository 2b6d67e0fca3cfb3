package program

import (
	"context"
	"crypto/rand"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/embedded"
)

// TurnToNext makes calls go on where the data directory is held next, if the process that
// holds it ends. A call may then replace the service of the session, so one goroutine must
// make all of them. A session with a server is left as it is.
func (s *Session) TurnToNext() {
	if s.isRemote() {
		return
	}
	s.turns = true
	if s.conn != nil {
		s.Client = turning{s.conn, s}
	}
}

// A turning is the client of the process that holds the data directory. If that process
// has ended before it took a call, the session turns to the one that holds the directory next,
// this process or another, and the call is made there. A call that only reads is also made again
// if its answer was lost.
//
// FollowJob turns by itself when WatchJob ends, and a submission cannot always read its
// documents again: these calls, and PlanJob, are those of the process.
type turning struct {
	mapreduce.Client // of the process
	session          *Session
}

// isLost reports whether the process that a call was made to is gone. The call may have
// been carried out.
func isLost(err error) bool { return isServiceGone(err) && !isStoreAway(err) }

// turn makes a call, and makes it again with the next service if again says so of its error.
func turn[T any](ctx context.Context, t turning, again func(error) bool, call func(mapreduce.Client) (T, error)) (T, error) {
	v, err := call(t.Client)
	if err == nil || ctx.Err() != nil || !again(err) {
		return v, err
	}
	if err := t.session.reopenStore(ctx); err != nil {
		return v, err
	}
	return call(t.session.Client) // which turns as well if that is another process
}

// turnStream is turn for a call that brings things one by one. After the first it is not
// made again.
func turnStream[T any](ctx context.Context, t turning, again func(error) bool, take func(T) error, call func(mapreduce.Client, func(T) error) error) error {
	begun := false
	_, err := turn(ctx, t, func(err error) bool { return !begun && again(err) }, func(c mapreduce.Client) (struct{}, error) {
		return struct{}{}, call(c, func(v T) error { begun = true; return take(v) })
	})
	return err
}

// GetJob implements mapreduce.Client.
func (t turning) GetJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	return turn(ctx, t, isLost, func(c mapreduce.Client) (*mapreduce.Job, error) { return c.GetJob(ctx, id) })
}

// ListJobs implements mapreduce.Client.
func (t turning) ListJobs(ctx context.Context, q mapreduce.ListJobsQuery) (*mapreduce.JobPage, error) {
	return turn(ctx, t, isLost, func(c mapreduce.Client) (*mapreduce.JobPage, error) { return c.ListJobs(ctx, q) })
}

// ListUnits implements mapreduce.Client.
func (t turning) ListUnits(ctx context.Context, q mapreduce.ListUnitsQuery) (*mapreduce.UnitPage, error) {
	return turn(ctx, t, isLost, func(c mapreduce.Client) (*mapreduce.UnitPage, error) { return c.ListUnits(ctx, q) })
}

// ListEvents implements mapreduce.Client.
func (t turning) ListEvents(ctx context.Context, q mapreduce.ListEventsQuery) (*mapreduce.EventPage, error) {
	return turn(ctx, t, isLost, func(c mapreduce.Client) (*mapreduce.EventPage, error) { return c.ListEvents(ctx, q) })
}

// SumCosts implements mapreduce.Client.
func (t turning) SumCosts(ctx context.Context, q mapreduce.CostQuery) (*mapreduce.CostSums, error) {
	return turn(ctx, t, isLost, func(c mapreduce.Client) (*mapreduce.CostSums, error) { return c.SumCosts(ctx, q) })
}

// ListCertificates implements mapreduce.Client.
func (t turning) ListCertificates(ctx context.Context, tenant mapreduce.TenantID) ([]mapreduce.Certificate, error) {
	return turn(ctx, t, isLost, func(c mapreduce.Client) ([]mapreduce.Certificate, error) { return c.ListCertificates(ctx, tenant) })
}

// TenantUse implements mapreduce.Client.
func (t turning) TenantUse(ctx context.Context, tenant mapreduce.TenantID) (*mapreduce.TenantUse, error) {
	return turn(ctx, t, isLost, func(c mapreduce.Client) (*mapreduce.TenantUse, error) { return c.TenantUse(ctx, tenant) })
}

// Caller implements mapreduce.Client.
func (t turning) Caller(ctx context.Context) (*mapreduce.Principal, error) {
	return turn(ctx, t, isLost, func(c mapreduce.Client) (*mapreduce.Principal, error) { return c.Caller(ctx) })
}

// AnswerCache implements mapreduce.Client.
func (t turning) AnswerCache(ctx context.Context, tenant mapreduce.TenantID, forget bool) (*mapreduce.AnswerCache, error) {
	return turn(ctx, t, unless(forget), func(c mapreduce.Client) (*mapreduce.AnswerCache, error) { return c.AnswerCache(ctx, tenant, forget) })
}

// unless returns when to make a call again that changes something or only reads.
func unless(changes bool) func(error) bool {
	if changes {
		return embedded.NotAccepted
	}
	return isLost
}

// ReadText implements mapreduce.Client.
func (t turning) ReadText(ctx context.Context, job mapreduce.JobID, unit mapreduce.UnitID, document mapreduce.DocumentID, sink func([]byte) error) error {
	return turnStream(ctx, t, isLost, sink, func(c mapreduce.Client, sink func([]byte) error) error {
		return c.ReadText(ctx, job, unit, document, sink)
	})
}

// GetResult implements mapreduce.Client.
func (t turning) GetResult(ctx context.Context, id mapreduce.JobID, partial bool, sink func(*mapreduce.ResultPart) error) error {
	return turnStream(ctx, t, isLost, sink, func(c mapreduce.Client, sink func(*mapreduce.ResultPart) error) error {
		return c.GetResult(ctx, id, partial, sink)
	})
}

// CheckStore implements mapreduce.Client.
func (t turning) CheckStore(ctx context.Context, q mapreduce.CheckQuery, found func(mapreduce.Finding) error) error {
	return turnStream(ctx, t, unless(q.RepairCounters), found, func(c mapreduce.Client, found func(mapreduce.Finding) error) error {
		return c.CheckStore(ctx, q, found)
	})
}

// FleetStatus implements mapreduce.Client.
func (t turning) FleetStatus(ctx context.Context) (*mapreduce.FleetStatus, error) {
	return turn(ctx, t, isLost, func(c mapreduce.Client) (*mapreduce.FleetStatus, error) { return c.FleetStatus(ctx) })
}

// PauseJob implements mapreduce.Client.
func (t turning) PauseJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	return turn(ctx, t, embedded.NotAccepted, func(c mapreduce.Client) (*mapreduce.Job, error) { return c.PauseJob(ctx, id) })
}

// CancelJob implements mapreduce.Client.
func (t turning) CancelJob(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	return turn(ctx, t, embedded.NotAccepted, func(c mapreduce.Client) (*mapreduce.Job, error) { return c.CancelJob(ctx, id) })
}

// ResumeJob implements mapreduce.Client.
func (t turning) ResumeJob(ctx context.Context, id mapreduce.JobID, r mapreduce.Resume) (*mapreduce.Job, error) {
	return turn(ctx, t, embedded.NotAccepted, func(c mapreduce.Client) (*mapreduce.Job, error) { return c.ResumeJob(ctx, id, r) })
}

// MarkCause implements mapreduce.Client. A second call changes nothing.
func (t turning) MarkCause(ctx context.Context, id mapreduce.JobID, cause string, state mapreduce.CauseState) (*mapreduce.Job, error) {
	return turn(ctx, t, isLost, func(c mapreduce.Client) (*mapreduce.Job, error) { return c.MarkCause(ctx, id, cause, state) })
}

// DeleteJob implements mapreduce.Client.
func (t turning) DeleteJob(ctx context.Context, id mapreduce.JobID) error {
	_, err := turn(ctx, t, embedded.NotAccepted, func(c mapreduce.Client) (struct{}, error) { return struct{}{}, c.DeleteJob(ctx, id) })
	return err
}

// DecideValue implements mapreduce.Client.
func (t turning) DecideValue(ctx context.Context, d mapreduce.NewDecision) (*mapreduce.Decision, error) {
	if d.Request == "" { // so that it may be sent again
		d.Request = mapreduce.RequestID(rand.Text())
	}
	return turn(ctx, t, isLost, func(c mapreduce.Client) (*mapreduce.Decision, error) { return c.DecideValue(ctx, d) })
}

// ListDecisions implements mapreduce.Client.
func (t turning) ListDecisions(ctx context.Context, q mapreduce.ListDecisionsQuery) (*mapreduce.DecisionPage, error) {
	return turn(ctx, t, isLost, func(c mapreduce.Client) (*mapreduce.DecisionPage, error) { return c.ListDecisions(ctx, q) })
}

// ListWaiting implements mapreduce.Client.
func (t turning) ListWaiting(ctx context.Context, q mapreduce.ListWaitingQuery) (*mapreduce.WaitingPage, error) {
	return turn(ctx, t, isLost, func(c mapreduce.Client) (*mapreduce.WaitingPage, error) { return c.ListWaiting(ctx, q) })
}

// ClaimRecords implements mapreduce.Client.
func (t turning) ClaimRecords(ctx context.Context, c mapreduce.Claim) ([]mapreduce.RecordClaim, error) {
	return turn(ctx, t, isLost, func(to mapreduce.Client) ([]mapreduce.RecordClaim, error) { return to.ClaimRecords(ctx, c) })
}

// WakeUnit implements mapreduce.Client.
func (t turning) WakeUnit(ctx context.Context, job mapreduce.JobID, unit mapreduce.UnitID, handle string, answer []byte) (*mapreduce.Unit, error) {
	return turn(ctx, t, embedded.NotAccepted, func(c mapreduce.Client) (*mapreduce.Unit, error) {
		return c.WakeUnit(ctx, job, unit, handle, answer)
	})
}
