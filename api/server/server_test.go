package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/server/servertest"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const someJob = "mr_20260704_000000"

// A log collects what is logged.
type log struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *log) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// start serves in memory, and returns a bare connection, as of a stranger.
func start(t *testing.T, service mapreduce.Service, fleet protocol.Fleet, config server.Config) (*grpc.ClientConn, *server.Server) {
	t.Helper()
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := server.New(service, fleet, config)
	if err != nil {
		t.Fatal(err)
	}
	listener := bufconn.Listen(64 << 10)
	served := make(chan error, 1)
	go func() { served <- s.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///test",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop(s)
		if err := errors.Join(<-served, conn.Close()); err != nil {
			t.Error(err)
		}
	})
	return conn, s
}

// stop shuts s down without patience.
func stop(s *server.Server) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.Shutdown(ctx)
}

// A getter is a service whose GetJob is the function.
type getter func(context.Context) (*mapreduce.Job, error)

type service struct {
	servertest.Service
	get getter
}

func (s *service) GetJob(ctx context.Context, _ mapreduce.Principal, _ mapreduce.JobID) (*mapreduce.Job, error) {
	return s.get(ctx)
}

func (s *service) WatchJob(ctx context.Context, _ mapreduce.Principal, _ mapreduce.JobID, fn func(*mapreduce.Job) error) error {
	job, err := s.get(ctx)
	if err != nil {
		return err
	}
	return fn(job)
}

func getJob(ctx context.Context, conn *grpc.ClientConn) error {
	_, err := pb.NewMapReduceServiceClient(conn).GetJob(ctx, &pb.GetJobRequest{JobId: someJob})
	return err
}

func watchJob(ctx context.Context, conn *grpc.ClientConn) error {
	stream, err := pb.NewMapReduceServiceClient(conn).WatchJob(ctx, &pb.WatchJobRequest{JobId: someJob})
	if err != nil {
		return err
	}
	for err == nil {
		_, err = stream.Recv()
	}
	return err
}

// calls are a unary and a streamed call to the getter.
var calls = map[string]func(context.Context, *grpc.ClientConn) error{"unary": getJob, "stream": watchJob}

func wantCode(t *testing.T, err error, code codes.Code) {
	t.Helper()
	if status.Code(err) != code {
		t.Errorf("got %v, want code %v", err, code)
	}
}

func TestPanicsAreErrors(t *testing.T) {
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			var out log
			conn, _ := start(t, &service{get: func(context.Context) (*mapreduce.Job, error) { panic("secret state") }}, nil, server.Config{Logger: out.logger()})
			for range 2 { // the server lives on
				err := call(t.Context(), conn)
				wantCode(t, err, codes.Internal)
				if strings.Contains(err.Error(), "secret") {
					t.Errorf("%v shows what is internal", err)
				}
			}
			if text := out.String(); !strings.Contains(text, "secret state") || !strings.Contains(text, "server_test.go") {
				t.Errorf("the log %q lacks the panic or its stack", text)
			}
		})
	}
}

func TestCausesAreLoggedNotShown(t *testing.T) {
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			var out log
			conn, _ := start(t, &service{get: func(context.Context) (*mapreduce.Job, error) {
				return nil, errs.New(errs.Internal, "commit: %w", errors.New("disk sda1 is full"))
			}}, nil, server.Config{Logger: out.logger()})
			err := call(t.Context(), conn)
			wantCode(t, err, codes.Internal)
			if strings.Contains(err.Error(), "sda1") {
				t.Errorf("%v shows what is internal", err)
			}
			if text := out.String(); !strings.Contains(text, "sda1") || !strings.Contains(text, "level=ERROR") {
				t.Errorf("the log %q lacks the cause", text)
			}
		})
	}
}

func TestDeadlines(t *testing.T) {
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const margin = 100 * time.Millisecond
				var given time.Duration
				conn, _ := start(t, &service{get: func(ctx context.Context) (*mapreduce.Job, error) {
					deadline, _ := ctx.Deadline()
					given = time.Until(deadline)
					<-ctx.Done()
					return nil, errs.New(errs.Internal, "reading: %w", ctx.Err())
				}}, nil, server.Config{Margin: margin})

				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				wantCode(t, call(ctx, conn), codes.DeadlineExceeded)
				if given != time.Second-margin {
					t.Errorf("the service had %v, want the margin taken off", given)
				}
				if ctx.Err() != nil {
					t.Error("the answer came too late for the caller")
				}

				given = 0
				ctx, cancel = context.WithTimeout(t.Context(), 2*margin-time.Millisecond)
				defer cancel()
				wantCode(t, call(ctx, conn), codes.DeadlineExceeded)
				if given != 0 || ctx.Err() != nil {
					t.Errorf("the service had %v, want the call refused at once", given)
				}
			})
		})
	}
}

