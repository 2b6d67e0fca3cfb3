package wire

import (
	"context"

	"github.com/coditect/mapreduce/worker/llm"
)

// Get gets a JSON document from a path below the base, and decodes it. The error is an *llm.Error.
func (d *Dialer) Get(ctx context.Context, path string, answer any) error {
	c := d.BeginCall(ctx, new(llm.Request))
	defer c.EndCall()
	return c.SendFor(Request{Path: path}, answer)
}
