package lifecycle

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/fair"
	"github.com/coditect/mapreduce/orchestrator/result"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/content"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

const (
	// maxAssemblies is how many results are assembled at once.
	maxAssemblies = 2
	// assembleAgain is how long a result rests that could not be assembled for now.
	assembleAgain = time.Second
)

// An assembler makes the result of a job once, when no stage has anything left to do, stores
// it. That of a small job is made in memory, and stored by the
// transaction that completes the job. Any other is the output of the only unit of a last
// level. No worker runs that unit, for it is what checks for the last time what workers have
// reported: an orchestrator claims it for a session of its own. Attempt, claim and the loss of
// the session are those of any unit, so if this orchestrator dies, another assembles the
// result. Its methods are safe for concurrent use.
type assembler struct {
	jobs       *jobs.Jobs
	scheduler  *schedule.Scheduler
	members    *cluster.Membership
	signals    *cluster.Signals
	supervisor *cluster.Supervisor
	results    *Results
	smallUnits int64          // of level 0 that a job may have whose result is tried as a small one
	grace      time.Duration  // to give back what was begun when it stops
	wanted     cluster.Signal // there are more to begin
	binding    chan struct{}  // full while the session is being bound

	mu      sync.Mutex               // guards the variables below
	waiting map[mapreduce.JobID]bool // in queue
	queue   fair.Queue[mapreduce.JobID]
	running map[mapreduce.JobID]context.CancelCauseFunc
	session queue.WorkerSlots // that claims the units; none yet if its epoch is 0
}

// newAssembler returns an assembler. It assembles in its loop, but for small results.
func newAssembler(p Parts, c Config, results *Results) *assembler {
	return &assembler{
		jobs: p.Jobs, scheduler: p.Scheduler, members: p.Members, signals: p.Signals, supervisor: p.Supervisor, results: results,
		smallUnits: c.SmallResult, grace: c.Grace,
		waiting: make(map[mapreduce.JobID]bool), running: make(map[mapreduce.JobID]context.CancelCauseFunc),
		binding: make(chan struct{}, 1),
	}
}

// errStopped ends the assembling of a result of a job that runs no more.
var errStopped = errors.New("the job runs no more")

// finish ends a job that no stage has anything left to do for: with its result, if
// that is small; else its result is planned.
func (a *assembler) finish(ctx context.Context, id mapreduce.JobID, s *lifecycle.Status) error {
	if len(s.Planned) == 0 || s.Planned[0].Units > a.smallUnits {
		return a.jobs.Levels.PlanResult(ctx, id, s.Epoch)
	}

	w := result.NewWriter(lifecycle.MaxSmallResult, func([]byte) error { return result.ErrNoRoom })
	err := a.results.assemble(ctx, id, lifecycle.MaxSmallResult, w.Add)
	switch {
	case errors.Is(err, result.ErrNoRoom):
		return a.jobs.Levels.PlanResult(ctx, id, s.Epoch)
	case err != nil && (ctx.Err() != nil || passes(err)):
		return err
	case err != nil:
		return a.jobs.Lifecycle.Fail(ctx, id, s.Epoch, unassembled(err))
	}

	result, _, _ := w.Rest()
	return a.jobs.Levels.CompleteWith(ctx, id, s.Epoch, result)
}

// passes reports whether what kept a result from being assembled has to do with the
// moment: the store is away, or somebody changed the job. Anything else is wrong with
// the job, or the program, and would be again.
func passes(err error) bool {
	switch errs.KindOf(err) {
	case errs.Unavailable, errs.Exhausted, errs.Aborted, errs.Cancelled, errs.Deadline, errs.NotFound, errs.Precondition:
		return !errors.Is(err, cluster.ErrPanic)
	}
	return false
}

// unassembled is what a job fails with whose result cannot be assembled.
func unassembled(why error) string { return "its result cannot be assembled: " + why.Error() }

// endAssembled ends a job the unit of whose result has ended.
func (a *assembler) endAssembled(ctx context.Context, id mapreduce.JobID, s *lifecycle.Status) error {
	if s.Completed > 0 {
		return a.jobs.Levels.Complete(ctx, id, s.Epoch)
	}

	u, err := a.jobs.View.Unit(ctx, id, mapreduce.ResultUnit)
	if err != nil {
		return err
	}

	why := "its result was not assembled"
	if u != nil && len(u.Errors) > 0 {
		why = u.Errors[len(u.Errors)-1]
	}
	return a.jobs.Lifecycle.Fail(ctx, id, s.Epoch, why)
}

// begin queues the assembling of a job's result, unless that is under way.
func (a *assembler) begin(id mapreduce.JobID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running[id] != nil || a.waiting[id] {
		return
	}
	a.waiting[id] = true
	tenant, _ := a.scheduler.TenantOf(id) // others share a turn
	a.queue.Add(tenant, id)
	a.wanted.Wake()
}

