package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/apart"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/embedded"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/worker/step"
)

// A Mode says what a command needs from a service in this process.
type Mode int

// The modes of commands, by what they need.
const (
	ModeRead     Mode = iota // reads stored jobs
	ModeMoveJobs             // changes jobs, but runs no units
	ModeRunUnits             // also runs units
)

// A Session is a command's connection to a service: on a server, in this process, or
// in the process that holds the data directory.
type Session struct {
	mapreduce.Client
	app   *Program
	mode  Mode
	Meter *console.Meter
	node  *embedded.Node // this process's own; else nil
	conn  *client.Client // of another process; else nil
	slots int            // of a worker in this process; 0 for none yet
	ahead int            // units that it holds beside those that run
	turns bool           // calls turn to the process that holds the data directory next
}

// OpenSession returns a session, which must be closed.
func (p *Program) OpenSession(ctx context.Context, n Mode, m *console.Meter) (*Session, error) {
	s := &Session{app: p, mode: n, Meter: m}
	p.Runners.LogTools(console.NewLogger(m))
	p.Runners.Note = func(message string) { m.Note("note: %s", message) }

	if p.Global.Server == "" {
		return s, s.openOrConnect(ctx)
	}

	var err error
	if s.conn, err = p.Dial(p.Global.Server); err != nil {
		return nil, err
	}
	s.Client = s.conn
	return s, nil
}

// openOrConnect opens the store, or connects to the process that holds its directory.
func (s *Session) openOrConnect(ctx context.Context) error {
	all, err := s.app.Runners.StepRegistry()
	if err != nil {
		return err
	}
	config, err := s.app.NodeConfig(all, console.NewLogger(s.Meter))
	if err != nil {
		return err
	}

	config.ReadOnly = s.mode == ModeRead
	if err := s.app.CheckPrivacy(func(message string) { s.Meter.Note("warning: %s", message) }); err != nil {
		return err
	}

	node, conn, err := embedded.Join(ctx, config, embedded.JoinOptions{
		Waiting: func() { s.Meter.Note("%s is in use by another process; waiting for it", s.app.Global.Location) },
	})
	if err != nil {
		return fmt.Errorf("store %s: %w", s.app.Global.Location, err)
	}

	// Another process holds the directory, and its service is used.
	if conn != nil {
		s.conn, s.Client = conn, conn
		if s.turns {
			s.Client = turning{conn, s}
		}
		return nil
	}

	s.node, s.Client = node, node
	keepHeapSmall()
	return s.startNode(ctx)
}

// heapRoom is how much of what is in use the heap may grow by before it is collected, in percent.
const heapRoom = 50

// keepHeapSmall has the heap collected sooner than Go does by itself, unless the environment says
// when. About half of what a small node holds is the cache of its store, which is on the heap, has
// nothing to be looked through, and needs no room of its own size beside it.
func keepHeapSmall() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapRoom)
	}
}

// startNode starts the parts of this process's node that the command needs.
func (s *Session) startNode(ctx context.Context) error {
	if s.mode == ModeRead {
		return nil
	}

	if err := s.node.Start(ctx); err != nil {
		return errors.Join(err, s.Close())
	}

	if s.mode == ModeMoveJobs {
		return nil
	}
	if err := s.node.Listen(); err != nil {
		return errors.Join(err, s.Close())
	}

	return s.startWorkers()
}

// RunWorkerFor starts a worker for a job in this process, if the service is here too.
func (s *Session) RunWorkerFor(spec *mapreduce.JobSpec) error {
	all, err := s.app.Runners.StepRegistry()
	if err != nil {
		return err
	}
	s.slots, s.ahead = spec.Parallelism, runners.PrefetchUnits(all.Provider(spec.Provider), spec.Parallelism)
	return s.startWorkers()
}

// startWorkers starts the worker that RunWorkerFor has configured.
func (s *Session) startWorkers() error {
	if s.node == nil || s.slots == 0 {
		return nil
	}
	return s.node.Work(s.slots, s.ahead)
}

// IsHere reports whether the service is in this process, and ends with it.
func (s *Session) IsHere() bool { return s.node != nil }

// isRemote reports whether the service is on a server.
func (s *Session) isRemote() bool { return s.app.Global.Server != "" }

// Close ends the session. When it returns, all finished work is stored.
func (s *Session) Close() error {
	var err error
	switch {
	case s.node != nil:
		err = s.node.Close()
	case s.conn != nil:
		err = s.conn.Close()
	}
	s.node, s.conn = nil, nil
	return err
}

