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
	first, err := stream.Recv()
	switch {
	case errors.Is(err, io.EOF):
		return errs.Field("spec", "is missing: nothing was sent")
	case err != nil:
		return wire.Error(err)
	case first.GetSpec() == nil:
		return errs.Field("spec", "is missing in the first message")
	}
	spec, err := wire.DecodeSpec(first.GetSpec())
	if err != nil {
		return err
	}
	in := &submission{stream: stream, joiner: wire.Joiner{MaxBytes: j.maxDocument}, pieces: first.GetDocuments()}
	job, err := j.service.SubmitJob(stream.Context(), spec, in.documents())
	if err != nil {
		return err
	}
	return wire.Error(stream.SendAndClose(&pb.SubmitJobResponse{Job: wire.EncodeJob(job)}))
}

// A submission is a stream of documents that is read once.
type submission struct {
	stream submitStream
	joiner wire.Joiner
	pieces []*pb.DocumentPiece // received, not yet taken
}

// documents yields the documents, and at most one error, last.
func (s *submission) documents() iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		for {
			doc, err := s.next()
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

// next returns the next document, or io.EOF when all have come whole.
func (s *submission) next() (*mapreduce.Document, error) {
	for {
		for len(s.pieces) > 0 {
			doc, err := s.joiner.Add(s.pieces[0])
			s.pieces = s.pieces[1:]
			if doc != nil || err != nil {
				return doc, err
			}
		}
		if err := s.receive(); err != nil {
			return nil, err
		}
	}
}

func (s *submission) receive() error {
	req, err := s.stream.Recv()
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
