package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/server/servertest"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// A deaf service reads submissions and keeps none.
type deaf struct{ servertest.Service }

func (*deaf) SubmitJob(_ context.Context, _ mapreduce.Principal, _ mapreduce.JobSpec, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Job, error) {
	for _, err := range docs {
		if err != nil {
			return nil, err
		}
	}
	return nil, errs.New(errs.Precondition, "nothing is kept")
}

// Each method gets each message of its type that there is: it is carried out or refused, and
// never a failure of the server's own.
func FuzzCalls(f *testing.F) {
	s, err := server.New(&deaf{}, &servertest.Fleet{Blobs: map[mapreduce.UnitID][]byte{"u": []byte("text")}}, server.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	conn := servertest.Connect(f, s)
	all := requestMethods()
	job := "mr_20260101_aaaaaa"
	for i, m := range all {
		f.Add(uint8(i), []byte{})
		f.Add(uint8(i), append([]byte{0x0a, byte(len(job))}, job...))
		f.Add(uint8(i), append([]byte{0x0a, 0x7f}, job...))
		if m.Input().Fields().Len() > 1 {
			f.Add(uint8(i), append(append([]byte{0x0a, byte(len(job))}, job...), 0x12, 1, 'u', 0x18, 1, 0x20, 0xff, 0xff, 0xff, 0xff, 0x0f))
		}
	}
	f.Fuzz(func(t *testing.T, n uint8, data []byte) {
		m := all[int(n)%len(all)]
		kind, err := protoregistry.GlobalTypes.FindMessageByName(m.Input().FullName())
		if err != nil {
			t.Fatal(err)
		}
		request := kind.New().Interface()
		if proto.Unmarshal(data, request) != nil {
			return
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err = stream.SendMsg(request); err == nil || errors.Is(err, io.EOF) {
			_ = stream.CloseSend() // receiving says what is wrong
			for err = nil; err == nil; {
				err = stream.RecvMsg(new(emptypb.Empty))
			}
		}
		switch status.Code(err) {
		case codes.Internal, codes.DeadlineExceeded, codes.DataLoss:
			if !errors.Is(err, io.EOF) {
				t.Fatalf("%s: %v for %v", m.Name(), err, request)
			}
		}
	})
}

// requestMethods returns the methods of the services of clients, operators and workers.
func requestMethods() (all []protoreflect.MethodDescriptor) {
	for _, file := range []protoreflect.FileDescriptor{pb.File_coditect_mapreduce_v1_mapreduce_service_proto, pb.File_coditect_mapreduce_v1_admin_service_proto, pb.File_coditect_mapreduce_v1_worker_service_proto} {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for k := range methods.Len() {
				all = append(all, methods.Get(k))
			}
		}
	}
	return all
}
