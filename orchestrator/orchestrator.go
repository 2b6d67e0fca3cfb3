// Package orchestrator is what makes a job move: it takes submissions, cuts
// documents into units, hands units to workers, records how they ended, plans
// the levels of reduction, and carries on what dead workers and orchestrators
// left. It implements mapreduce.Service for clients and protocol.Fleet for
// workers.
//
// It holds no state that matters: whatever it keeps in memory is a view of the
// store that another run can build again. It imports the store through
// store/jobs, and nothing of the workers' side.
package orchestrator

import (
	"context"
	"crypto/rand"
	"maps"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/access"
	"github.com/coditect/mapreduce/orchestrator/batches"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/dispatch"
	"github.com/coditect/mapreduce/orchestrator/grant"
	"github.com/coditect/mapreduce/orchestrator/ingest"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/lifecycle"
	"github.com/coditect/mapreduce/orchestrator/observe"
	"github.com/coditect/mapreduce/orchestrator/read"
	"github.com/coditect/mapreduce/orchestrator/review"
	"github.com/coditect/mapreduce/orchestrator/scaler"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/orchestrator/transfer"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// An Orchestrator moves jobs. Its methods are safe for concurrent use. Those for clients and
// workers believe their callers: package access stands before them, and decides who may call
// them. Most of them are those of its rooms.
type Orchestrator struct {
	*lifecycle.Steering // what clients change of jobs
	*lifecycle.Results  // what they get of them
	*read.Reader        // what they ask of them
	*read.Overview      // what they ask of servers and workers
	*review.Reviewer    // what they decide about values of their results
	*scaler.Scaler      // what autoscalers ask
	*access.CallRate    // of tenants

	jobs       *jobs.Jobs
	config     Config
	signals    cluster.Signals
	supervisor *cluster.Supervisor
	members    *cluster.Membership // of the cluster
	seals      *cluster.Seals      // of checkpoints
	scheduler  *schedule.Scheduler
	grants     *grant.Manager
	fleet      *dispatch.Fleet // of workers
	transfers  *transfer.Transfers
	committer  *dispatch.Committer
	life       *lifecycle.Lifecycle // of jobs
	intake     *ingest.Intake
}

var (
	_ mapreduce.Service = (*Orchestrator)(nil)
	_ protocol.Fleet    = (*Orchestrator)(nil)
	_ protocol.Demander = (*Orchestrator)(nil)
)

// New returns an orchestrator over j. It does nothing on its own before Run.
func New(j *jobs.Jobs, c Config) (*Orchestrator, error) {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return nil, err
	}
	o := &Orchestrator{jobs: j, config: c}

	m, err := observe.NewMetrics(c.Meter)
	if err != nil {
		return nil, err
	}

	j.SetRules(c.Rules)
	t := observe.NewTracer(c.Tracer, j.Node())

	// Each part is made after those that it is given. The hooks reach others once Run has
	// begun.
	o.supervisor = cluster.NewSupervisor(j, &o.signals, cluster.SupervisorConfig{Logger: c.Logger, Grace: c.Grace, Lease: c.Lease, Beat: c.Beat})
	o.members = cluster.NewMembership(j, cluster.Hooks{LookAtTrees: o.lookAtTrees, GrantsFreed: o.askForGrants, ExpireSession: o.expireSession}, &o.signals, o.supervisor, cluster.MembershipConfig{
		Beat: c.Beat, Lease: c.Lease, Grace: c.Grace, Seal: c.Seal, Logger: c.Logger,
		NoPrecedence: c.Without.Precedence, NoSplitReads: c.Without.SplitReads,
	})
	o.seals = cluster.NewSeals(j, o.members, &o.signals, o.supervisor, c.Seal)
	o.scheduler = schedule.New(schedule.Config{
		Node: j.Node(), Limits: c.Limits, Lease: c.Lease, Now: time.Now, NewID: newID, Jitter: mathrand.Float64,
		NoReservedSlots: c.Without.ReservedSlots,
	})

	specs := jobspec.NewFinder(j, o.scheduler.Compiled)
	checker := dispatch.NewChecker(j, specs, o.supervisor)
	taking := ingestConfig(&c, t)
	taking.InitialSlots = o.initialSlots
	o.intake = ingest.New(j, specs, &o.signals, o.supervisor, *taking)
	o.grants = grant.New(j, o.scheduler, o.members, &o.signals, o.supervisor, grant.Config{
		MaxCalls: c.MaxCalls, Poll: c.Poll, Stuck: c.Stuck, NewID: newID, Logger: c.Logger,
	})

	o.life = lifecycle.New(lifecycle.Parts{
		Jobs: j, Specs: specs, Scheduler: o.scheduler, Grants: o.grants, Members: o.members, Seals: o.seals, Intake: o.intake, Signals: &o.signals, Supervisor: o.supervisor,
		EndWaits: func(ctx context.Context, id mapreduce.JobID, units []records.Sleeper) ([]records.Candidate, []error, error) {
			return o.EndWaits(ctx, id, units)
		},
	}, lifecycle.Config{
		Adopt: c.Adopt, Poll: c.Poll, Retire: c.Retire, Grace: c.Grace, AtOnce: jobsAtOnce(c.Exclusive), SmallResult: c.SmallResult, Logger: c.Logger,
		AsksModels: func(provider string) bool { return c.Provider(provider).Models }, Warms: c.Warms, WarmFor: c.WarmFor, Ended: endedHook(m, t),
	})
	o.Steering, o.Results = o.life.Steering, o.life.Results

	b := batches.New(j, o.scheduler, o.grants, specs, &o.signals, o.supervisor, batches.Config{
		Linger: c.BatchLinger, Most: c.BatchWait, Fresh: batchFresh, NewMark: newMark, Metrics: m, Room: func(provider, model string) protocol.BatchRoom { return c.Limits(provider + "/" + model).Batches },
		Address: c.Address, MaxCalls: c.MaxCalls, Rates: c.Rates, Offer: c.Offer, Estimate: c.Estimate,
	})
	o.Reader = read.New(j, specs, o.scheduler, o.seals, &o.signals, read.Config{Verify: checker.VerifyOutput, AnswerBytes: c.AnswerBytes, AnswerAge: c.AnswerAge, Until: b.Until})
	o.Reviewer = review.New(j, &o.signals, review.Sources{
		StoredAt: o.StoredAt, Schema: o.Schema, Text: o.ReadText, Specs: specs, Verify: checker.VerifyOutput, Enqueue: o.scheduler.Enqueue,
	})
	o.CallRate = access.NewCallRate(j, time.Now)
	o.Scaler = scaler.New(j, o.scheduler, scaler.Config{MaxCalls: int64(c.MaxCalls), Rates: c.Rates})

	o.transfers = transfer.New(j, o.scheduler, o.grants, specs, o.supervisor, transfer.Config{AnswerBytes: c.AnswerBytes, AnswerAge: c.AnswerAge})
	o.fleet = dispatch.NewFleet(dispatch.FleetParts{
		Jobs: j, Scheduler: o.scheduler, Grants: o.grants, Checker: checker, Transfers: o.transfers, Batches: b, Signals: &o.signals, Supervisor: o.supervisor, Metrics: m, Tracing: t,
	}, dispatch.FleetConfig{
		Lease: c.Lease, Heartbeat: c.Heartbeat, Grace: c.Grace, Poll: c.Poll, Logger: c.Logger,
	})
	o.Overview = read.NewOverview(read.OverviewParts{
		Jobs: j, Scheduler: o.scheduler, Members: o.members, Supervisor: o.supervisor, Scaler: o.Scaler, Opened: o.fleet.Opened(),
	})
	o.committer = dispatch.NewCommitter(dispatch.CommitterParts{
		Jobs: j, Scheduler: o.scheduler, Members: o.members, Transfers: o.transfers, Batches: b, Signals: &o.signals, Supervisor: o.supervisor, Logger: c.Logger, Metrics: m, Tracing: t,
	})

	return o, observe.RegisterGauges(c.Meter, o.observedFleet())
}

