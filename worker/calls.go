package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/outcome/journal"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/evidence"
	"github.com/coditect/mapreduce/worker/report"
)

// calls are what the agent of one attempt may ask of this worker. The agent's goroutines use
// them, as many at once as it has, and the processes of units that run apart. What may change is
// in parts that have locks of their own; the other fields are set before the agent runs. Where a
// call changes how the attempt stands, it does so in its entry, under the session's lock.
type calls struct {
	report.Account  // of tokens, calls and notes
	report.Recorder // of calls, for the trace
	*evidence.Shelf // of what tools brought

	session *session
	entry   *entry
	held    protocol.Held
	job     *job
	ctx     context.Context  // the attempt's own
	talks   bool             // its stage has tools: what it says of itself is told soon, not with signs of life alone
	journal *journal.Journal // nil before the agent is started; set with session.mu held
}

var _ agent.Calls = (*calls)(nil)

// Reserve implements agent.Calls.
func (c *calls) Reserve(ctx context.Context, tokens, costMicros int64) error {
	if err := c.storeBefore(ctx, tokens); err != nil {
		return err
	}

	if err := c.CheckLimit(tokens); err != nil || !c.Bounded {
		return err
	}

	amount := tokens
	if c.Currency == mapreduce.InDollars {
		if amount = costMicros; amount < 0 {
			return agent.PermanentJob(errNoPrice)
		}
	}

	// The answer may be to the question of another call of this unit, or too small for this
	// one as well, so what is reserved is looked at again after each.
	for {
		q, mine := c.SetAside(amount)
		if q == nil {
			return nil
		}
		if mine {
			c.session.out.queueQuestion(c.entry)
		}

		select {
		case <-q.Done:
			if mine && !q.Granted {
				return fmt.Errorf("reservation of %s: %w", c.Currency.Text(q.Amount), agent.ErrBudget)
			}
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// errNoPrice is why no call is made under a budget in dollars: what it costs nobody would know.
var errNoPrice = errors.New("the job has a budget in dollars (--max-cost), and this worker knows no price of the model; start workers with --prices FILE that has it")

// Call implements agent.Calls.
func (c *calls) Call(ctx context.Context, name string, call func(context.Context) error) error {
	b := c.job.breaker
	if name != "" {
		b = c.session.breakers.Of(c.job.spec, name)
	}
	return b.Run(ctx, c.counted(call))
}

// TryCall implements agent.Calls.
func (c *calls) TryCall(ctx context.Context, name string, call func(context.Context) error) error {
	return c.session.breakers.Of(c.job.spec, name).Try(ctx, c.counted(call))
}

// counted returns a call that is counted, with how long it takes.
func (c *calls) counted(call func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		start := time.Now()
		defer func() { c.CountCall(time.Since(start)) }()
		return call(ctx)
	}
}

// Progress implements agent.Calls.
func (c *calls) Progress(note string) {
	said := c.AddNote(report.Clean(note, protocol.MaxNote))
	said.Held = c.held
	said.Running = true
	if c.talks {
		c.session.out.queueNote(said)
	}
}

// Pause implements agent.Calls.
func (c *calls) Pause(wait func() error) error {
	c.entry.pauseTime()
	defer c.entry.restartTime()
	return wait()
}

// attemptContext returns a context that ends with ctx, or with the attempt.
func (c *calls) attemptContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.ctx, func() { cancel(context.Cause(c.ctx)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
