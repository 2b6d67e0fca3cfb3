package server

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/wire"
	"github.com/coditect/mapreduce/api/wire/fault"
	"github.com/coditect/mapreduce/api/wire/parts"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

var (
	_ pb.WorkerServiceServer = (*workers)(nil)
	_ protocol.WorkStream    = (*workStream)(nil)
)

// workers serves the sessions of workers, and their transfers of blobs.
type workers struct {
	pb.UnimplementedWorkerServiceServer
	fleet     protocol.Fleet
	split     int           // bytes above which a message is sent as several
	idle      time.Duration // how long a transfer waits for the worker
	recovered func(ctx context.Context, method string, call func(context.Context) error) error
	transfers sync.WaitGroup
}

type bidiStream = grpc.BidiStreamingServer[pb.WorkRequest, pb.WorkResponse]

// Work carries one session.
func (w *workers) Work(stream bidiStream) error {
	return w.fleet.Work(stream.Context(), &workStream{stream: stream, split: w.split})
}

// A workStream is a session's stream in the words of the Fleet.
type workStream struct {
	stream bidiStream
	split  int         // bytes
	direct atomic.Bool // nothing is between the worker and this server
}

// Send sends m, in several messages if it is large. It waits while the worker
// is slow to read.
func (s *workStream) Send(m *protocol.ToWorker) error {
	for p := range parts.SplitResponse(wire.EncodeToWorker(m), s.split) {
		if err := s.stream.Send(p); err != nil {
			return fault.Error(err)
		}
	}
	return nil
}

// Recv returns the worker's next message.
func (s *workStream) Recv() (*protocol.FromWorker, error) {
	p, err := s.stream.Recv()
	if err != nil {
		return nil, fault.Error(err)
	}

	m, err := wire.DecodeFromWorker(p)
	if err == nil && m.Hello != nil {
		s.direct.Store(connectionFrom(s.stream.Context()).reaches(m.Hello.Address))
	}
	return m, err
}

// ClosedByWorker implements protocol.WorkStream.
func (s *workStream) ClosedByWorker() bool {
	c := connectionFrom(s.stream.Context())
	return c != nil && c.closed.Load() && s.direct.Load()
}

// GetBlob sends a blob as fast as the worker reads it, and holds no more of it
// than the stream has room for.
func (w *workers) GetBlob(req *pb.GetBlobRequest, stream grpc.ServerStreamingServer[pb.GetBlobResponse]) error {
	q, err := wire.DecodeGetBlob(req)
	if err != nil {
		return err
	}

	return w.transferBlob(stream.Context(), pb.WorkerService_GetBlob_FullMethodName, func(ctx context.Context, turn *turn) error {
		cutter := parts.NewCutter(q.Blob.Start, func(p *pb.BlobPart) error {
			return turn.waitFor(func() error { return stream.Send(&pb.GetBlobResponse{Part: p}) })
		})

		if err := w.fleet.GetBlob(ctx, q, cutter.Add); err != nil {
			return err
		}

		return turn.waitFor(func() error { return stream.Send(&pb.GetBlobResponse{Sha256: cutter.Sum()}) })
	})
}

// PutBlob stores a blob. It reads a part when the fleet asks for it, so a slow
// store slows the worker down.
func (w *workers) PutBlob(stream grpc.ClientStreamingServer[pb.PutBlobRequest, pb.PutBlobResponse]) error {
	return w.transferBlob(stream.Context(), pb.WorkerService_PutBlob_FullMethodName, func(ctx context.Context, turn *turn) error {
		var m *pb.PutBlobRequest
		receive := func() (err error) {
			m, err = stream.Recv()
			return err
		}

		if err := turn.waitFor(receive); errors.Is(err, io.EOF) {
			return errs.Field("blob", "is missing: nothing was sent")
		} else if err != nil {
			return err
		}

		q, err := wire.DecodePutBlob(m)
		if err != nil {
			return err
		}

		checker := parts.NewChecker(q.Blob.Start)
		fresh := m.GetPart() != nil // m has a part that was not taken
		stored, err := w.fleet.PutBlob(ctx, q, func() ([]byte, error) {
			if !fresh {
				if err := turn.waitFor(receive); err != nil {
					return nil, err
				}
			}
			fresh = false
			return checker.Add(m.GetPart())
		})
		if err != nil {
			return err
		}

		return turn.waitFor(func() error { return stream.SendAndClose(wire.EncodeBlobStored(stored)) })
	})
}

// transferBlob moves a blob. It ends when the worker neither sends nor reads for too
// long, since a worker that requests blobs and does not read them would otherwise keep
// the memory held for them.
func (w *workers) transferBlob(ctx context.Context, method string, move func(context.Context, *turn) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, maxTransfer, errs.New(errs.Deadline, "the blob was not transferred within %v; go on with the rest", maxTransfer))
	defer cancel()

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	t := &turn{most: w.idle, timer: time.AfterFunc(w.idle, func() {
		stop(errs.New(errs.Deadline, "the worker took or sent no part of the blob for %v; go on with the rest", w.idle))
	})}
	defer t.timer.Stop()

	// It runs only while the transfer waits for its worker.
	t.timer.Stop()

	moved := make(chan error, 1)
	w.transfers.Go(func() { // Send and Recv end when the stream does, which may be after transfer
		moved <- w.recovered(ctx, method, func(ctx context.Context) error { return move(ctx, t) })
	})

	select {
	case err := <-moved:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// maxTransfer is how long one transfer of a blob may take; it can be resumed.
const maxTransfer = 15 * time.Minute

// A turn bounds how long a transfer waits for its worker at a time. What the store
// takes does not count.
type turn struct {
	most  time.Duration
	timer *time.Timer // ends the transfer
}

// waitFor makes a call that waits for the worker.
func (t *turn) waitFor(call func() error) error {
	t.timer.Reset(t.most)
	defer t.timer.Stop()
	return fault.Error(call())
}