const (
	callAgain    = time.Second     // between calls to a server that does not answer
	serverWait   = 5 * time.Minute // for a server to come back
	handoverWait = 2 * time.Second // for another process to take a data directory over
	handoverLook = 100 * time.Millisecond
	attendEvery  = 5 * time.Second // between checks whether the store answers
)

// FollowJob shows a job until it does not run any more. It calls a restarted server
// again. If the process that held the data directory has ended, this process takes
// over, unless it only reads.
func (s *Session) FollowJob(ctx context.Context, id mapreduce.JobID, show func(*mapreduce.Job) error) (*mapreduce.Job, error) {
	var last *mapreduce.Job
	var lost time.Time // when the service was found to be gone; zero while it is there
	for {
		err := s.serveWatch(ctx, id, func(j *mapreduce.Job) error {
			if !lost.IsZero() && s.isRemote() {
				s.Meter.Note("the server answers again")
			}
			last, lost = j, time.Time{}
			return show(j)
		})

		switch {
		case err == nil && last != nil:
			return last, nil
		case ctx.Err() != nil:
			return last, context.Cause(ctx)
		case err != nil && !isServiceGone(err):
			return last, err
		}

		// The wait is counted from when the service was first missed.
		if lost.IsZero() {
			lost = time.Now()
			s.noteServerAway(err)
		}

		if time.Since(lost) > s.reconnectTimeout() {
			return last, err
		}
		if err := s.reconnectJob(ctx, id); err != nil {
			return last, err
		}
	}
}

// isStoreAway reports whether the service answered that its store is away.
func isStoreAway(err error) bool { return errs.ReasonOf(err) == errs.StoreAway }

func isServiceGone(err error) bool { return err != nil && errs.KindOf(err) == errs.Unavailable }

// noteServerAway tells the user that a server does not answer, and what happens then.
func (s *Session) noteServerAway(err error) {
	if s.isRemote() && !isStoreAway(err) {
		s.Meter.Note("waiting up to %s for the server %s, which does not answer; the job goes on without this command", serverWait, s.app.Global.Server)
	}
}

func (s *Session) reconnectTimeout() time.Duration {
	if s.mode == ModeRead && !s.isRemote() {
		return handoverWait
	}
	return serverWait
}

// IsOnlyReader reports whether this process has the store and only reads, so that
// nothing moves a job. On a cluster other processes may.
func (s *Session) IsOnlyReader() bool { return s.node != nil && s.mode == ModeRead && !s.node.Shared() }

// serveWatch watches a job, if some process may move it.
func (s *Session) serveWatch(ctx context.Context, id mapreduce.JobID, show func(*mapreduce.Job) error) error {
	if !s.IsOnlyReader() {
		return s.WatchJob(ctx, id, show)
	}

	job, err := s.GetJob(ctx, id)
	switch {
	case err != nil:
		return err
	case !job.State.Running():
		return show(job)
	}

	return errs.New(errs.Unavailable, "job %s is %s, and no process works on it; continue with `coditect mapreduce resume --job-id %s`",
		id, job.State, id)
}

// reconnectJob finds a service again, which then continues the job.
func (s *Session) reconnectJob(ctx context.Context, id mapreduce.JobID) error {
	if s.isRemote() {
		return clock.Sleep(ctx, callAgain)
	}

	if err := s.reopenStore(ctx); err != nil || s.mode != ModeRunUnits {
		return err
	}

	job, err := s.GetJob(ctx, id)
	if err == nil && job.State.Running() {
		_, err = s.ResumeJob(ctx, id, mapreduce.Resume{})
	}

	if isServiceGone(err) {
		return clock.Sleep(ctx, handoverLook) // again
	}
	return err
}

// WarnIfSlow calls do. While do waits because the store of the service does not answer,
// WarnIfSlow says so.
func (s *Session) WarnIfSlow(ctx context.Context, do func() error) error {
	if !s.isRemote() && (s.node == nil || !s.node.Shared()) {
		return do()
	}

	ctx, stop := context.WithCancel(ctx)
	var attending sync.WaitGroup
	service := s.Client // which do may replace
	attending.Go(func() { s.pollService(ctx, service) })
	// Deferred calls run backwards: the context ends before its goroutine is waited for.
	defer attending.Wait()
	defer stop()

	err := do()
	if isStoreAway(err) && s.isRemote() {
		return fmt.Errorf("server %s: %w", s.app.Global.Server, err)
	}
	return err
}

// pollService makes a cheap call now and then, until ctx ends.
func (s *Session) pollService(ctx context.Context, service mapreduce.Client) {
	lost := false
	for clock.Sleep(ctx, cmp.Or(s.app.AttendEvery, attendEvery)) == nil {
		_, err := service.ListJobs(ctx, mapreduce.ListJobsQuery{PageSize: 1})

		switch {
		case isStoreAway(err) && !lost:
			lost = true
			s.Meter.Note("waiting: %v", err)
		case err == nil && lost:
			lost = false
			s.Meter.Note("the store answers again")
		}
	}
}

