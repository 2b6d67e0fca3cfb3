package dispatch

import (
	"context"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/memory"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
)

// MaxTransfers is how many blobs a session may get at once, and how many it may
// put. What each holds here is bounded, so what a session holds is.
const MaxTransfers = 16

const (
	transferBytes = 1 << 20                // that a transfer holds at most, beside outputs held whole
	transferPause = 200 * time.Millisecond // before one that was refused is tried again
)

var _ protocol.Blobs = (*Fleet)(nil)

// GetBlob implements protocol.Blobs.
func (f *Fleet) GetBlob(ctx context.Context, q *protocol.BlobRequest, take func([]byte) error) error {
	ctx, session, end, err := f.beginTransfer(ctx, q, func(s *workerStream) *int { return &s.gets })
	if err != nil {
		return err
	}
	defer end()
	if q.Blob.Kind.OfBatch() {
		return f.batches.Get(ctx, session, q, take)
	}
	return f.transfers.Get(ctx, session, q, take)
}

// PutBlob implements protocol.Blobs.
func (f *Fleet) PutBlob(ctx context.Context, q *protocol.BlobRequest, next func() ([]byte, error)) (*protocol.BlobStored, error) {
	ctx, session, end, err := f.beginTransfer(ctx, q, func(s *workerStream) *int { return &s.puts })
	if err != nil {
		return nil, err
	}
	defer end()
	if q.Blob.Kind.OfBatch() {
		return f.batches.Put(ctx, session, q, next)
	}
	return f.transfers.Put(ctx, session, q, next)
}

// beginTransfer admits a transfer of a session whose stream is here: it ends with
// that stream. Count is what it counts as.
func (f *Fleet) beginTransfer(ctx context.Context, q *protocol.BlobRequest, count func(*workerStream) *int) (context.Context, *workers.Session, func(), error) {
	// A transfer that waits for memory does not count as a stream yet.
	if err := memory.Hold(ctx, transferBytes); err != nil {
		return nil, nil, nil, err
	}
	if err := f.admission.admitStream(ctx); err != nil {
		return nil, nil, nil, err
	}

	session := f.scheduler.Sessions.Bound(q.Session)
	if session == nil {
		f.admission.streams.Done()
		return nil, nil, nil, errs.New(errs.Aborted, "session %s has no stream to this orchestrator", q.Session)
	}

	stream := streamOf(session)
	stream.mu.Lock()
	defer stream.mu.Unlock()
	n := count(stream)

	if *n >= MaxTransfers {
		f.admission.streams.Done()
		err := errs.New(errs.Exhausted, "session %s has %d transfers of this direction under way; end one first", q.Session, *n)
		err.RetryAfter = transferPause
		return nil, nil, nil, err
	}
	*n++

	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(stream.life, func() { cancel(errStreamEnded) })
	return ctx, session, func() {
		stop()
		cancel(nil)
		stream.mu.Lock()
		*n--
		stream.mu.Unlock()
		f.admission.streams.Done()
	}, nil
}

var errStreamEnded = errs.New(errs.Aborted, "the stream of the session has ended; go on where it has the next")
