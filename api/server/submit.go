package server

import (
	"errors"
	"io"
	"iter"

	"google.golang.org/grpc"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/wire"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

type submitStream = grpc.ClientStreamingServer[pb.SubmitJobRequest, pb.SubmitJobResponse]

// SubmitJob takes a job and its documents. Documents are read as the service
// asks for them, so a slow store slows the client down instead of filling the
// memory.
func (j *jobs) SubmitJob(stream submitStream) error {
	first, in, err := beginSubmission(j, stream.Recv)
	if err != nil {
		return err
	}
	spec, err := wire.DecodeSpec(first.GetSpec())
	if err != nil {
		return err
	}
	job, err := j.service.SubmitJob(stream.Context(), callerFor(spec.Tenant), spec, in.readDocuments())
	if err != nil {
		return err
	}
	return wire.Error(stream.SendAndClose(&pb.SubmitJobResponse{Job: wire.EncodeJob(job)}))
}

// PlanJob says what a job would do. Documents are read as they come, and none
// is kept.
func (j *jobs) PlanJob(stream grpc.BidiStreamingServer[pb.PlanJobRequest, pb.PlanJobResponse]) error {
	first, in, err := beginSubmission(j, stream.Recv)
	if err != nil {
		return err
	}
	q, err := wire.DecodePlanQuery(first)
	if err != nil {
		return err
	}
	p, err := j.service.PlanJob(stream.Context(), callerFor(q.Spec.Tenant), q, in.readDocuments())
	if err != nil {
		return err
	}
	for part := range wire.SplitPlan(wire.EncodePlan(p), planBatch) {
		if err := stream.Send(&pb.PlanJobResponse{Plan: part}); err != nil {
			return wire.Error(err)
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

// beginSubmission reads the first message of a stream, which has to have the spec, and
// returns it with the documents of the whole stream.
func beginSubmission[M message](j *jobs, receive func() (M, error)) (first M, in *submission, err error) {
	first, err = receive()
	switch {
	case errors.Is(err, io.EOF):
		return first, nil, errs.Field("spec", "is missing: nothing was sent")
	case err != nil:
		return first, nil, wire.Error(err)
	case first.GetSpec() == nil:
		return first, nil, errs.Field("spec", "is missing in the first message")
	}
	return first, &submission{
		joiner: wire.Joiner{MaxBytes: j.maxDocument}, pieces: first.GetDocuments(),
		receive: func() (message, error) { return receive() },
	}, nil
}

// A submission is a stream of documents that is read once.
type submission struct {
	receive func() (message, error) // the next message
	joiner  wire.Joiner
	pieces  []*pb.DocumentPiece // received, not yet taken
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

// nextDocument returns the next document, or io.EOF when all have come whole.
func (s *submission) nextDocument() (*mapreduce.Document, error) {
	for {
		for len(s.pieces) > 0 {
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
	req, err := s.receive()
	switch {
	case errors.Is(err, io.EOF):
		if err := s.joiner.Close(); err != nil {
			return err
		}
		return io.EOF
	case err != nil:
		return wire.Error(err)
	case req.GetSpec() != nil:
		return errs.Field("spec", "comes a second time")
	}
	s.pieces = req.GetDocuments()
	return nil
}
