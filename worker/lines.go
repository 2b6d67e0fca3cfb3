package worker

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/protocol"
)

// PutLine implements agent.Calls. What an earlier line came to, which was paid for, is in the journal alone
// once this one is put.
func (c *calls) PutLine(ctx context.Context, line *protocol.Line) error {
	ctx, stop := c.attemptContext(ctx)
	defer stop()
	if c.journal.Waiting() > 0 {
		if err := c.journal.Sync(ctx); err != nil && ctx.Err() != nil {
			return err
		}
	}

	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	return c.session.transfers.Put(ctx, c.held, protocol.Blob{Kind: protocol.BlobLine, Key: line.Key, SHA256: sum[:]}, data, 0)
}

// LineReply implements agent.Calls.
func (c *calls) LineReply(ctx context.Context, key []byte) (*protocol.LineReply, error) {
	ctx, stop := c.attemptContext(ctx)
	defer stop()

	var data []byte
	err := c.session.transfers.Get(ctx, c.held, protocol.Blob{Kind: protocol.BlobLineReply, Key: key}, func(part []byte) error {
		if len(data)+len(part) > 2*protocol.MaxLine {
			return errs.New(errs.DataLoss, "what became of a line has more than %d bytes", 2*protocol.MaxLine)
		}
		data = append(data, part...)
		return nil
	})
	if errors.Is(err, errs.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	var reply protocol.LineReply
	if err := json.Unmarshal(data, &reply); err != nil {
		return nil, errs.New(errs.DataLoss, "what became of a line cannot be read: %v", err)
	}
	return &reply, nil
}
