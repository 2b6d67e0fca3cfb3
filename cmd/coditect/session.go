package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/embedded"
	"github.com/coditect/mapreduce/cmd/coditect/internal/progress"
)

// A need is what a command wants of a service in this process.
type need int

const (
	reading need = iota // what is stored
	moving              // jobs, but no units
	working             // on units too
)

// A session is a command's connection to a service: a server's, this process's
// own, or that of the process which holds the data directory.
type session struct {
	mapreduce.Service
	app   *app
	need  need
	meter *progress.Meter
	node  *embedded.Node // this process's own; else nil
	conn  *client.Client // of another process; else nil
	slots int            // of a worker in this process; 0 for none yet
	ahead int            // units that it holds beside those that run
}

// connect returns a session, which must be closed.
func (a *app) connect(ctx context.Context, n need, m *progress.Meter) (*session, error) {
	s := &session{app: a, need: n, meter: m}
	if a.global.server == "" {
		return s, s.join(ctx)
	}
	var err error
	if s.conn, err = client.Dial(a.global.server, client.Config{}); err != nil {
		return nil, err
	}
	s.Service = s.conn
	return s, nil
}

// join opens the store, or connects to the process that holds its directory.
func (s *session) join(ctx context.Context) error {
	all, err := s.app.providers()
	if err != nil {
		return err
	}
	config, err := s.app.nodeConfig(all, logger(s.meter))
	if err != nil {
		return err
	}
	config.ReadOnly = s.need == reading
	node, conn, err := embedded.Join(ctx, config, embedded.JoinOptions{
		Waiting: func() { s.meter.Note("%s is in use by another process; waiting for it", s.app.global.place) },
	})
	if err != nil {
		return fmt.Errorf("store %s: %w", s.app.global.place, err)
	}
	if conn != nil {
		s.conn, s.Service = conn, conn
		return nil
	}
	s.node, s.Service = node, node
	return s.begin(ctx)
}

// begin makes a node of this process do what the command needs.
func (s *session) begin(ctx context.Context) error {
	if s.need == reading {
		return nil
	}
	if err := s.node.Start(ctx); err != nil {
		return errors.Join(err, s.Close())
	}
	if s.need == moving {
		return nil
	}
	if err := s.node.Listen(); err != nil {
		return errors.Join(err, s.Close())
	}
	return s.workers()
}

// work runs units in this process if the service is its own, as a job needs it.
func (s *session) work(spec *mapreduce.JobSpec) error {
	all, err := s.app.providers()
	if err != nil {
		return err
	}
	s.slots, s.ahead = spec.Parallelism, prefetch(all.Provider(spec.Provider), spec.Parallelism)
	return s.workers()
}

// workers starts the worker that was asked for.
func (s *session) workers() error {
	if s.node == nil || s.slots == 0 {
		return nil
	}
	return s.node.Work(s.slots, s.ahead)
}

// remote reports whether the service is a server's.
func (s *session) remote() bool { return s.app.global.server != "" }

// Close ends the session. What was finished is stored when it returns.
func (s *session) Close() error {
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
	callAgain    = time.Second     // between calls to a server that is not there
	serverWait   = 5 * time.Minute // for a server to come back
	handoverWait = 2 * time.Second // for another process to take a data directory over
	handoverLook = 100 * time.Millisecond
	attendEvery  = 5 * time.Second // looks whether the store answers
)

// follow shows a job until it does not run any more, whoever serves it
// meanwhile: a server that was restarted is called again, and if the process
// that held the data directory has ended, this one takes over if it works.
func (s *session) follow(ctx context.Context, id mapreduce.JobID, show func(*mapreduce.Job) error) (*mapreduce.Job, error) {
	var last *mapreduce.Job
	var lost time.Time // when the service was found to be gone; zero while it is there
	for {
		err := s.serveWatch(ctx, id, func(j *mapreduce.Job) error {
			last, lost = j, time.Time{}
			return show(j)
		})
		switch {
		case err == nil && last != nil:
			return last, nil
		case ctx.Err() != nil:
			return last, context.Cause(ctx)
		case err != nil && !gone(err):
			return last, err
		}
		if lost.IsZero() {
			lost = time.Now()
		}
		if time.Since(lost) > s.patience() {
			return last, err
		}
		if err := s.rejoin(ctx, id); err != nil {
			return last, err
		}
	}
}

