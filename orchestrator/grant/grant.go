// Package grant asks the store for what this node may use of what the fleet shares, and
// gives back what it has no use for: slots and tokens of jobs, calls of models, shares of
// their limits, and the first unit of a job whose prompts begin alike. It tells the
// schedule what came.
package grant

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/nodes"
)

// A Config says how a Manager works. All of it must be set.
type Config struct {
	MaxCalls int           // of models at once, over the whole fleet
	Poll     time.Duration // about how often it looks for what nobody told it
	Stuck    time.Duration // that a job may have nothing that can run before it is paused
	NewID    func() string // draws names of requests
	Logger   *slog.Logger
}

// A Manager asks for grants. Its methods are safe for concurrent use.
type Manager struct {
	config      Config
	jobs        *jobs.Jobs
	scheduler   *schedule.Scheduler
	members     *cluster.Membership
	signals     *cluster.Signals
	supervisor  *cluster.Supervisor
	requestSlot chan struct{} // full while grants are asked for or returned
}

// New returns a manager of what the scheduler of this node uses.
func New(j *jobs.Jobs, sch *schedule.Scheduler, members *cluster.Membership, signals *cluster.Signals, s *cluster.Supervisor, c Config) *Manager {
	return &Manager{config: c, jobs: j, scheduler: sch, members: members, signals: signals, supervisor: s, requestSlot: make(chan struct{}, 1)}
}

// MaxCalls is how many units of the fleet may call models at the same time.
func (m *Manager) MaxCalls() int64 { return int64(m.config.MaxCalls) }

// MaxDue bounds the jobs that are looked at at once when there may be more slots for them;
// polls see to the others.
const MaxDue = 256

// Adjust gives back what a job has no use for here, or asks for the slots and
// tokens that it lacks. A job for which no tokens are left, and of which nothing
// runs that might return some, is paused.
func (m *Manager) Adjust(ctx context.Context, id mapreduce.JobID) error {
	if err := m.AskForCalls(ctx); err != nil {
		return err
	}
	if err := m.returnGrants(ctx, id); err != nil {
		return err
	}

	// All nodes see a new job at the same moment, so they ask one after the other.
	if m.scheduler.Grants.IsNewHere(id) {
		if err := m.members.YieldTurn(ctx, id); err != nil {
			return err
		}
	}

	g, short, err := m.requestGrant(ctx, id, func() (nodes.GrantRequest, bool) { return m.missingGrants(id) })
	if err != nil || short == 0 || g.Budget == 0 || g.Running > 0 {
		return err
	}

	return m.outOfBudget(ctx, id, g, short)
}

