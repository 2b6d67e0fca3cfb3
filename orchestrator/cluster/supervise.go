package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A SupervisorConfig says how a Supervisor works. All of it must be set.
type SupervisorConfig struct {
	Logger *slog.Logger
	Grace  time.Duration // that a worker has to come back
	Lease  time.Duration // that it has if the store was away meanwhile
	Beat   time.Duration // between two signs of life
}

// A Supervisor keeps the work of an orchestrator going when something fails: it contains
// panics, begins loops anew, repeats calls that the store did not answer, and keeps what
// fails again and again from filling the log. All parts share it. Its methods are safe for
// concurrent use.
type Supervisor struct {
	config   SupervisorConfig
	log      *slog.Logger
	jobs     *jobs.Jobs
	signals  *Signals
	throttle errorThrottle
	uptime   storeUptime
}

// NewSupervisor returns a supervisor that fails jobs in the store for what panics, and has
// signals call what is due later.
func NewSupervisor(j *jobs.Jobs, signals *Signals, c SupervisorConfig) *Supervisor {
	return &Supervisor{config: c, log: c.Logger, jobs: j, signals: signals}
}

// ErrPanic is what a panic becomes. What caused it is a mistake of this program,
// which the same job would run into again.
var ErrPanic = errors.New("internal error: this is a mistake of the program; its log has the stack")

// ContainPanic calls fn and makes a panic an error, with its stack in the log: one job
// must not end the process that runs all others.
func (s *Supervisor) ContainPanic(ctx context.Context, what string, fn func() error, about ...any) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}

		err = errs.New(errs.Internal, "%s: %v: %w", what, p, ErrPanic)
		if _, due := s.throttle.noteFailure("panic: "+what+fmt.Sprint(about...), time.Now()); due {
			s.log.ErrorContext(ctx, "panic", append(about, "in", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))...)
		}
	}()
	return fn()
}

// ForJob does something for a job. The job fails if that panics.
func (s *Supervisor) ForJob(ctx context.Context, id mapreduce.JobID, what string, fn func()) {
	if err := s.ContainPanic(ctx, what, func() error { fn(); return nil }, "job", id); err != nil {
		s.FailJob(ctx, id, err)
	}
}

// FailJob fails a job for an error that is not of the moment, and reports whether it could.
// A job that does not run stays as it is.
func (s *Supervisor) FailJob(ctx context.Context, id mapreduce.JobID, why error) bool {
	err := s.ContainPanic(ctx, "failing a job", func() error {
		return s.jobs.Lifecycle.Fail(ctx, id, records.AnyEpoch, why.Error())
	}, "job", id)
	s.LogFailure(ctx, "failing a job", err, "job", id, "because", why)
	s.signals.NotifyWatchers(id)
	s.signals.CallAt(time.Now().Add(restartAfter), func(context.Context) { s.signals.MarkDue(id) })
	return err == nil
}

// restartAfter is how long a loop rests that a panic has ended.
const restartAfter = time.Second

// RunLoop runs a loop that belongs to no job until it ends. If the loop panics, RunLoop
// starts it again.
func (s *Supervisor) RunLoop(ctx context.Context, name string, loop func(context.Context)) {
	for {
		err := s.ContainPanic(ctx, name, func() error { loop(ctx); return nil })
		if err == nil || clock.Sleep(ctx, restartAfter) != nil {
			return
		}
	}
}

// CallEvery calls fn about every d, until ctx ends.
func CallEvery(ctx context.Context, d time.Duration, fn func()) {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			fn()
		}
	}
}

// WithJitter returns d, up to a quarter more or less, so that many do not act in
// step.
func WithJitter(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2+1) //nolint:gosec // a pause is no secret
}

// FirstPause is the first pause after a call of the store that failed, and
// LongestPause bounds the pauses after further ones.
const (
	FirstPause   = 50 * time.Millisecond
	LongestPause = 5 * time.Second
)

// RetryStoreCall does what a worker's message asks of the store, until the store has done
// it. While the store is away the stream waits: its worker has nowhere better to go, and
// would lose its units if it were cut off.
func (s *Supervisor) RetryStoreCall(ctx context.Context, what string, do func() error) error {
	for pause := FirstPause; ; pause = min(2*pause, LongestPause) {
		err := do()
		if err == nil || !store.Retryable(err) || errors.Is(err, store.ErrNoSpace) {
			return err
		}
		s.LogFailure(ctx, what+"; trying again", err)
		if cause := clock.Sleep(ctx, pause); cause != nil {
			return cause
		}
	}
}