// A call that should not take long, by a caller without a deadline, ends when the
// store does not answer; one that may take long, or whose caller has set a
// deadline, does not.
func TestStoreAway(t *testing.T) {
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, _ := start(t, &service{get: func(ctx context.Context) (*mapreduce.Job, error) {
					<-ctx.Done()
					return nil, errors.Join(context.Cause(ctx), errors.New("a read was cut off"))
				}}, nil, server.Config{Patience: 3 * time.Second})
				for _, given := range []time.Duration{0, time.Minute} {
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(time.Hour, cancel)
					if given > 0 {
						ctx, cancel = context.WithTimeout(t.Context(), given)
					}
					begun := time.Now()
					err := call(ctx, conn)
					cancel()
					took := time.Since(begun).Round(time.Second)
					switch {
					case given > 0:
						wantCode(t, err, codes.DeadlineExceeded)
					case name == "stream":
						wantCode(t, err, codes.Canceled)
					default:
						wantCode(t, err, codes.Unavailable)
						if took != 3*time.Second || !strings.Contains(err.Error(), "the store has not answered for 3s") {
							t.Errorf("after %v: %v", took, err)
						}
					}
				}
			})
		})
	}
}

// A caller that has gone is not an error of the server.
func TestCallerGone(t *testing.T) {
	var out log
	begun := make(chan struct{})
	conn, s := start(t, &service{get: func(ctx context.Context) (*mapreduce.Job, error) {
		close(begun)
		<-ctx.Done()
		return nil, errs.New(errs.Internal, "reading: %w", ctx.Err())
	}}, nil, server.Config{Logger: out.logger()})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- getJob(ctx, conn) }()
	<-begun
	cancel()
	wantCode(t, <-done, codes.Canceled)
	s.Shutdown(t.Context()) // waits for the handler
	if text := out.String(); strings.Contains(text, "ERROR") {
		t.Errorf("logged %q", text)
	}
}

func TestStandardServices(t *testing.T) {
	conn, s := start(t, new(servertest.Service), nil, server.Config{})
	names := []string{"coditect.mapreduce.v1.MapReduceService", "coditect.mapreduce.v1.WorkerService", "coditect.mapreduce.v1.AdminService"}

	for _, name := range append(names, "") {
		reply, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: name})
		if err != nil || reply.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%q: got %v and %v, want serving", name, reply, err)
		}
	}

	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	reply, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !slices.ContainsFunc(reply.GetListServicesResponse().GetService(), func(s *reflectionpb.ServiceResponse) bool { return s.GetName() == name }) {
			t.Errorf("%s is not listed", name)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}

	s.Shutdown(t.Context())
	wantCode(t, getJob(t.Context(), conn), codes.Unavailable)
}

func TestSubmissionsThatAreMalformed(t *testing.T) {
	spec := &pb.SubmitJobRequest{Spec: &pb.JobSpec{}}
	piece := func(p *pb.DocumentPiece) *pb.SubmitJobRequest {
		return &pb.SubmitJobRequest{Documents: []*pb.DocumentPiece{p}}
	}
	open := piece(&pb.DocumentPiece{DocumentId: "a", Content: []byte("x"), More: true})
	tests := []struct {
		name string
		want string
		send []*pb.SubmitJobRequest
	}{
		{"nothing", "spec: is missing", nil},
		{"no spec", "spec: is missing", []*pb.SubmitJobRequest{open}},
		{"two specs", "spec: was sent twice", []*pb.SubmitJobRequest{spec, spec}},
		{"spec out of range", "spec.reduce_share", []*pb.SubmitJobRequest{{Spec: &pb.JobSpec{ReduceShare: 2}}}},
		{"document cut off", "documents.more: the last piece", []*pb.SubmitJobRequest{spec, open}},
		{"documents mixed", "documents.document_id", []*pb.SubmitJobRequest{spec, open, piece(&pb.DocumentPiece{DocumentId: "b"})}},
		{"document without id", "documents.document_id", []*pb.SubmitJobRequest{spec, piece(&pb.DocumentPiece{Content: []byte("x")})}},
	}
	memory := new(servertest.Service)
	conn, _ := start(t, memory, nil, server.Config{MaxDocument: 1000})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stream, err := pb.NewMapReduceServiceClient(conn).SubmitJob(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range tt.send {
				if err := stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
			}
			_, err = stream.CloseAndRecv()
			wantCode(t, err, codes.InvalidArgument)
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q in it", err, tt.want)
			}
			if err := planned(t, conn, tt.send); !strings.Contains(fmt.Sprint(err), tt.want) {
				t.Errorf("a plan gave %v, want %q in it", err, tt.want)
			}
		})
	}
	if page, err := memory.ListJobs(t.Context(), mapreduce.Local(""), mapreduce.ListJobsQuery{}); err != nil || len(page.Jobs) != 0 {
		t.Errorf("got %v and %v, want no job", page, err)
	}
}

