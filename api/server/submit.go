package server

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"google.golang.org/grpc"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/memory"
	"github.com/coditect/mapreduce/api/wire"
	"github.com/coditect/mapreduce/api/wire/fault"
	"github.com/coditect/mapreduce/api/wire/parts"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

type submitStream = grpc.ClientStreamingServer[pb.SubmitJobRequest, pb.SubmitJobResponse]

// SubmitJob takes a job and its documents. Documents are read as the service
// asks for them, so a slow store slows the client down instead of filling the
// memory.
func (j *jobs) SubmitJob(stream submitStream) error {
	first, in, err := beginSubmission(stream.Context(), j, stream.Recv)
	if err != nil {
		return err
	}
	spec, err := wire.DecodeSpec(first.GetSpec())
	if err != nil {
		return err
	}

	by := callerOf(stream.Context())
	in.lease.Bill(billedTenant(by, spec.Tenant))
	job, err := j.service.SubmitJob(stream.Context(), by, spec, in.readDocuments())
	if err != nil {
		return err
	}

	return fault.Error(stream.SendAndClose(&pb.SubmitJobResponse{Job: wire.EncodeJob(job)}))
}

// PlanJob says what a job would do. Documents are read as they come, and none
// is kept.
func (j *jobs) PlanJob(stream grpc.BidiStreamingServer[pb.PlanJobRequest, pb.PlanJobResponse]) error {
	first, in, err := beginSubmission(stream.Context(), j, stream.Recv)
	if err != nil {
		return err
	}
	q, err := wire.DecodePlanQuery(first)
	if err != nil {
		return err
	}

	by := callerOf(stream.Context())
	in.lease.Bill(billedTenant(by, q.Spec.Tenant))
	p, err := j.service.PlanJob(stream.Context(), by, q, in.readDocuments())
	if err != nil {
		return err
	}

	for part := range parts.SplitPlan(wire.EncodePlan(p), planBatch) {
		if err := stream.Send(&pb.PlanJobResponse{Plan: part}); err != nil {
			return fault.Error(err)
		}
	}
	return nil
}

// planBatch is the size of a message of a plan, in bytes, about.
const planBatch = 1 << 20

// A message is one of a stream that brings documents.
type message interface {
	GetSpec() *pb.JobSpec
	GetDocuments() []*pb.DocumentPiece
}

// beginBytes is what a submission holds at least, in bytes: a message, and two parts of
// the job, one that is being stored and one that is being made.
const beginBytes = 3 << 19

// beginSubmission reads the first message of a stream, which has to have the spec, and
// returns it with the documents of the whole stream. It waits until there is room for a
// submission, and reads no more before.
func beginSubmission[M message](ctx context.Context, j *jobs, receive func() (M, error)) (first M, in *submission, err error) {
	in = &submission{
		ctx: ctx, lease: memory.Of(ctx), idle: j.idle, joiner: parts.Joiner{MaxBytes: j.maxDocument},
		receive: func() (message, error) { return receive() },
	}

	m, err := in.awaitMessage()
	switch {
	case errors.Is(err, io.EOF):
		return first, nil, errs.Field("spec", "is missing: nothing was sent")
	case err != nil:
		return first, nil, fault.Error(err)
	}

	first = m.(M)
	if first.GetSpec() == nil {
		return first, nil, errs.Field("spec", "is missing in the first message")
	}

	in.pieces = first.GetDocuments()
	// No more is read before there is room for a submission.
	return first, in, in.lease.Hold(ctx, beginBytes)
}

// A submission is a stream of documents that is read once.
type submission struct {
	ctx     context.Context // of the call, which this is a part of
	lease   *memory.Lease
	idle    time.Duration           // that it waits for a message
	receive func() (message, error) // the next message
	joiner  parts.Joiner
	pieces  []*pb.DocumentPiece // received, not yet taken
	held    int64               // bytes that the document which is coming holds
}

// awaitMessage returns the next message, unless the caller sends none for too long, or
// has to make way for others.
func (s *submission) awaitMessage() (message, error) {
	type receipt struct {
		message message
		err     error
	}

	received := make(chan receipt, 1)
	go func() { // ends with the stream, maybe after this call
		m, err := s.receive()
		received <- receipt{m, err}
	}()

	idle := time.NewTimer(s.idle)
	defer idle.Stop()

	var (
		got  receipt
		gone error
	)
	_ = s.lease.Await(func() error {
		select {
		case got = <-received:
		case <-idle.C:
			gone = errs.New(errs.Deadline, "the caller sent nothing more of its submission for %v", s.idle)
		case <-s.ctx.Done():
			gone = context.Cause(s.ctx)
		}
		return nil
	})

	if gone != nil {
		return nil, gone
	}
	return got.message, got.err
}

// readDocuments yields the documents, and at most one error, last.
func (s *submission) readDocuments() iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		for {
			doc, err := s.nextDocument()
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(nil, err)
				return
			case !yield(doc, nil):
				return
			}
		}
	}
}

// documentCopies is how many times the content of a document is held while it is dealt
// with: as it comes, as a text, and in parts.
const documentCopies = 3

// smallDocument is how large a document may be, in bytes, that its submission holds anyway.
const smallDocument = 1 << 20 / documentCopies

// holdPiece waits for room for the next piece of a large document, if that is kept. What
// the document before held is released first: its taker has dealt with it.
func (s *submission) holdPiece(p *pb.DocumentPiece) error {
	if !s.joiner.Midway() || s.joiner.Dropping() {
		s.lease.Release(s.held)
		s.held = 0
	}

	if s.joiner.Dropping() {
		return nil
	}

	if !s.joiner.Midway() {
		// The submission holds room for small documents anyway.
		if !p.GetMore() && len(p.GetContent()) < smallDocument {
			return nil
		}
	}

	n := documentCopies * int64(len(p.GetContent()))
	if err := s.lease.Hold(s.ctx, n); err != nil {
		return err
	}
	s.held += n
	return nil
}

// nextDocument returns the next document, or io.EOF when all have come whole.
func (s *submission) nextDocument() (*mapreduce.Document, error) {
	for {
		for len(s.pieces) > 0 {
			if err := s.holdPiece(s.pieces[0]); err != nil {
				return nil, err
			}
			doc, err := s.joiner.Add(s.pieces[0])
			s.pieces = s.pieces[1:]
			if doc != nil || err != nil {
				return doc, err
			}
		}

		if err := s.receivePieces(); err != nil {
			return nil, err
		}
	}
}

// receivePieces receives the next pieces.
func (s *submission) receivePieces() error {
	req, err := s.awaitMessage()
	switch {
	case errors.Is(err, io.EOF):
		if err := s.joiner.Close(); err != nil {
			return err
		}
		return io.EOF
	case err != nil:
		return fault.Error(err)
	case req.GetSpec() != nil:
		return errs.Field("spec", "was sent twice; only the first message may have it")
	}

	s.pieces = req.GetDocuments()
	return nil
}