// lockGrantRequests waits until no other request for grants is under way, so that the
// last reply that the scheduler gets is the stored state. The caller calls done.
func (m *Manager) lockGrantRequests(ctx context.Context) (done func(), err error) {
	select {
	case m.requestSlot <- struct{}{}:
		return func() { <-m.requestSlot }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// requestGrant asks for a grant, if what says to, and enters it. It returns how many
// tokens are still lacking.
func (m *Manager) requestGrant(ctx context.Context, id mapreduce.JobID, what func() (nodes.GrantRequest, bool)) (g *nodes.GrantReply, short int64, err error) {
	done, err := m.lockGrantRequests(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer done()

	ask, wanted := what()
	if !wanted {
		return nil, 0, nil
	}

	if g, err = m.jobs.Grants.Grant(ctx, id, ask); err != nil {
		m.scheduler.Grants.MarkUnsure(id)
		return nil, 0, err
	}
	return g, m.scheduler.Grants.Apply(id, g), nil
}

// Refresh reads anew what a job was granted here.
func (m *Manager) Refresh(ctx context.Context, id mapreduce.JobID) error {
	_, _, err := m.requestGrant(ctx, id, func() (nodes.GrantRequest, bool) { return nodes.GrantRequest{}, true })
	return err
}

// AskForCalls asks for as many model calls at once as the workers of this node
// can make, of those that the whole fleet may. What others need of those it has
// is given back: first no more are begun than will be left, and then what is not
// under way goes.
func (m *Manager) AskForCalls(ctx context.Context) error {
	done, err := m.lockGrantRequests(ctx)
	if err != nil {
		return err
	}
	defer done()

	ask, wanted := m.scheduler.Grants.CallsWanted()
	if !wanted {
		return nil
	}

	// The first request keeps all: what can go is known once the scheduler has the reply.
	ask.Limit, ask.Doubts = int64(m.config.MaxCalls), m.members.SuspectNodes()
	ask.Keep = ask.Limit
	g, err := m.jobs.Grants.FleetSlots(ctx, ask)
	if err != nil {
		m.scheduler.Grants.MarkCallsDue()
		return err
	}

	keep, more := m.scheduler.Grants.ApplyCalls(ask, g)
	for _, id := range more[:min(len(more), MaxDue)] {
		m.signals.MarkDue(id) // which may have slots of them now
	}

	// A session that is bound meanwhile brings calls of its own: these stay.
	if ask.Keep, ask.Of = keep, g; ask.Keep < g.Kept {
		if _, err = m.jobs.Grants.FleetSlots(ctx, ask); err != nil {
			m.scheduler.Grants.MarkCallsDue()
		}
	}
	return err
}

func (m *Manager) outOfBudget(ctx context.Context, id mapreduce.JobID, g *nodes.GrantReply, short int64) error {
	if !m.scheduler.Grants.HasWaitedForTokens(id, 3*m.config.Poll) {
		beats, err := m.jobs.Nodes.Beats(ctx)
		if err != nil || len(beats) > 1 || !m.members.IsOnlyNode() {
			return err // others may yet return what they do not need
		}
	}

	why := fmt.Sprintf("the next unit may need %s, and %s; "+
		"continue with a larger budget: `coditect mapreduce resume --job-id %s %s N`", g.In.Text(short), budgetText(g), id, g.In.Flag())
	if err := m.jobs.Lifecycle.Pause(ctx, id, g.Epoch, why); err != nil {
		return err
	}

	m.signals.MarkDue(id)
	return nil
}

// budgetText says where the budget of a job is: what it has spent, what is held back, what is left.
func budgetText(g *nodes.GrantReply) string {
	left := max(0, g.Rest+g.Tokens-g.Used)
	number := func(n int64) string { return strings.TrimSuffix(g.In.Text(n), " tokens") }
	text := fmt.Sprintf("of the budget of %s %s are left: %s are spent or reserved", g.In.Text(g.Budget), number(left), number(g.Budget-g.Held-left))
	if g.Held > 0 {
		text += fmt.Sprintf(", and %s are held back for reducing (--reduce-share)", number(g.Held))
	}
	return text
}

// missingGrants says what to ask for, and whether to.
func (m *Manager) missingGrants(id mapreduce.JobID) (nodes.GrantRequest, bool) {
	ask := nodes.GrantRequest{ID: m.config.NewID(), Alone: m.members.IsOnlyNode(), Doubts: m.members.SuspectNodes()}
	wanted := m.scheduler.Grants.TakeMissing(id, &ask)
	return ask, wanted
}

// returnGrants gives back what this node was granted of a job and has no use
// for, so that others find it.
func (m *Manager) returnGrants(ctx context.Context, id mapreduce.JobID) error {
	if m.members.IsOnlyNode() {
		return nil
	}
	done, err := m.lockGrantRequests(ctx)
	if err != nil {
		return err
	}
	defer done()
	back, found := m.scheduler.Grants.TakeReleasable(id)
	if !found {
		return nil
	}

	back.ID = m.config.NewID()
	left, err := m.jobs.Grants.Return(ctx, id, back)
	if err != nil || left > 0 {
		m.scheduler.Grants.MarkUnsure(id)
	}
	return err
}

// PauseStuck pauses a job of which nothing could run for long: its breaker is
// open, its model refuses all calls, or no worker has its provider. Workers of
// other nodes may fare better: a job that runs anywhere else is not stuck.
func (m *Manager) PauseStuck(ctx context.Context, id mapreduce.JobID) error {
	epoch, begins, why := m.scheduler.StuckReason(id, m.config.Stuck, time.Now())
	if why == "" && !begins {
		return nil
	}

	job, err := m.jobs.View.Job(ctx, id)
	if err != nil || m.scheduler.IsProgressing(id, job, time.Now()) {
		return err
	}

	if asleep, err := m.allUnitsParked(ctx, job); err != nil || asleep || begins {
		return err
	}

	if err := m.jobs.Lifecycle.Pause(ctx, id, epoch, why); err != nil {
		return err
	}
	m.signals.MarkDue(id)
	return nil
}

// allUnitsParked reports whether nothing of a job could run even if it might: all units that
// are pending are parked. Then how long it has been stuck is counted anew.
func (m *Manager) allUnitsParked(ctx context.Context, job *mapreduce.Job) (bool, error) {
	if job.ParkedUnits == 0 {
		return false, nil
	}
	queued, err := m.jobs.Queue.Queued(ctx, job.ID)
	if err != nil || queued {
		return false, err
	}
	m.scheduler.NoteNotStuck(job.ID)
	return true, nil
}

// RaiseReservations raises reservations that workers ask for before a call. What is
// refused must not be spent. One message has all replies.
func (m *Manager) RaiseReservations(ctx context.Context, session *workers.Session, asked []protocol.ReserveRequest) error {
	var replies []protocol.ReserveReply
	defer func() {
		if len(replies) > 0 {
			session.Peer.Send(&protocol.ToWorker{Reserved: replies})
		}
	}()

	for _, q := range asked {
		var ok bool
		err := m.supervisor.RetryStoreCall(ctx, "reserving tokens", func() (err error) {
			ok, err = m.reserveOne(ctx, session, q)
			return err
		})
		if err != nil {
			return err
		}
		replies = append(replies, protocol.ReserveReply{Held: q.Held, Granted: ok})
	}
	return nil
}

func (m *Manager) reserveOne(ctx context.Context, session *workers.Session, q protocol.ReserveRequest) (bool, error) {
	h, j := m.scheduler.Sessions.FindUnit(session, q.Held)
	if h == nil || q.Tokens < 0 {
		return false, nil
	}

	spec, err := m.SpecOf(ctx, j)
	if err != nil {
		return false, err
	}

	if spec.Budget == 0 || q.Tokens <= h.Reserved {
		return true, nil
	}

	select {
	case j.Reserving <- struct{}{}:
		defer func() { <-j.Reserving }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}

	more := q.Tokens - h.Reserved
	if err := m.takeTokens(ctx, j, more, int64(spec.Parallelism)); err != nil {
		return false, err
	}
	return m.raiseReservation(ctx, j, h, q.Tokens, more)
}

// takeTokens takes tokens of what this node was granted of a job, and asks for more if there are
// fewer. Whether that is enough the store decides: this reservation may be in what it says is
// used, if an earlier try took effect unseen.
func (m *Manager) takeTokens(ctx context.Context, j *schedule.Job, n, parallelism int64) error {
	if m.scheduler.Grants.SpendTokens(ctx, j, n) {
		return nil
	}

	ask := nodes.GrantRequest{Tokens: n, Parallelism: parallelism, Doubts: m.members.SuspectNodes()}
	if _, _, err := m.requestGrant(ctx, j.ID, func() (nodes.GrantRequest, bool) { return ask, true }); err != nil {
		return err
	}
	if m.scheduler.Grants.OverdrawTokens(j, n) {
		m.signals.MarkDue(j.ID)
	}
	return nil
}

// raiseReservation raises what a unit has reserved to so many tokens, of which so many were taken
// of this node's grant.
func (m *Manager) raiseReservation(ctx context.Context, j *schedule.Job, h *workers.Attempt, tokens, taken int64) (bool, error) {
	before, err := m.jobs.Grants.Reserve(ctx, []nodes.Reservation{{Held: h.Held, Tokens: tokens}})
	switch {
	case err != nil: // it may have happened nevertheless
		m.scheduler.Grants.MarkOverdrawn(j)
		m.signals.MarkDue(j.ID)
		return false, err
	case before[0] == nodes.NoTokens:
		m.scheduler.Grants.NoteMissingTokens(j, tokens)
		m.signals.MarkDue(j.ID)
		return false, nil
	case before[0] < 0:
		m.scheduler.Grants.RefundTokens(j, taken)
		return false, nil
	}

	m.scheduler.Grants.AddReservation(h, tokens)
	return true, nil
}

// SpecOf returns the spec of a job, which the scheduler may not know yet: a worker
// can take up its session before the job is seen, or while it is paused.
func (m *Manager) SpecOf(ctx context.Context, j *schedule.Job) (*mapreduce.JobSpec, error) {
	if spec := m.scheduler.Grants.SpecOf(j); spec != nil {
		return spec, nil
	}
	rec, err := m.jobs.View.Record(ctx, j.ID)
	if err != nil {
		return nil, err
	}
	return &rec.Spec, nil
}
