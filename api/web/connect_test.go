package web_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/server/servertest"
	"github.com/coditect/mapreduce/api/web"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// caller returns a client of a method, as another library has it.
func caller[Q, A any](l *listener, method string, options ...connect.ClientOption) *connect.Client[Q, A] {
	return connect.NewClient[Q, A](l.http, l.url+method, options...)
}

// The public client of Connect calls methods of each kind, by Connect in binary and in JSON
// and by gRPC-Web, over HTTP/1.1 and over HTTP/2.
func TestConnect(t *testing.T) {
	forms := map[string][]connect.ClientOption{
		"Connect": nil, "Connect with JSON": {connect.WithProtoJSON()}, "gRPC-Web": {connect.WithGRPCWeb()}, "gRPC": {connect.WithGRPC()},
		"compressed": {connect.WithSendGzip()},
	}
	for name, options := range forms {
		for _, version := range []int{1, 2} {
			if name == "gRPC" && version == 1 {
				continue
			}
			service := &servertest.Service{}
			l := serve(t, service, web.Config{})
			if version == 2 {
				l.speakHTTP2()
			}
			ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
			defer stop()
			text := strings.Repeat("some words ", 10_000)
			submission := caller[pb.SubmitJobRequest, pb.SubmitJobResponse](l, pb.MapReduceService_SubmitJob_FullMethodName, options...).CallClientStream(ctx)
			for _, q := range []*pb.SubmitJobRequest{
				{Spec: &pb.JobSpec{TenantId: "a"}, Documents: []*pb.DocumentPiece{{DocumentId: "1.txt", Content: []byte(text), More: true}}},
				{Documents: []*pb.DocumentPiece{{DocumentId: "1.txt", Content: []byte("the end")}}},
			} {
				if err := submission.Send(q); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			submitted, err := submission.CloseAndReceive()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			id := submitted.Msg.GetJob().GetJobId()
			if docs := service.Documents(mapreduce.JobID(id)); len(docs) != 1 || string(docs[0].Content) != text+"the end" {
				t.Errorf("%s: other documents have come than were sent", name)
			}
			get := caller[pb.GetJobRequest, pb.Job](l, pb.MapReduceService_GetJob_FullMethodName, options...)
			job, err := get.CallUnary(ctx, connect.NewRequest(&pb.GetJobRequest{JobId: id}))
			if err != nil || job.Msg.GetJobId() != id {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := service.Finish(mapreduce.JobID(id)); err != nil {
				t.Fatal(err)
			}
			file, err := caller[pb.GetResultFileRequest, pb.GetResultFileResponse](l, pb.MapReduceService_GetResultFile_FullMethodName, options...).
				CallServerStream(ctx, connect.NewRequest(&pb.GetResultFileRequest{JobId: id}))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var whole []byte
			for file.Receive() {
				whole = append(whole, file.Msg().GetData()...)
			}
			if want := l.resultFile(mapreduce.JobID(id)); file.Err() != nil || string(whole) != want {
				t.Errorf("%s: result.json has %d bytes, want %d; %v", name, len(whole), len(want), file.Err())
			}
			if err := file.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if version == 2 {
				plan(ctx, t, l, name, options)
			}
			_, err = get.CallUnary(ctx, connect.NewRequest(&pb.GetJobRequest{JobId: "mr_20260101_aaaaaa"}))
			var e *connect.Error
			if !errors.As(err, &e) || e.Code() != connect.CodeNotFound || len(e.Details()) == 0 {
				t.Fatalf("%s: %v, want not found with details", name, err)
			}
			if info, err := e.Details()[0].Value(); err != nil || info.(*errdetails.ErrorInfo).GetDomain() != "coditect.mapreduce" {
				t.Errorf("%s: the first detail is %v; %v", name, info, err)
			}
		}
	}
}

// plan calls the method that streams both ways, which needs HTTP/2.
func plan(ctx context.Context, t *testing.T, l *listener, name string, options []connect.ClientOption) {
	t.Helper()
	stream := caller[pb.PlanJobRequest, pb.PlanJobResponse](l, pb.MapReduceService_PlanJob_FullMethodName, options...).CallBidiStream(ctx)
	if err := errors.Join(
		stream.Send(&pb.PlanJobRequest{Spec: &pb.JobSpec{TenantId: "a"}, Documents: []*pb.DocumentPiece{{DocumentId: "1.txt", Content: []byte("x")}}}),
		stream.CloseRequest(),
	); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	tasks := 0
	for {
		part, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		tasks += len(part.GetPlan().GetTasks())
	}
	if tasks != 2 {
		t.Errorf("%s: a plan of %d tasks, want 2", name, tasks)
	}
	if err := stream.CloseResponse(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// speakHTTP2 has the client of the test speak HTTP/2 without TLS.
func (l *listener) speakHTTP2() {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols}
	l.t.Cleanup(transport.CloseIdleConnections)
	l.http = &http.Client{Transport: transport}
}

// A client of gRPC finds the methods of clients behind HTTP, and those of workers nowhere.
func TestGRPC(t *testing.T) {
	l := serve(t, &servertest.Service{}, web.Config{})
	conn, err := grpc.NewClient(strings.TrimPrefix(l.url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := pb.NewMapReduceServiceClient(conn).ListJobs(t.Context(), &pb.ListJobsRequest{}); err != nil {
		t.Error(err)
	}
	stream, err := pb.NewWorkerServiceClient(conn).Work(t.Context())
	if err == nil {
		err = stream.Send(&pb.WorkRequest{Hello: &pb.Hello{SessionId: "s"}})
	}
	if err == nil || errors.Is(err, io.EOF) {
		_, err = stream.Recv()
	}
	if err == nil || l.called[pb.WorkerService_Work_FullMethodName] > 0 {
		t.Errorf("HTTP lets workers in: %v", err)
	}
	if names := l.methods(); !slices.Equal(names, []string{pb.MapReduceService_ListJobs_FullMethodName}) {
		t.Errorf("calls have come to %v", names)
	}
}

// methods returns the methods to which calls have come.
func (l *listener) methods() (names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.called {
		names = append(names, name)
	}
	return names
}
