package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
)

// Reserve implements agent.Calls.
func (u *unit) Reserve(ctx context.Context, tokens int64) error {
	if err := u.storeBefore(ctx, tokens); err != nil {
		return err
	}

	if err := u.checkLimit(tokens); err != nil || !u.bounded {
		return err
	}

	// The answer may be to the question of another call of this unit, or too small for this
	// one as well, so what is reserved is looked at again after each.
	for {
		q, mine := u.setAside(tokens)
		if q == nil {
			return nil
		}
		if mine {
			u.session.out.queueQuestion(u)
		}

		select {
		case <-q.done:
			if mine && !q.granted {
				return fmt.Errorf("reservation of %d tokens: %w", q.tokens, agent.ErrBudget)
			}
		case <-u.ctx.Done():
			return context.Cause(u.ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Call implements agent.Calls.
func (u *unit) Call(ctx context.Context, name string, call func(context.Context) error) error {
	b := u.job.breaker
	if name != "" {
		b = u.session.breakers.Of(u.job.spec, name)
	}
	return b.Run(ctx, u.counted(call))
}

// TryCall implements agent.Calls.
func (u *unit) TryCall(ctx context.Context, name string, call func(context.Context) error) error {
	return u.session.breakers.Of(u.job.spec, name).Try(ctx, u.counted(call))
}

// counted returns a call that is counted, with how long it takes.
func (u *unit) counted(call func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		start := time.Now()
		defer func() { u.countCall(time.Since(start)) }()
		return call(ctx)
	}
}

// Progress implements agent.Calls.
func (u *unit) Progress(note string) {
	said := u.addNote(cleanText(note, mapreduce.MaxNote))
	said.Held = u.attemptHeld()
	said.Running = true
	if u.talks {
		u.session.out.queueNote(said)
	}
}

// readProgress returns how far the attempt is. The session's mu is held.
func (u *unit) readProgress() mapreduce.Progress {
	p := u.progress()
	p.Held = u.heldState()
	return p
}

// Pause implements agent.Calls.
func (u *unit) Pause(wait func() error) error {
	u.session.pauseTimeout(u)
	defer u.session.restartTimeout(u)
	return wait()
}
