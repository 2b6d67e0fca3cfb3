package client

import (
	"context"
	"errors"
	"io"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/wire"
	"github.com/coditect/mapreduce/api/wire/fault"
	"github.com/coditect/mapreduce/api/wire/parts"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

var _ protocol.Blobs = blobs{}

// blobs transfers blobs over streams of their own.
type blobs struct {
	workers pb.WorkerServiceClient
}

// GetBlob implements protocol.Blobs. No more is under way than the stream has
// room for: a take that is slow slows the orchestrator down.
func (b blobs) GetBlob(ctx context.Context, q *protocol.BlobRequest, take func(part []byte) error) error {
	// The stream ends with this call, also if take fails.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	stream, err := b.workers.GetBlob(ctx, wire.EncodeGetBlob(q))
	if err != nil {
		return fault.Error(err)
	}

	checker, whole := parts.NewChecker(q.Blob.Start), false
	for {
		m, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && whole:
			return nil
		case errors.Is(err, io.EOF):
			return errs.New(errs.Unavailable, "the stream of a blob ended before its last part")
		case err != nil:
			return fault.Error(err)
		case whole:
			return errs.Field("part", "comes after the last part of the blob")
		}

		data, err := checker.Add(m.GetPart())
		if err == nil && len(data) > 0 {
			err = take(data)
		}
		if whole = len(m.GetSha256()) > 0; whole && err == nil {
			err = checker.Close(m.GetSha256())
		}

		if err != nil {
			return err
		}
	}
}

// PutBlob implements protocol.Blobs.
func (b blobs) PutBlob(ctx context.Context, q *protocol.BlobRequest, next func() ([]byte, error)) (*protocol.BlobStored, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	stream, err := b.workers.PutBlob(ctx)
	if err != nil {
		return nil, fault.Error(err)
	}

	cutter := parts.NewCutter(q.Blob.Start, func(p *pb.BlobPart) error {
		return stream.Send(&pb.PutBlobRequest{Part: p})
	})

	err = stream.Send(wire.EncodePutBlob(q))
	for err == nil {
		var data []byte
		if data, err = next(); err == nil {
			err = cutter.Add(data)
		}
	}

	if !errors.Is(err, io.EOF) { // of next or of the stream, whose reply says why
		return nil, fault.Error(err)
	}

	reply, err := stream.CloseAndRecv()
	if err != nil {
		return nil, fault.Error(err)
	}
	return wire.DecodeBlobStored(reply), nil
}
