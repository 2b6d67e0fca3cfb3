package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
)

// A reserveQuestion is a request for tokens that waits for its answer.
type reserveQuestion struct {
	tokens  int64         // the reservation in all that is asked for
	done    chan struct{} // closed when answered
	granted bool          // valid once done is closed
}

// Reserve implements agent.Calls.
func (u *unit) Reserve(ctx context.Context, tokens int64) error {
	if err := u.checkLimit(tokens); err != nil || u.job.spec.Budget == 0 {
		return err
	}
	for {
		q, mine := u.setAside(tokens)
		if q == nil {
			return nil
		}
		if mine {
			u.session.queueQuestion(u)
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

// checkLimit refuses a call that might take the attempt above what its stage gives a
// unit. Without a budget it also sets the tokens aside, which nobody else does.
func (u *unit) checkLimit(tokens int64) error {
	if u.most == 0 {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	held := u.spent.Total()
	for _, p := range u.promises {
		held += p
	}
	if held+tokens > u.most {
		return agent.Permanent(fmt.Errorf("a call of up to %d tokens is not made: limits.tokens of the stage gives a unit %d, and %d are spent or set aside",
			tokens, u.most, held))
	}
	if u.job.spec.Budget == 0 {
		i, _ := slices.BinarySearch(u.promises, tokens)
		u.promises = slices.Insert(u.promises, i, tokens)
	}
	return nil
}

// setAside promises tokens to a call if the reservation holds them. Else it
// returns the question that is open, and whether it was put by this call: one
// at a time is under way for a unit.
func (u *unit) setAside(tokens int64) (q *reserveQuestion, mine bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	free := u.granted - u.spent.Total()
	for _, p := range u.promises {
		free -= p
	}
	if tokens <= free {
		i, _ := slices.BinarySearch(u.promises, tokens)
		u.promises = slices.Insert(u.promises, i, tokens)
		return nil, false
	}
	if u.asking == nil {
		u.asking = &reserveQuestion{tokens: u.granted - free + tokens, done: make(chan struct{})}
		return u.asking, true
	}
	return u.asking, false
}

// answerQuestion answers the open request for tokens. A grant counts even if no call
// waits for it any more.
func (u *unit) answerQuestion(granted bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	q := u.asking
	if q == nil {
		return
	}
	u.asking = nil
	q.granted = granted
	if granted {
		u.granted = max(u.granted, q.tokens)
	}
	close(q.done)
}

// openReserve returns the reservation that is asked for, or 0.
func (u *unit) openReserve() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.asking == nil {
		return 0
	}
	return u.asking.tokens
}

// Spent implements agent.Calls. The agent does not say which promise the call settles.
// Spent settles the smallest promise that could have paid for the call. So the sum of
// the other promises is never below the calls truly under way, and nothing is overspent.
func (u *unit) Spent(in, out, costMicros int64) {
	t := mapreduce.Tokens{In: max(in, 0), Out: max(out, 0)}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.spent = u.spent.Add(t)
	u.cost += max(costMicros, 0)
	if n := len(u.promises); n > 0 {
		i, _ := slices.BinarySearch(u.promises, t.Total())
		i = min(i, n-1)
		u.promises = slices.Delete(u.promises, i, i+1)
	}
}

var _ agent.Saver = (*unit)(nil)

// Saved implements agent.Saver.
func (u *unit) Saved(s mapreduce.Savings) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.savings = u.savings.Add(s)
}

// Call implements agent.Calls.
func (u *unit) Call(ctx context.Context, name string, call func(context.Context) error) error {
	b := u.job.breaker
	if name != "" {
		b = u.session.breakers.breakerOf(u.job.spec, name)
	}
	return b.run(ctx, func(ctx context.Context) error {
		start := time.Now()
		defer func() { u.countCall(time.Since(start)) }()
		return call(ctx)
	})
}

// countCall counts a call that took d.
func (u *unit) countCall(d time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls++
	u.latency += d
}

var _ agent.ToolMeter = (*unit)(nil)

// ToolCalled implements agent.ToolMeter.
func (u *unit) ToolCalled(d time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tools++
	u.toolTime += max(d, 0)
}

var _ agent.PromptMeter = (*unit)(nil)

// Prompted implements agent.PromptMeter.
func (u *unit) Prompted(bytes int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.prompt = max(u.prompt, bytes)
}

// Progress implements agent.Calls.
func (u *unit) Progress(note string) {
	note = cleanText(note, mapreduce.MaxNote)
	u.mu.Lock()
	u.note = note
	u.notes++
	said := mapreduce.Progress{Held: u.attemptHeld(), Tokens: u.spent, Note: note, Number: u.notes}
	u.mu.Unlock()
	said.Running = true
	if u.talks {
		u.session.queueNote(said)
	}
}

func (u *unit) readProgress() mapreduce.Progress {
	u.mu.Lock()
	defer u.mu.Unlock()
	return mapreduce.Progress{Held: u.heldState(), Tokens: u.spent, Note: u.note, Number: u.notes}
}
