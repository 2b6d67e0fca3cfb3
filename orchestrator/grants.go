package orchestrator

import (
	"context"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/store/jobs/grants"
)

// adjustGrants gives back what a job has no use for here, or asks for the slots and
// tokens that it lacks. A job for which no tokens are left, and of which nothing
// runs that might return some, is paused.
func (o *Orchestrator) adjustGrants(ctx context.Context, id mapreduce.JobID) error {
	if err := o.fleetSlots(ctx); err != nil {
		return err
	}
	if err := o.returnGrants(ctx, id); err != nil {
		return err
	}
	if o.scheduler.Grants.IsNewHere(id) {
		if err := o.members.YieldTurn(ctx, id); err != nil {
			return err
		}
	}
	g, short, err := o.requestGrant(ctx, id, func() (grants.Request, bool) { return o.missingGrants(id) })
	if err != nil || short == 0 || g.Budget == 0 || g.Running > 0 {
		return err
	}
	return o.outOfBudget(ctx, id, g, short)
}

// lockGrantRequests waits until no other request for grants is under way: what the scheduler is
// told last must be what is stored. The caller calls done.
func (o *Orchestrator) lockGrantRequests(ctx context.Context) (done func(), err error) {
	select {
	case o.grantRequestSlot <- struct{}{}:
		return func() { <-o.grantRequestSlot }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// requestGrant asks for a grant, if what says to, and enters it. It returns how many
// tokens are still lacking.
func (o *Orchestrator) requestGrant(ctx context.Context, id mapreduce.JobID, what func() (grants.Request, bool)) (g *grants.Reply, short int64, err error) {
	done, err := o.lockGrantRequests(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer done()
	ask, wanted := what()
	if !wanted {
		return nil, 0, nil
	}
	if g, err = o.jobs.Grants.Grant(ctx, id, ask); err != nil {
		o.scheduler.Grants.MarkUnsure(id)
		return nil, 0, err
	}
	return g, o.scheduler.Grants.Apply(id, g), nil
}

// fleetSlots asks for as many model calls at once as the workers of this node
// can make, of those that the whole fleet may. What others need of those it has
// is given back: first no more are begun than will be left, and then what is not
// under way goes.
func (o *Orchestrator) fleetSlots(ctx context.Context) error {
	done, err := o.lockGrantRequests(ctx)
	if err != nil {
		return err
	}
	defer done()
	ask, wanted := o.scheduler.Grants.CallsWanted()
	if !wanted {
		return nil
	}
	ask.Limit, ask.Doubts = int64(o.config.MaxCalls), o.members.SuspectNodes()
	ask.Keep = ask.Limit
	g, err := o.jobs.Grants.FleetSlots(ctx, ask)
	if err != nil {
		o.scheduler.Grants.MarkCallsDue()
		return err
	}
	keep, more := o.scheduler.Grants.ApplyCalls(ask, g)
	for _, id := range more[:min(len(more), polled)] {
		o.signals.MarkDue(id) // which may have slots of them now
	}
	if ask.Keep = keep; ask.Keep < g.Kept {
		if _, err = o.jobs.Grants.FleetSlots(ctx, ask); err != nil {
			o.scheduler.Grants.MarkCallsDue()
		}
	}
	return err
}

func (o *Orchestrator) outOfBudget(ctx context.Context, id mapreduce.JobID, g *grants.Reply, short int64) error {
	if !o.scheduler.Grants.HasWaitedForTokens(id, 3*o.config.Poll) {
		beats, err := o.jobs.Nodes.Beats(ctx)
		if err != nil || len(beats) > 1 || !o.members.IsOnlyNode() {
			return err // others may yet return what they do not need
		}
	}
	why := fmt.Sprintf("budget of %d tokens: the next unit may need %d, and no more are left to reserve; "+
		"go on with `coditect mapreduce resume --job-id %s --budget N`", g.Budget, short, id)
	if err := o.jobs.Lifecycle.Pause(ctx, id, g.Epoch, why); err != nil {
		return err
	}
	o.signals.MarkDue(id)
	return nil
}

// missingGrants says what to ask for, and whether to.
func (o *Orchestrator) missingGrants(id mapreduce.JobID) (grants.Request, bool) {
	ask := grants.Request{ID: newID(), Alone: o.members.IsOnlyNode(), Doubts: o.members.SuspectNodes()}
	wanted := o.scheduler.Grants.TakeMissing(id, &ask)
	return ask, wanted
}

// returnGrants gives back what this node was granted of a job and has no use
// for, so that others find it.
func (o *Orchestrator) returnGrants(ctx context.Context, id mapreduce.JobID) error {
	if o.members.IsOnlyNode() {
		return nil
	}
	done, err := o.lockGrantRequests(ctx)
	if err != nil {
		return err
	}
	defer done()
	if o.scheduler.Grants.TakeReleasable(id) {
		if _, err = o.jobs.Grants.Return(ctx, id); err != nil {
			o.scheduler.Grants.MarkUnsure(id)
		}
	}
	return err
}

// pauseStuck pauses a job of which nothing could run for long: its breaker is
// open, its model refuses all calls, or no worker has its provider. Workers of
// other nodes may fare better: a job that runs anywhere else is not stuck.
func (o *Orchestrator) pauseStuck(ctx context.Context, id mapreduce.JobID) error {
	epoch, begins, why := o.scheduler.StuckReason(id, o.config.Stuck, time.Now())
	if why == "" && !begins {
		return nil
	}
	job, err := o.jobs.View.Job(ctx, id)
	if err != nil || o.scheduler.IsProgressing(id, job, time.Now()) {
		return err
	}
	if asleep, err := o.allUnitsParked(ctx, job); err != nil || asleep || begins {
		return err
	}
	if err := o.jobs.Lifecycle.Pause(ctx, id, epoch, why); err != nil {
		return err
	}
	o.signals.MarkDue(id)
	return nil
}

// allUnitsParked reports whether nothing of a job could run even if it might: all units that
// are pending are parked. Then how long it has been stuck is counted anew.
func (o *Orchestrator) allUnitsParked(ctx context.Context, job *mapreduce.Job) (bool, error) {
	if job.ParkedUnits == 0 {
		return false, nil
	}
	queued, err := o.jobs.Queue.Queued(ctx, job.ID)
	if err != nil || queued {
		return false, err
	}
	o.scheduler.NoteNotStuck(job.ID)
	return true, nil
}

// raiseReservations raises reservations that workers ask for before a call. What is
// refused must not be spent.
func (o *Orchestrator) raiseReservations(ctx context.Context, s *schedule.Session, asked []mapreduce.ReserveRequest) error {
	for _, q := range asked {
		var ok bool
		err := o.supervisor.RetryStoreCall(ctx, "reserving tokens", func() (err error) {
			ok, err = o.reserveOne(ctx, s, q)
			return err
		})
		if err != nil {
			return err
		}
		s.Peer.Send(&mapreduce.ToWorker{Reserved: []mapreduce.ReserveReply{{Held: q.Held, Granted: ok}}})
	}
	return nil
}

func (o *Orchestrator) reserveOne(ctx context.Context, s *schedule.Session, q mapreduce.ReserveRequest) (bool, error) {
	h, r := o.scheduler.Sessions.FindUnit(s, q.Held)
	if h == nil || q.Tokens < 0 {
		return false, nil
	}
	spec, err := o.specOf(ctx, r)
	if err != nil {
		return false, err
	}
	if spec.Budget == 0 || q.Tokens <= h.Reserved {
		return true, nil
	}
	select {
	case r.Reserving <- struct{}{}:
		defer func() { <-r.Reserving }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	more := q.Tokens - h.Reserved
	if !o.scheduler.Grants.SpendTokens(ctx, r, more) {
		ask := grants.Request{Tokens: more, Parallelism: int64(spec.Parallelism), Doubts: o.members.SuspectNodes()}
		if _, _, err := o.requestGrant(ctx, q.Job, func() (grants.Request, bool) { return ask, true }); err != nil {
			return false, err
		}
		// Whether that is enough the store decides: this reservation may be in what it
		// says is used, if an earlier try took effect unseen.
		if o.scheduler.Grants.OverdrawTokens(r, more) {
			o.signals.MarkDue(q.Job)
		}
	}
	before, err := o.jobs.Grants.Reserve(ctx, []grants.Reservation{{Held: q.Held, Tokens: q.Tokens}})
	if err == nil && before[0] == grants.NoTokens {
		o.scheduler.Grants.NoteMissingTokens(r, q.Tokens)
		o.scheduler.Grants.MarkOverdrawn(r)
		o.signals.MarkDue(q.Job)
		return false, nil
	}
	if err != nil { // it may have happened nevertheless
		o.scheduler.Grants.MarkOverdrawn(r)
		o.signals.MarkDue(q.Job)
		return false, err
	}
	if before[0] < 0 {
		o.scheduler.Grants.RefundTokens(r, more)
		return false, nil
	}
	o.scheduler.Grants.AddReservation(h, q.Tokens)
	return true, nil
}

// SpecOf returns the spec of a job, which the scheduler may not know yet: a worker
// can take up its session before the job is seen, or while it is paused.
func (o *Orchestrator) specOf(ctx context.Context, r *schedule.Job) (*mapreduce.JobSpec, error) {
	if spec := o.scheduler.SpecOf(r); spec != nil {
		return spec, nil
	}
	rec, err := o.jobs.View.Record(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	return &rec.Spec, nil
}