// steadyTries bounds the calls of RetryReconnected.
const steadyTries = 3

// RetryReconnected calls do, and calls it again with another service if the first one
// goes away meanwhile.
func (s *Session) RetryReconnected(ctx context.Context, do func() error) error {
	for try, begun := 1, time.Now(); ; try++ {
		err := do()
		waits := s.mode == ModeRunUnits && isStoreAway(err) && time.Since(begun) < serverWait
		if !isServiceGone(err) || ctx.Err() != nil || try >= steadyTries && !waits {
			return err
		}

		if s.isRemote() || isStoreAway(err) {
			err = clock.Sleep(ctx, callAgain)
		} else {
			err = s.reopenStore(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// reopenStore opens the data directory again, or connects to the process that now
// holds it.
func (s *Session) reopenStore(ctx context.Context) error {
	if err := s.Close(); err != nil && !isServiceGone(err) {
		s.Meter.Note("closing the connection: %v", err)
	}
	if s.mode == ModeRead {
		if err := clock.Sleep(ctx, handoverLook); err != nil { // lets a process that waits to work take over
			return err
		}
	}
	return s.openOrConnect(ctx)
}

// WaitForClients waits until no other process waits for a job here.
func (s *Session) WaitForClients(ctx context.Context) {
	if s.node == nil || s.node.CountClients() == 0 {
		return
	}
	s.Meter.Note("this process also runs the jobs of other commands on %s, and waits until they have ended; there are %d; Ctrl-C hands their jobs over to them", s.app.Global.Location, s.node.CountClients())
	_ = s.node.WaitForClients(ctx) // interrupted, the others take over
}

// NodeConfig returns the configuration of the service in this process.
func (p *Program) NodeConfig(all *step.Registry, log *slog.Logger) (embedded.Config, error) {
	hook, err := p.failpointHook()
	if err != nil {
		return embedded.Config{}, err
	}

	rates, err := p.Runners.PlanRates()
	if err != nil {
		return embedded.Config{}, err
	}
	limits, err := p.Runners.Limits.ModelLimits()
	if err != nil {
		return embedded.Config{}, err
	}
	askers, err := p.Runners.KnowingAll()
	if err != nil {
		return embedded.Config{}, err
	}
	formats, err := p.Runners.DocumentFormats()
	if err != nil {
		return embedded.Config{}, err
	}
	check, err := p.Runners.SpecCheck()
	if err != nil {
		return embedded.Config{}, err
	}
	advise, err := p.Runners.SpecAdvice()
	if err != nil {
		return embedded.Config{}, err
	}

	cost, err := p.Runners.JobCost()
	if err != nil {
		return embedded.Config{}, err
	}

	offers, err := p.Runners.Offers()
	if err != nil {
		return embedded.Config{}, err
	}
	batches, err := p.Runners.Batches()
	if err != nil {
		return embedded.Config{}, err
	}

	g := &p.Global
	return embedded.Config{
		MaxCalls: p.Runners.Limits.MaxCalls, ModelLimits: limits,
		Dir: g.Location.Dir, Cluster: g.Location.cluster, Steps: all, Parsers: formats.Parsers(), Tools: p.Runners.OfferedTools(), Limits: p.Runners.Gates, Manners: p.Runners.Manners, Batches: batches, Version: p.Version, Rates: rates, Look: runners.Looker(askers), Hook: hook, Logger: log,
		Overhead: runners.PromptOverhead(askers), Answer: runners.MostAnswer, Cost: cost, Offer: offers, Address: runners.AddressOf, Check: check, Advise: advise, Warms: runners.NeedsPriming(askers),
		Lease: g.Timing.lease, Heartbeat: g.Timing.heartbeat, Grace: g.Timing.grace,
		StartApart: p.Self.Starter(apart.Whose(p.Runners.Models.Fleet)), DrawPages: p.Runners.DrawPages,
		Meter: p.Telemetry.Meter(), Tracer: p.Telemetry.Tracer(), Dial: p.Telemetry.DialOptions(), Serve: p.Telemetry.ServerOptions(),
	}, nil
}

// failpointHook returns the hook that kills this process at the failpoint that the
// environment names, for tests.
func (p *Program) failpointHook() (failpoint.Hook, error) {
	h, err := failpoint.Parse(p.Getenv(failpoint.Variable))
	if err != nil {
		return nil, exit.UsageError("%s: %w", failpoint.Variable, err)
	}
	return h, nil
}
