package decorator

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/llm"
)

// NextTier makes a call in flex where the vendor has room for it, and otherwise at once in the standard
// tier, if that is what is asked for: parameters.FlexFirst. What the vendor refuses for want of room costs
// nothing, and Meter has set the price of the standard tier aside, so both are one call to whatever is
// around NextTier. Other calls go through as they are.
//
// A call that stalls in flex is broken off. Its vendor may charge it, so that is an error of its own, which is
// metered; when it is tried again, that and whatever else is asked through the same NextTier goes in the standard
// tier.
type NextTier struct {
	llm.Provider

	// Takes is how long a call in flex may take, and no longer than half of the time that its caller has left; 0 is no
	// bound.
	Takes time.Duration

	stalled atomic.Bool // a call has in flex
}

var _ llm.Provider = (*NextTier)(nil)

// errStalled is why a call in flex is broken off.
var errStalled = errors.New("it has taken too long in flex")

// Complete implements llm.Provider.
func (n *NextTier) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	if req.Parameters.Tier != parameters.FlexFirst {
		return n.Provider.Complete(ctx, req)
	}

	in := *req // providers do not change it
	if !n.stalled.Load() {
		in.Parameters.Tier = parameters.Flex
		res, err := n.inFlex(ctx, &in)

		// A refusal that the vendor charged for is none for want of room.
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Kind != llm.RateLimited && e.Kind != llm.Overloaded || e.Usage.Total() > 0 || ctx.Err() != nil {
			return res, err
		}
	}

	in.Parameters.Tier = parameters.Standard
	return n.Provider.Complete(ctx, &in)
}

// inFlex makes a call in flex, for as long as that may take.
func (n *NextTier) inFlex(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	takes := n.Takes
	if takes <= 0 {
		return n.Provider.Complete(ctx, req)
	}
	if last, ok := ctx.Deadline(); ok {
		takes = min(takes, time.Until(last)/2)
	}
	limited, stop := context.WithTimeoutCause(ctx, takes, errStalled)
	defer stop()

	res, err := n.Provider.Complete(limited, req)
	e, ok := errors.AsType[*llm.Error](err)
	switch {
	case err == nil || ctx.Err() != nil:
		return res, err
	case ok && e.Kind == llm.Timeout: // by the bound, or by one that its provider has itself
		n.stalled.Store(true)
		return nil, err
	case !errors.Is(context.Cause(limited), errStalled):
		return nil, err
	}

	// What it may have cost is what the error says with which it was broken off; without that, that it was sent.
	n.stalled.Store(true)
	stalled := &llm.Error{Kind: llm.Timeout, Class: protocol.Retryable, Sent: true, Message: errStalled.Error(), Err: err}
	if ok {
		stalled.Usage, stalled.Sent = e.Usage, e.Sent
	}
	return nil, stalled
}
