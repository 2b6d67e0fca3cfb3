package decorator

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/llm"
)

// Retry makes another attempt at a call that failed and may succeed. Between
// two it pauses a random time, up to a bound that doubles (full jitter), and no
// less than the vendor asked for. Is that more than Patience, the failure is
// returned at once: the unit can wait in its queue better than here.
type Retry struct {
	llm.Provider
	Attempts int           // in all. Defaults to 4
	Base     time.Duration // the first bound. Defaults to half a second
	Max      time.Duration // the last bound. Defaults to 20 seconds
	Patience time.Duration // the longest pause obeyed. Defaults to a minute

	// Elsewhere says that the call can be made to another model: then one that took too long is not
	// made again.
	Elsewhere bool

	// Random returns numbers in [0,1). It is required.
	Random func() float64
}

// Complete implements Provider.
func (r *Retry) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	attempts := cmp.Or(r.Attempts, 4)
	var usage []llm.Usage
	for n := 1; ; n++ {
		res, err := r.Provider.Complete(ctx, req)
		if err == nil {
			return withUsage(res, usage), nil
		}

		// What a failed attempt took is spent, whether or not another one succeeds.
		usage = append(usage, spentUsage(err))
		pause, again := r.retryPause(err, n)
		if !again || n >= attempts || clock.Sleep(ctx, pause) != nil {
			return nil, withSpent(err, usage)
		}
	}
}

// Embed implements llm.Embedder, if the provider does.
func (r *Retry) Embed(ctx context.Context, req *llm.EmbedRequest) (*llm.Embeddings, error) {
	embedder, ok := r.Provider.(llm.Embedder)
	if !ok {
		return nil, llm.NewError(llm.Invalid, "%s turns no texts into vectors", r.Name())
	}

	for n := 1; ; n++ {
		res, err := embedder.Embed(ctx, req)
		if err == nil {
			return res, nil
		}

		pause, again := r.retryPause(err, n)
		if !again || n >= cmp.Or(r.Attempts, 4) || clock.Sleep(ctx, pause) != nil {
			return nil, err
		}
	}
}

// retryPause returns how long to wait after the nth failure, and whether at all.
func (r *Retry) retryPause(err error, n int) (time.Duration, bool) {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Class != protocol.Retryable || r.Elsewhere && e.Kind == llm.Timeout {
		return 0, false
	}

	bound := cmp.Or(r.Base, time.Second/2)
	limit := cmp.Or(r.Max, 20*time.Second)
	for range n - 1 {
		bound = min(2*bound, limit)
	}

	wait := time.Duration(r.Random() * float64(bound))
	return e.RetryAfter + wait, e.RetryAfter <= cmp.Or(r.Patience, time.Minute)
}

// withUsage adds what failed attempts took.
func withUsage(res *llm.Response, before []llm.Usage) *llm.Response {
	for _, u := range before {
		reported := res.Usage.Reported
		res.Usage = res.Usage.Add(u)
		res.Usage.Reported = reported
	}
	return res
}

func withSpent(err error, all []llm.Usage) error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || len(all) < 2 {
		return err
	}
	sum := all[0]
	for _, u := range all[1:] {
		sum = sum.Add(u)
	}
	e.Usage = sum
	return err
}

// spentUsage returns the tokens that went into err.
func spentUsage(err error) llm.Usage {
	if e, ok := errors.AsType[*llm.Error](err); ok {
		return e.Usage
	}
	return llm.Usage{}
}