// A document that is larger than the server takes is skipped, with the reason, and the
// others are taken.
func TestADocumentThatIsTooLargeRefusesNoOther(t *testing.T) {
	service := new(servertest.Service)
	conn, _ := start(t, service, nil, server.Config{MaxDocument: 1000})
	stream, err := pb.NewMapReduceServiceClient(conn).SubmitJob(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*pb.SubmitJobRequest{
		{Spec: &pb.JobSpec{}, Documents: []*pb.DocumentPiece{{DocumentId: "first", Content: []byte("text")}, {DocumentId: "large", Content: make([]byte, 900), More: true}}},
		{Documents: []*pb.DocumentPiece{{DocumentId: "large", Content: make([]byte, 900), More: true}}},
		{Documents: []*pb.DocumentPiece{{DocumentId: "large", Content: make([]byte, 900)}, {DocumentId: "last", Content: []byte("text")}}},
	} {
		if err := stream.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	reply, err := stream.CloseAndRecv()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range service.Documents(mapreduce.JobID(reply.GetJob().GetJobId())) {
		got = append(got, fmt.Sprintf("%s %d %s", d.ID, d.Size, d.Skip))
	}
	want := []string{"first 0 ", "large 2700 it has 2700 bytes, more than the 1000 that are taken; split it", "last 0 "}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// planned returns what PlanJob says to the messages of a submission.
func planned(t *testing.T, conn grpc.ClientConnInterface, send []*pb.SubmitJobRequest) error {
	stream, err := pb.NewMapReduceServiceClient(conn).PlanJob(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range send {
		if err := stream.Send(&pb.PlanJobRequest{Spec: m.GetSpec(), Documents: m.GetDocuments()}); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	wantCode(t, err, codes.InvalidArgument)
	return err
}

func TestShutdownEndsWatches(t *testing.T) {
	memory := new(servertest.Service)
	job, err := memory.SubmitJob(t.Context(), mapreduce.Local(""), mapreduce.JobSpec{}, func(yield func(*mapreduce.Document, error) bool) {
		yield(&mapreduce.Document{ID: "a"}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, s := start(t, memory, nil, server.Config{})
	stream, err := pb.NewMapReduceServiceClient(conn).WatchJob(t.Context(), &pb.WatchJobRequest{JobId: string(job.ID)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	s.Shutdown(t.Context())
	_, err = stream.Recv()
	wantCode(t, err, codes.Unavailable)
}

func TestShutdownWaitsForCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		finish := make(chan struct{})
		conn, s := start(t, &service{get: func(context.Context) (*mapreduce.Job, error) {
			<-finish
			return &mapreduce.Job{ID: someJob}, nil
		}}, nil, server.Config{})
		called := make(chan error, 1)
		go func() { called <- getJob(t.Context(), conn) }()
		synctest.Wait()
		left := make(chan struct{})
		go func() { s.Shutdown(t.Context()); close(left) }()
		synctest.Wait()
		select {
		case <-left:
			t.Error("Shutdown did not wait")
		default:
		}
		close(finish)
		if err := <-called; err != nil {
			t.Error(err)
		}
		<-left
	})
}

func TestShutdownLosesPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, s := start(t, new(servertest.Service), new(servertest.Fleet), server.Config{})
		stream, err := pb.NewWorkerServiceClient(conn).Work(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&pb.WorkRequest{Hello: &pb.Hello{SessionId: "s"}}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		s.Shutdown(ctx)
		if waited := time.Since(begun); waited != time.Minute {
			t.Errorf("waited %v for a worker that stays", waited)
		}
		_, err = stream.Recv()
		wantCode(t, err, codes.Unavailable)
	})
}

func TestConfigIsChecked(t *testing.T) {
	tests := map[string]server.Config{
		"MaxReceive":  {MaxReceive: 1000},
		"MaxSend":     {MaxSend: -1},
		"MaxDocument": {MaxDocument: -1},
		"MaxStreams":  {MaxStreams: -1},
		"Margin":      {Margin: -1},
	}
	for field, config := range tests {
		s, err := server.New(new(servertest.Service), nil, config)
		var e *errs.Error
		if s != nil || !errors.As(err, &e) || e.Kind != errs.Invalid || e.Field != field {
			t.Errorf("%s: got %v, want the field refused", field, err)
		}
	}
}

// Interceptors of the caller, such as one that authenticates, return errors of
// the vocabulary.
func TestInterceptorsAreWithinTheGuard(t *testing.T) {
	refuse := grpc.ChainUnaryInterceptor(func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
		return nil, errs.New(errs.Unauthenticated, "who are you")
	})
	conn, _ := start(t, new(servertest.Service), nil, server.Config{Options: []grpc.ServerOption{refuse}})
	wantCode(t, getJob(t.Context(), conn), codes.Unauthenticated)
}