// away reports whether err says that the service is there, and its store is not.
func away(err error) bool { return errs.ReasonOf(err) == errs.StoreAway }

func gone(err error) bool { return err != nil && errs.KindOf(err) == errs.Unavailable }

func (s *session) patience() time.Duration {
	if s.need == reading && !s.remote() {
		return handoverWait
	}
	return serverWait
}

// alone reports whether this process, which only reads, has the store, so that
// nothing moves a job; on a cluster others may.
func (s *session) alone() bool { return s.node != nil && s.need == reading && !s.node.Shared() }

// serveWatch watches a job, if anybody may move it.
func (s *session) serveWatch(ctx context.Context, id mapreduce.JobID, show func(*mapreduce.Job) error) error {
	if !s.alone() {
		return s.WatchJob(ctx, id, show)
	}
	job, err := s.GetJob(ctx, id)
	switch {
	case err != nil:
		return err
	case !job.State.Running():
		return show(job)
	}
	return errs.New(errs.Unavailable, "job %s is %s, and no process works on it; go on with `coditect mapreduce resume --job-id %s`",
		id, job.State, id)
}

// rejoin finds a service again and has it go on with a job.
func (s *session) rejoin(ctx context.Context, id mapreduce.JobID) error {
	if s.remote() {
		return clock.Sleep(ctx, callAgain)
	}
	if err := s.again(ctx); err != nil || s.need != working {
		return err
	}
	job, err := s.GetJob(ctx, id)
	if err == nil && job.State.Running() {
		_, err = s.ResumeJob(ctx, id, mapreduce.Resume{})
	}
	if gone(err) {
		return clock.Sleep(ctx, handoverLook) // again
	}
	return err
}

// attended does something, and says so if it takes long because the store of the
// service does not answer: what changes a job, or follows it, waits until it does.
func (s *session) attended(ctx context.Context, do func() error) error {
	if !s.remote() && (s.node == nil || !s.node.Shared()) {
		return do()
	}
	ctx, stop := context.WithCancel(ctx)
	var attending sync.WaitGroup
	service := s.Service // which do may replace
	attending.Go(func() { s.attend(ctx, service) })
	defer attending.Wait()
	defer stop()
	err := do()
	if away(err) && s.remote() {
		return fmt.Errorf("server %s: %w", s.app.global.server, err)
	}
	return err
}

// attend asks now and then for next to nothing, until ctx ends.
func (s *session) attend(ctx context.Context, service mapreduce.Service) {
	lost := false
	for clock.Sleep(ctx, cmp.Or(s.app.attendEvery, attendEvery)) == nil {
		_, err := service.ListJobs(ctx, mapreduce.ListJobsQuery{PageSize: 1})
		switch {
		case away(err) && !lost:
			lost = true
			s.meter.Note("waiting: %v", err)
		case err == nil && lost:
			lost = false
			s.meter.Note("the store answers again")
		}
	}
}

// steadyTries bounds how often steady does something.
const steadyTries = 3

// steady does something, and does it again with another service if the one that
// there was goes away meanwhile.
func (s *session) steady(ctx context.Context, do func() error) error {
	for try, begun := 1, time.Now(); ; try++ {
		err := do()
		waits := s.need == working && away(err) && time.Since(begun) < serverWait
		if !gone(err) || ctx.Err() != nil || try >= steadyTries && !waits {
			return err
		}
		if s.remote() || away(err) {
			err = clock.Sleep(ctx, callAgain)
		} else {
			err = s.again(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// again opens the data directory anew, or connects to whoever holds it now.
func (s *session) again(ctx context.Context) error {
	if err := s.Close(); err != nil && !gone(err) {
		s.meter.Note("closing the connection: %v", err)
	}
	if s.need == reading {
		if err := clock.Sleep(ctx, handoverLook); err != nil { // leaves it to who waits to work
			return err
		}
	}
	return s.join(ctx)
}

// host waits until no other process waits for a job here.
func (s *session) host(ctx context.Context) {
	if s.node == nil || s.node.Guests() == 0 {
		return
	}
	s.meter.Note("staying until other runs on %s have ended, %d now; Ctrl-C hands them over", s.app.global.place, s.node.Guests())
	_ = s.node.WaitGuests(ctx) // interrupted, the others take over
}
