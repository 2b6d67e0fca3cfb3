package worker

import (
	"context"
	"fmt"

	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
)

// DrawPages calls drawn with pages of a document, whose numbers count from 1, in their order, each as
// large as fit says of its own size in pixels. A page that cannot be drawn is left out.
type DrawPages func(ctx context.Context, data []byte, pages []int, fit func(width, height int) (int, int), drawn func(agent.Picture) error) error

// picturesOf returns what the agent gets as Task.Pictures, nil for a unit whose model is shown no page.
func (c *calls) picturesOf(t *protocol.Text) func(context.Context, func(int, int) (int, int)) ([]agent.Picture, error) {
	if t == nil || t.Shown == nil {
		return nil
	}
	shown := t.Shown
	return func(ctx context.Context, fit func(int, int) (int, int)) ([]agent.Picture, error) {
		ctx, stop := c.attemptContext(ctx)
		defer stop()

		draw := c.session.cfg.DrawPages
		if draw == nil {
			return nil, fmt.Errorf("this worker draws no pages of documents: %w", agent.ErrNoPages)
		}

		// The bytes of the document are held until its pages are drawn, and no longer.
		if err := c.session.memory.Acquire(ctx, shown.Length); err != nil {
			return nil, context.Cause(ctx)
		}
		defer c.session.memory.Release(shown.Length)
		data, err := c.session.transfers.Collect(ctx, c.held, protocol.Blob{Kind: protocol.BlobOriginal, SHA256: shown.SHA256, Length: shown.Length})
		if err != nil {
			return nil, fmt.Errorf("document %s: %w", t.Document, err)
		}

		var all []agent.Picture
		err = draw(ctx, data, shown.Pages, fit, func(p agent.Picture) error {
			all = append(all, p)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("pages of %s: %w", t.Document, err)
		}
		return all, nil
	}
}
