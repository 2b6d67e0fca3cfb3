// Package dispatch is where the schedule meets workers. The Fleet holds their streams: it takes
// up sessions, hears reports, enters them on the schedule, sends units with what they work on,
// and sees to sessions whose workers are silent or gone. The Checker checks outputs against
// what their units were given and the schema of their job: no output goes to the store
// unchecked, and no worker is believed. The Committer carries out what the schedule decides:
// it reads queues, commits turns, which take the reports of ended attempts and claim units for
// the slots that these freed, and sends workers the verdicts and the units that came of them.
package dispatch

import (
	"errors"
	"log/slog"
	"time"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/batches"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/grant"
	"github.com/coditect/mapreduce/orchestrator/observe"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/orchestrator/transfer"
	"github.com/coditect/mapreduce/store/jobs"
)

// A FleetConfig says how a Fleet works. All of it must be set.
type FleetConfig struct {
	Lease     time.Duration // that a silent worker has
	Heartbeat time.Duration // between two signs of life of a worker
	Grace     time.Duration // that a worker whose stream broke has to come back
	Poll      time.Duration // between two searches for workers that say nothing
	Logger    *slog.Logger
}

// FleetParts are the parts of an orchestrator that a Fleet works with. All must be set,
// unless they say otherwise.
type FleetParts struct {
	Jobs       *jobs.Jobs
	Scheduler  *schedule.Scheduler
	Grants     *grant.Manager
	Checker    *Checker
	Transfers  *transfer.Transfers // of what is too large for messages
	Batches    *batches.Batches    // of calls of models, that workers see to
	Signals    *cluster.Signals
	Supervisor *cluster.Supervisor
	Metrics    *observe.Metrics // may be nil
	Tracing    *observe.Tracer  // may be nil
}

// A Fleet is the workers of an orchestrator. It does what protocol.Fleet asks. Its methods are safe for concurrent use.
type Fleet struct {
	config     FleetConfig
	jobs       *jobs.Jobs
	scheduler  *schedule.Scheduler
	grants     *grant.Manager
	reports    *reports
	Losses     *Losses // of workers
	signals    *cluster.Signals
	supervisor *cluster.Supervisor
	transfers  *transfer.Transfers
	batches    *batches.Batches
	admission  *admission
	metrics    *observe.Metrics
}

// NewFleet returns a fleet without workers. It admits none before Open.
func NewFleet(p FleetParts, c FleetConfig) *Fleet {
	admission := newAdmission()
	return &Fleet{
		config: c, jobs: p.Jobs, scheduler: p.Scheduler, grants: p.Grants, signals: p.Signals, supervisor: p.Supervisor,
		transfers: p.Transfers, batches: p.Batches, admission: admission, metrics: p.Metrics,

		reports: &reports{
			jobs: p.Jobs, scheduler: p.Scheduler, checker: p.Checker, signals: p.Signals, supervisor: p.Supervisor,
			streams: &admission.streams, log: c.Logger,
		},
		Losses: &Losses{
			jobs: p.Jobs, scheduler: p.Scheduler, grants: p.Grants, signals: p.Signals, supervisor: p.Supervisor,
			metrics: p.Metrics, tracing: p.Tracing, grace: c.Grace, log: c.Logger,
		},
	}
}

// Open begins to admit workers.
func (f *Fleet) Open() { f.admission.open() }

// Opened returns a channel that closes once workers are admitted.
func (f *Fleet) Opened() <-chan struct{} { return f.admission.opened }

// ErrStopped ends what an orchestrator does that has stopped.
var ErrStopped = errors.New("orchestrator stopped")

// Drain tells the workers to connect elsewhere, and waits until they have
// gone, or for the grace period.
func (f *Fleet) Drain() {
	f.admission.refuseStreams()

	for _, session := range f.scheduler.Sessions.All() {
		session.Peer.Send(&protocol.ToWorker{Goodbye: true})
	}

	gone := make(chan struct{})
	go func() {
		f.admission.streams.Wait()
		close(gone)
	}()

	t := time.NewTimer(f.config.Grace)
	defer t.Stop()
	for {
		select {
		case <-gone:
			return
		case <-t.C:
			for _, session := range f.scheduler.Sessions.All() {
				session.Peer.Stop(ErrStopped)
			}
			t.Reset(f.config.Grace) // for one that was being taken up
		}
	}
}