// stop ends the assembling of a job's result, if it is under way.
func (a *assembler) stop(id mapreduce.JobID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, id)
	a.queue.Remove(id)
	if cancel := a.running[id]; cancel != nil {
		cancel(errStopped)
	}
}

// next returns a job whose result is to be assembled now, and the context to do so in;
// "" if there is none, or no room.
func (a *assembler) next(ctx context.Context) (mapreduce.JobID, context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if len(a.running) >= maxAssemblies {
		return "", nil
	}

	id, ok := a.queue.Next()
	if !ok {
		return "", nil
	}

	delete(a.waiting, id)
	ctx, cancel := context.WithCancelCause(ctx)
	a.running[id] = cancel
	return id, ctx
}

// ended notes that the assembling of a job's result has ended.
func (a *assembler) ended(id mapreduce.JobID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running[id](nil)
	delete(a.running, id)
	a.wanted.Wake()
}

// loop assembles results until ctx ends. What is left goes back then, for
// others.
func (a *assembler) loop(ctx context.Context) {
	var all sync.WaitGroup
	for ctx.Err() == nil {
		for id, own := a.next(ctx); id != ""; id, own = a.next(ctx) {
			all.Go(func() {
				defer a.ended(id)
				a.runAssembly(ctx, own, id)
			})
		}

		select {
		case <-ctx.Done():
		case <-a.wanted.C():
		}
	}

	all.Wait()
	a.endOwnSession(context.WithoutCancel(ctx))
}

// runAssembly assembles one result, and has the job looked at when that has ended. The
// calls for it end with ctx, and the assembling ends with own, too.
func (a *assembler) runAssembly(ctx, own context.Context, id mapreduce.JobID) {
	ran := false
	err := a.supervisor.ContainPanic(ctx, "assembling a result", func() (err error) {
		ran, err = a.runResultUnit(ctx, own, id)
		return err
	}, "job", id)
	switch {
	case own.Err() != nil || err == nil && !ran:
	case err == nil || errs.KindOf(err) == errs.NotFound:
		a.signals.MarkDue(id)
		a.signals.NotifyWatchers(id)
	default:
		a.supervisor.LogFailure(ctx, "assembling a result; trying again", err, "job", id)
		a.signals.CallAt(time.Now().Add(assembleAgain), func(context.Context) { a.signals.MarkDue(id) })
	}
}

// runResultUnit claims the unit that assembles the result of a job, runs it, and
// reports. It returns false if the unit may not be claimed: another has it, or it has
// ended.
func (a *assembler) runResultUnit(ctx, own context.Context, id mapreduce.JobID) (ran bool, err error) {
	u, claim, err := a.claimResultUnit(ctx, id)
	if u == nil || err != nil {
		return false, err
	}

	held := protocol.Held{Job: id, Unit: mapreduce.ResultUnit, Attempt: int(u.Attempt)}
	report := &protocol.Report{Job: held.Job, Unit: held.Unit, Attempt: held.Attempt}
	begun := time.Now()
	err = a.supervisor.ContainPanic(ctx, "assembling a result", func() (err error) {
		report.Length, report.SHA256, err = a.putResult(own, held, claim.Session)
		return err
	}, "job", id)
	report.Elapsed = time.Since(begun)

	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err == nil:
		report.Outcome = protocol.Done
	case own.Err() != nil || passes(err):
		// Another attempt may do better.
		report.Outcome = protocol.Returned
	default:
		report.Outcome, report.Class, report.Errors = protocol.Errored, protocol.PermanentUnit, []string{unassembled(err)}
	}

	_, e := a.carryOut(ctx, &queue.Turn{
		Job: id, Release: []queue.HeldID{claim},
		Reports: []queue.Report{{Report: report, Session: claim.Session}},
	})

	if e != nil || report.Outcome == protocol.Returned {
		return true, errors.Join(err, e)
	}
	return true, nil
}

// claimResultUnit claims the unit that assembles the result of a job. It returns nil if
// another has it, or it has ended.
func (a *assembler) claimResultUnit(ctx context.Context, id mapreduce.JobID) (*records.Unit, queue.HeldID, error) {
	u, err := a.jobs.View.Unit(ctx, id, mapreduce.ResultUnit)
	if err != nil || u == nil || u.Waits == nil {
		return nil, queue.HeldID{}, err
	}

	// Every node sees that the unit waits, and only one can claim it.
	if !a.members.IsOnlyNode() {
		if err := a.members.YieldTurn(ctx, id); err != nil {
			return nil, queue.HeldID{}, err
		}
	}

	session, err := a.ownSession(ctx)
	if err != nil {
		return nil, queue.HeldID{}, err
	}

	claim := queue.HeldID{Session: session.Session, Claim: rand.Text()}
	res, err := a.carryOut(ctx, &queue.Turn{Job: id, Claim: &queue.Claim{
		ID: claim.Claim, Workers: []queue.WorkerSlots{session}, Candidates: []records.Candidate{*u.Waits},
	}})
	switch {
	case err != nil:
		return nil, claim, err
	case !res.Bound[0]: // others took this orchestrator for dead
		a.forgetSession(session)
		return nil, claim, errs.New(errs.Unavailable, "the session that assembles results was given up; another takes its place")
	case len(res.Claimed) == 0:
		return nil, claim, nil
	}
	return res.Claimed[0].Unit, claim, nil
}

