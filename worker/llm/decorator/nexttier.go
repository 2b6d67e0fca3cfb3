package decorator

import (
	"context"
	"errors"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/worker/llm"
)

// NextTier makes a call in flex where the vendor has room for it, and otherwise at once in the standard
// tier, if that is what is asked for: parameters.FlexFirst. What the vendor refuses for want of room costs
// nothing, and Meter has set the price of the standard tier aside, so both are one call to whatever is
// around NextTier. Other calls go through as they are.
type NextTier struct{ llm.Provider }

var _ llm.Provider = NextTier{}

// Complete implements llm.Provider.
func (n NextTier) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	if req.Parameters.Tier != parameters.FlexFirst {
		return n.Provider.Complete(ctx, req)
	}

	in := *req // providers do not change it
	in.Parameters.Tier = parameters.Flex
	res, err := n.Provider.Complete(ctx, &in)

	// A refusal that the vendor charged for is none for want of room.
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Kind != llm.RateLimited && e.Kind != llm.Overloaded || e.Usage.Total() > 0 || ctx.Err() != nil {
		return res, err
	}

	in.Parameters.Tier = parameters.Standard
	return n.Provider.Complete(ctx, &in)
}
