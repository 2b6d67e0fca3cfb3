package servertest

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
)

var _ protocol.Fleet = (*Fleet)(nil)

// A Fleet gives every worker the same messages once it has said hello, and
// accepts every report.
type Fleet struct {
	Messages []*protocol.ToWorker // sent after Welcome

	// Received, if not nil, gets every message of every worker. Its reader sets
	// the pace.
	Received chan<- *protocol.FromWorker

	Blobs map[mapreduce.UnitID][]byte // that workers may get, whatever their kind
	Put   chan<- []byte               // gets every part of every blob that is put
}

// Work implements protocol.Fleet.
func (f *Fleet) Work(ctx context.Context, stream protocol.WorkStream) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if first.Hello == nil {
		return errs.Field("hello", "must come first")
	}

	welcome := &protocol.Welcome{Node: "memory", Epoch: 1, Heartbeat: 3 * time.Second, Drop: first.Hello.Holding}
	if err := stream.Send(&protocol.ToWorker{Welcome: welcome}); err != nil {
		return err
	}

	for _, m := range f.Messages {
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	return f.answerWorker(ctx, stream)
}

func (f *Fleet) answerWorker(ctx context.Context, stream protocol.WorkStream) error {
	for {
		m, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}

		if f.Received != nil {
			select {
			case f.Received <- m:
			case <-ctx.Done():
				return ctx.Err()
			}
		}

		if len(m.Reports) == 0 {
			continue
		}
		if err := stream.Send(&protocol.ToWorker{Verdicts: acceptAll(m.Reports)}); err != nil {
			return err
		}
	}
}

func acceptAll(reports []protocol.Report) []protocol.VerdictOn {
	verdicts := make([]protocol.VerdictOn, len(reports))
	for i, r := range reports {
		verdicts[i] = protocol.VerdictOn{
			Held:    protocol.Held{Job: r.Job, Unit: r.Unit, Attempt: r.Attempt},
			Verdict: protocol.Accepted,
		}
	}
	return verdicts
}

// GetBlob implements protocol.Blobs: it sends what Blobs has.
func (f *Fleet) GetBlob(_ context.Context, q *protocol.BlobRequest, take func([]byte) error) error {
	data, ok := f.Blobs[q.Unit]
	if !ok {
		return errs.New(errs.NotFound, "no blob of unit %s is here", q.Unit)
	}

	end := int64(len(data))
	if q.Blob.End > 0 {
		end = q.Blob.End
	}

	if q.Blob.Start > end || end > int64(len(data)) {
		return errs.Field("blob.end_byte", "the blob has %d bytes", len(data))
	}
	return take(data[q.Blob.Start:end])
}

// PutBlob implements protocol.Blobs: it sends what comes to Put, if that is not
// nil, and says that all is stored.
func (f *Fleet) PutBlob(ctx context.Context, q *protocol.BlobRequest, next func() ([]byte, error)) (*protocol.BlobStored, error) {
	stored := &protocol.BlobStored{Length: q.Blob.Start}
	sum := sha256.New()

	for {
		part, err := next()
		if errors.Is(err, io.EOF) {
			stored.SHA256 = sum.Sum(nil)
			return stored, nil
		}
		if err != nil {
			return nil, err
		}

		sum.Write(part)
		stored.Length += int64(len(part))
		if f.Put == nil {
			continue
		}
		select {
		case f.Put <- part:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
