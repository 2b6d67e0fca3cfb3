package decorator

import (
	"context"

	"github.com/coditect/mapreduce/worker/llm"
)

// InTier makes calls in a tier, whatever tier they ask for. It stands around Meter, which reserves the price of
// that tier, and within whatever knows a call by its request: the tier decides no answer.
type InTier struct {
	llm.Provider
	Tier string
}

var _ llm.Provider = InTier{}

// Complete implements llm.Provider.
func (t InTier) Complete(ctx context.Context, req *llm.Request) (*llm.Response, error) {
	in := *req // providers do not change it
	in.Parameters.Tier = t.Tier
	return t.Provider.Complete(ctx, &in)
}