// carryOut carries out a turn of the unit that assembles a result, however long the store
// is away: a turn whose end is not known may have given the unit to this node's session, and
// while that lives nobody else would run the unit.
func (a *assembler) carryOut(ctx context.Context, t *queue.Turn) (*queue.Result, error) {
	for {
		res, err := a.jobs.Turns.FinishAndClaim(ctx, t)
		if err == nil || ctx.Err() != nil || cluster.ClassOf(err) != cluster.Passing {
			return res, err
		}
		a.supervisor.LogFailure(ctx, "a turn of a result; trying again", err, "job", t.Job)
		if cause := clock.Sleep(ctx, assembleAgain); cause != nil {
			return nil, cause
		}
	}
}

// putResult assembles the result of a job, and puts it as the output of an attempt. While
// a block is stored, the next is assembled.
func (a *assembler) putResult(ctx context.Context, held protocol.Held, session mapreduce.SessionID) (length int64, sum []byte, err error) {
	put, at := &content.Put{Held: held, Session: session}, int64(0)
	stored := make(chan error, 1) // what became of the block before
	stored <- nil
	w := result.NewWriter(content.MaxPutBytes, func(block []byte) error {
		if err := <-stored; err != nil {
			// The wait for the last block must find something.
			stored <- nil
			return err
		}

		block, from := slices.Clone(block), at
		at += int64(len(block))

		go func() {
			stored <- a.supervisor.ContainPanic(ctx, "storing a result", func() error {
				return a.jobs.Content.AppendPut(ctx, put, from, block)
			}, "job", held.Job)
		}()
		return nil
	})

	err = a.results.assemble(ctx, held.Job, 0, w.Add)
	if err := errors.Join(err, <-stored); err != nil {
		return 0, nil, err
	}

	block, length, sum := w.Rest()
	put.Length, put.SHA256 = length, sum
	return length, sum, a.jobs.Content.AppendPut(ctx, put, at, block)
}

// ownSession returns the session for which this orchestrator claims units that it runs
// itself. It is bound with the first of them. The store may take long to answer, so
// nothing that Stop or Begin waits for is locked meanwhile.
func (a *assembler) ownSession(ctx context.Context) (queue.WorkerSlots, error) {
	select {
	case a.binding <- struct{}{}:
	case <-ctx.Done():
		return queue.WorkerSlots{}, context.Cause(ctx)
	}
	defer func() { <-a.binding }()

	if session := a.boundSession(); session.Epoch > 0 {
		return session, nil
	}

	session := queue.WorkerSlots{Session: mapreduce.SessionID("results-" + rand.Text()), Epoch: 1, Slots: 1}
	_, err := a.jobs.Sessions.Bind(ctx, &protocol.Hello{Session: session.Session, Slots: maxAssemblies, Embedded: true}, "", session.Epoch, nil)
	if err != nil {
		return queue.WorkerSlots{}, err
	}

	a.mu.Lock()
	defer a.mu.Unlock()
	a.session = session
	return session, nil
}

// boundSession returns the session that was bound last; its epoch is 0 if there is
// none.
func (a *assembler) boundSession() queue.WorkerSlots {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.session
}

// forgetSession has another session bound with the next unit.
func (a *assembler) forgetSession(session queue.WorkerSlots) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.session == session {
		a.session = queue.WorkerSlots{}
	}
}

// endOwnSession gives the units back that were claimed for the own session, and ends
// it. If that fails, others do so as they do for an orchestrator that has died.
func (a *assembler) endOwnSession(ctx context.Context) {
	session := a.boundSession()
	if session.Epoch == 0 {
		return
	}

	ctx, stop := context.WithTimeout(ctx, a.grace)
	defer stop()

	for done := false; !done; {
		loss, err := a.jobs.Sessions.Expire(ctx, session.Session, a.jobs.Node(), session.Epoch, nil)
		if err != nil {
			a.supervisor.LogFailure(ctx, "giving back results that were being assembled", err)
			return
		}
		done = loss.Done
	}

	a.forgetSession(session)
}