// Run moves jobs until ctx ends. Then it says goodbye to its workers, waits for
// what is in flight, and returns. Units that are running go on.
func (o *Orchestrator) Run(ctx context.Context) error {
	if err := o.members.Join(ctx, o.config.Exclusive); err != nil {
		return err
	}

	// Commits go on until the workers have left, so that their last reports are taken.
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)

	var committers, loops sync.WaitGroup
	for range o.config.Committers {
		committers.Go(func() { o.supervisor.RunLoop(work, "committing", o.committer.Loop) })
	}
	for name, loop := range o.backgroundLoops() {
		loops.Go(func() { o.supervisor.RunLoop(ctx, name, loop) })
	}
	o.fleet.Open()

	<-ctx.Done()
	loops.Wait()
	o.fleet.Drain()
	o.scheduler.Close()
	stop(dispatch.ErrStopped)
	committers.Wait()
	return nil
}

// backgroundLoops are what an orchestrator does beside committing, by name.
func (o *Orchestrator) backgroundLoops() map[string]func(context.Context) {
	loops := o.life.Loops()
	maps.Copy(loops, map[string]func(context.Context){
		"beats": o.members.BeatLoop, "failover": o.members.FailoverLoop, "seals": o.seals.Loop, "limits": o.grants.LimitsLoop,
		"keepalive": o.fleet.KeepaliveLoop, "silence": o.fleet.SilenceLoop, "trim answers": o.transfers.TrimAnswersLoop,
	})
	return loops
}

// Started returns a channel that closes once the orchestrator moves jobs.
func (o *Orchestrator) Started() <-chan struct{} { return o.fleet.Opened() }

// Retire says that this orchestrator is no more, so that others have at once what it was
// granted, instead of after the lease. It is to be called once Run has returned, the
// workers of this process have ended, and no more calls come. If workers elsewhere or
// submissions of this orchestrator are left, it does nothing: others take over from it as
// from one that died.
func (o *Orchestrator) Retire(ctx context.Context) error {
	return o.members.Retire(ctx)
}

// newID draws an identifier: of claims, sessions and orchestrators.
func newID() string { return rand.Text() }

// newMark draws the mark of a batch: letters and digits, as few as are never drawn twice.
func newMark() string { return rand.Text()[:20] }
