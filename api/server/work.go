package server

import (
	"google.golang.org/grpc"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/wire"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

var (
	_ pb.WorkerServiceServer = (*workers)(nil)
	_ mapreduce.WorkStream   = workStream{}
)

// workers serves the sessions of workers.
type workers struct {
	pb.UnimplementedWorkerServiceServer
	fleet mapreduce.Fleet
	split int // bytes above which a message is sent as several
}

type bidiStream = grpc.BidiStreamingServer[pb.WorkRequest, pb.WorkResponse]

// Work carries one session.
func (w *workers) Work(stream bidiStream) error {
	return w.fleet.Work(stream.Context(), workStream{stream, w.split})
}

// A workStream is a session's stream in the words of the Fleet.
type workStream struct {
	stream bidiStream
	split  int // bytes
}

// Send sends m, in several messages if it is large. It waits while the worker
// is slow to read.
func (s workStream) Send(m *mapreduce.ToWorker) error {
	for p := range wire.SplitResponse(wire.EncodeToWorker(m), s.split) {
		if err := s.stream.Send(p); err != nil {
			return wire.Error(err)
		}
	}
	return nil
}

// Recv returns the worker's next message.
func (s workStream) Recv() (*mapreduce.FromWorker, error) {
	p, err := s.stream.Recv()
	if err != nil {
		return nil, wire.Error(err)
	}
	return wire.DecodeFromWorker(p)
}
