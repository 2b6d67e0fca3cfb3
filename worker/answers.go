package worker

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/protocol"
)

// Shares implements agent.Calls.
func (c *calls) Shares() bool { return c.job.spec.Cache }

// Answer implements agent.Calls. An answer that cannot be got is as good as none.
func (c *calls) Answer(ctx context.Context, key []byte) ([]byte, error) {
	ctx, stop := c.attemptContext(ctx)
	defer stop()

	var data []byte
	err := c.session.transfers.Get(ctx, c.held, protocol.Blob{Kind: protocol.BlobAnswer, Key: key}, func(part []byte) error {
		if len(data)+len(part) > protocol.MaxAnswer {
			return errs.New(errs.DataLoss, "an answer of more than %d bytes came", protocol.MaxAnswer)
		}
		data = append(data, part...)
		return nil
	})

	// An answer that is not kept, or that cannot be got, costs one call of the model: no
	// error.
	switch {
	case err == nil:
		return data, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case !errors.Is(err, errs.NotFound):
		c.session.cfg.Logger.Warn("looking for an answer of a model", "job", c.held.Job, "unit", c.held.Unit, "error", err)
	}
	return nil, nil
}

// shareWait bounds how long the report of an attempt waits for an answer that is
// being kept.
const shareWait = 5 * time.Second

// Share implements agent.Calls. The report of the attempt waits for it: behind
// that the attempt is held no more, and the answer would be refused.
func (c *calls) Share(key, answer []byte) {
	if len(answer) == 0 || len(answer) > protocol.MaxAnswer {
		return
	}

	s := c.session
	s.mu.Lock()
	defer s.mu.Unlock()

	// The put is begun under the lock, so that no report goes out in between without
	// waiting for it.
	sum := sha256.Sum256(answer)
	b := protocol.Blob{Kind: protocol.BlobAnswer, Key: key, SHA256: sum[:]}

	s.deliveries.beginPut(c.entry, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, shareWait)
		defer cancel()
		if err := s.transfers.Put(ctx, c.held, b, answer, 1); err != nil {
			s.cfg.Logger.Warn("keeping the answer of a model", "job", c.held.Job, "unit", c.held.Unit, "error", err)
		}
	})
}
