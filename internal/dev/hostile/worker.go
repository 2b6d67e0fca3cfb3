package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// sessions counts the sessions of hostile workers, which all have names of their own.
var sessions atomic.Int64

// A session is one of a hostile worker.
type session struct {
	id     string
	stream grpc.BidiStreamingClient[pb.WorkRequest, pb.WorkResponse]
	stop   context.CancelFunc
}

// openSession begins a session that takes units of the attacker's jobs.
func openSession(ctx context.Context, conn *grpc.ClientConn, slots int32) (*session, error) {
	ctx, stop := context.WithCancel(ctx)
	stream, err := pb.NewWorkerServiceClient(conn).Work(ctx)
	if err != nil {
		stop()
		return nil, err
	}

	s := &session{fmt.Sprintf("hostile-%d", sessions.Add(1)), stream, stop}
	if err := stream.Send(&pb.WorkRequest{Hello: &pb.Hello{SessionId: s.id, Slots: slots, Offer: &pb.Offer{Providers: []string{vendor}}}}); err != nil {
		stop()
		return nil, err
	}
	return s, nil
}

// assigned waits for a unit.
func (s *session) assigned() (*pb.Assignment, error) {
	for {
		m, err := s.stream.Recv()
		if err != nil {
			return nil, err
		}
		if len(m.GetAssignments()) > 0 {
			return m.GetAssignments()[0], nil
		}
	}
}

// outcome waits for what comes of the messages that were sent: a verdict, or the end of
// the stream, but no longer than a while.
func (s *session) outcome(ctx context.Context) error {
	t := time.AfterFunc(300*time.Millisecond, s.stop)
	defer t.Stop()

	for {
		m, err := s.stream.Recv()
		if errors.Is(err, io.EOF) || len(m.GetVerdicts()) > 0 {
			return nil
		}
		if err != nil {
			if ctx.Err() == nil && strings.Contains(err.Error(), context.Canceled.Error()) {
				return nil // it was listened to for long enough
			}
			return err
		}
	}
}

// workerLies lies in every field of what workers may send, each lie about a unit that the
// worker holds.
func workerLies(ctx context.Context, a *attacker) error {
	conn, err := a.dial()
	if err != nil {
		return err
	}
	defer conn.Close()

	for ctx.Err() == nil {
		other := map[string]string{"job_id": a.honest.jobID(), "unit_id": "map:order00.txt", "session_id": "hostile-1"}
		index := 0
		for {
			known, err := a.tellWorkerLie(ctx, conn, other, index)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			if !known {
				break // all are told
			}
			index++
		}
	}
	return nil
}

// truths returns what an honest worker might say of a unit that it has run.
func truths(s string, u *pb.Assignment) []proto.Message {
	held := &pb.Held{JobId: u.GetJobId(), UnitId: u.GetUnitId(), Attempt: u.GetAttempt(), Running: true}

	return []proto.Message{
		&pb.WorkRequest{Reports: []*pb.Report{{
			JobId: u.GetJobId(), UnitId: u.GetUnitId(), Attempt: u.GetAttempt(), Outcome: pb.Outcome_OUTCOME_DONE,
			Tokens: &pb.Tokens{}, Elapsed: durationpb.New(time.Second), CallCount: 1,
		}}},
		&pb.WorkRequest{Reports: []*pb.Report{{
			JobId: u.GetJobId(), UnitId: u.GetUnitId(), Attempt: u.GetAttempt(), Outcome: pb.Outcome_OUTCOME_ERRORED,
			Errors: []string{"it failed"}, RetryAfter: durationpb.New(time.Millisecond), Breaker: "hostile/m",
		}}},
		&pb.WorkRequest{
			Started: []*pb.Held{held}, Reserve: []*pb.ReserveRequest{{Held: held, Tokens: 10}},
			Heartbeat: &pb.Heartbeat{Progress: []*pb.Progress{{Held: held, Tokens: &pb.Tokens{}, Note: "on it"}}, Breakers: []*pb.BreakerState{{Name: "hostile/m", OpenFor: durationpb.New(time.Millisecond)}}},
			Limits:    []*pb.LimitNote{{Name: "hostile/m", Successes: 1, Told: &pb.Rates{Requests: 100}, Left: &pb.Rates{Requests: 99}}},
			Manners:   []*pb.ModelManners{{Name: "hostile/m", Server: "s", Refuses: "strict"}},
		},
		&pb.WorkRequest{Hello: &pb.Hello{SessionId: s, Slots: 1, Holding: []*pb.Held{held}, Offer: &pb.Offer{Providers: []string{vendor}}}},
		putOf(s, held),
		&pb.GetBlobRequest{SessionId: s, Held: held, Blob: &pb.Blob{Kind: pb.BlobKind_BLOB_KIND_TEXT}},
	}
}

