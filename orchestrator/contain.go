package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs"
)

// errPanic is what a panic becomes. What caused it is a mistake of this program,
// which the same job would run into again.
var errPanic = errors.New("internal error: this is a mistake of the program; its log has the stack")

// containPanic calls fn and makes a panic an error, with its stack in the log: one job
// must not end the process that runs all others.
func (o *Orchestrator) containPanic(ctx context.Context, what string, fn func() error, about ...any) (err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		err = errs.New(errs.Internal, "%s: %v: %w", what, p, errPanic)
		if _, due := o.errorThrottle.noteFailure("panic: "+what+fmt.Sprint(about...), time.Now()); due {
			o.log.ErrorContext(ctx, "panic", append(about, "in", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))...)
		}
	}()
	return fn()
}

// forJob does something for a job. The job fails if that panics.
func (o *Orchestrator) forJob(ctx context.Context, id mapreduce.JobID, what string, fn func()) {
	err := o.containPanic(ctx, what, func() error { fn(); return nil }, "job", id)
	if err == nil {
		return
	}
	err = o.containPanic(ctx, "failing a job", func() error {
		return o.jobs.Fail(ctx, id, jobs.AnyEpoch, err.Error())
	}, "job", id)
	if err != nil {
		o.logFailure(ctx, "failing a job after a panic", err, "job", id)
	}
	o.signals.notifyWatchers(id)
	o.signals.callAt(time.Now().Add(restartAfter), func(context.Context) { o.signals.markDue(id) })
}

// restartAfter is how long a loop rests that a panic has ended.
const restartAfter = time.Second

// runLoop runs a loop of the orchestrator's own until it ends. One that a panic
// ended begins anew.
func (o *Orchestrator) runLoop(ctx context.Context, name string, loop func(context.Context)) {
	for {
		err := o.containPanic(ctx, name, func() error { loop(ctx); return nil })
		if err == nil || waitUntil(ctx, restartAfter, nil) != nil {
			return
		}
	}
}
