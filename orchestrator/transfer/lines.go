package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/json"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
)

// putLine stores a request of the unit whose attempt a session holds, which is to go by batch.
func (t *Transfers) putLine(ctx context.Context, session *workers.Session, q *protocol.BlobRequest, next func() ([]byte, error)) (*protocol.BlobStored, error) {
	data, err := CollectPut(&q.Blob, protocol.MaxLine, "a request that is put", next)
	if err != nil {
		return nil, err
	}

	var line protocol.Line
	if err := json.Unmarshal(data, &line); err != nil {
		return nil, errs.Field("blob", "is no request: %v", err)
	}
	switch {
	case len(line.Key) != sha256.Size:
		return nil, errs.Field("blob.key", "has %d bytes; a SHA-256 has %d", len(line.Key), sha256.Size)
	case line.Provider == "" || line.Model == "" || len(line.Request) == 0:
		return nil, errs.Field("blob", "names no provider, no model, or asks nothing")
	case line.Size < 0 || line.MostLines < 0 || line.MostBytes < 0 || line.Fewest < 0 || line.Tokens < 0 || line.Tokens > protocol.MaxLine:
		return nil, errs.Field("blob", "has a size or a limit below zero")
	}

	err = t.supervisor.RetryStoreCall(ctx, "storing a request that goes by batch", func() error {
		return t.jobs.Batches.PutLine(ctx, q.Held, session.ID, &line)
	})
	if err != nil {
		return nil, err
	}
	return &protocol.BlobStored{Length: q.Blob.Length, SHA256: q.Blob.SHA256}, nil
}

// sendReply writes what became of a request of a unit that went by batch.
func (t *Transfers) sendReply(ctx context.Context, q *protocol.BlobRequest, w *rangeWriter) error {
	if len(q.Blob.Key) != sha256.Size {
		return errs.Field("blob.key", "is missing")
	}

	data, err := t.jobs.Batches.Reply(ctx, q.Held, q.Blob.Key)
	if errs.KindOf(err) == errs.Unavailable { // asking again at once does not help
		return errs.New(errs.NotFound, "%v", err)
	}
	if err != nil {
		return err
	}
	return w.write(data)
}