// tellWorkerLie has a session take a unit, and tells the lie of that number about it. It
// returns false if there is none.
func (a *attacker) tellWorkerLie(ctx context.Context, conn *grpc.ClientConn, other map[string]string, number int) (known bool, err error) {
	short, stop := context.WithTimeout(ctx, lieTime)
	defer stop()
	s, err := openSession(short, conn, 1)
	if err != nil {
		return true, nil // refused for now: the next may not be
	}
	defer s.stop()

	waiting := time.AfterFunc(time.Second, func() { _, _ = submitJob(short, conn, villainSpec(), orders(300)...) }) // none was left
	u, err := s.assigned()
	waiting.Stop()
	if err != nil {
		a.report.answered("lies of a worker", "a session", err)
		return true, nil
	}

	for _, truth := range truths(s.id, u) {
		for l := range lies(truth, other) {
			if number > 0 {
				number--
				continue
			}
			a.report.answered("lies of a worker", string(truth.ProtoReflect().Descriptor().Name())+": "+l.name, s.tell(short, conn, l.message))
			return true, nil
		}
	}
	return false, nil
}

// tell says something, and returns what came of it.
func (s *session) tell(ctx context.Context, conn *grpc.ClientConn, m proto.Message) error {
	switch m := m.(type) {
	case *pb.WorkRequest:
		if err := s.stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		return s.outcome(ctx)
	case *pb.PutBlobRequest:
		return sendAll(ctx, conn, call{method: pb.WorkerService_PutBlob_FullMethodName, reply: newReply[pb.PutBlobResponse]}, m)
	default:
		return sendAll(ctx, conn, call{method: pb.WorkerService_GetBlob_FullMethodName, reply: newReply[pb.GetBlobResponse]}, m)
	}
}

// deafWorkers ask for very many units, say ever more that has to be answered, and read
// nothing.
func deafWorkers(ctx context.Context, a *attacker) error {
	big := make([]*pb.DocumentPiece, 200)
	for i := range big {
		big[i] = &pb.DocumentPiece{DocumentId: fmt.Sprint(i), Content: []byte(strings.Repeat("x y ", 8<<10))}
	}

	for ctx.Err() == nil {
		// Small windows fill at once, as nothing is read.
		conn, err := a.dial(grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10))
		if err != nil {
			return err
		}

		spec := villainSpec()
		spec.MaxUnitTokens, spec.Parallelism = 1<<20, 200
		_, _ = submitJob(ctx, conn, spec, big[:1+a.draw(len(big)-1)]...)

		short, stop := context.WithTimeout(ctx, 5*time.Second)
		for range 10 {
			s, err := openSession(short, conn, 2000)
			if err != nil {
				break
			}

			m := &pb.WorkRequest{}
			for i := range 1000 {
				m.Reports = append(m.Reports, &pb.Report{JobId: fmt.Sprintf("mr_20260101_%06x", i), UnitId: "u", Attempt: 1, Outcome: pb.Outcome_OUTCOME_RETURNED})
				m.Reserve = append(m.Reserve, &pb.ReserveRequest{Held: &pb.Held{JobId: a.honest.jobID(), UnitId: "u", Attempt: 1}, Tokens: 1})
			}

			go func() {
				for s.stream.Send(m) == nil {
					a.report.count("messages to a server that is not heard", 1)
				}
			}()
		}

		<-short.Done()
		stop()
		_ = conn.Close()
	}
	return nil
}

// inventedNames name models that no job asks.
func inventedNames(ctx context.Context, a *attacker) error {
	conn, err := a.dial()
	if err != nil {
		return err
	}
	defer conn.Close()

	for n := 0; ctx.Err() == nil; {
		s, err := openSession(ctx, conn, 1)
		if err != nil {
			return nil
		}

		// Replies are read, so that only the names weigh on the server.
		go func() {
			for {
				if _, err := s.stream.Recv(); err != nil {
					return
				}
			}
		}()

		for ctx.Err() == nil {
			m := &pb.WorkRequest{Heartbeat: &pb.Heartbeat{}}
			for range 500 {
				n++
				name := fmt.Sprintf("%d/%s", n, strings.Repeat("x", 500))
				m.Heartbeat.Breakers = append(m.Heartbeat.Breakers, &pb.BreakerState{Name: name, OpenFor: durationpb.New(time.Hour)})
				m.Limits = append(m.Limits, &pb.LimitNote{Name: name, Refused: true, Pause: durationpb.New(time.Hour)})
				m.Manners = append(m.Manners, &pb.ModelManners{Name: name, Server: name[:60], Refuses: name[:500]})
			}

			if s.stream.Send(m) != nil {
				break
			}
			a.report.count("names of models that are made up", 500)
			pause(ctx, 20*time.Millisecond)
		}
		s.stop()
	}
	return nil
}
