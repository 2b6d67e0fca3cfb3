package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/coditect/mapreduce/api/wire"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// Services returns the services that HTTP offers.
func Services() []protoreflect.ServiceDescriptor {
	return []protoreflect.ServiceDescriptor{
		pb.File_coditect_mapreduce_v1_mapreduce_service_proto.Services().ByName("MapReduceService"),
		pb.File_coditect_mapreduce_v1_admin_service_proto.Services().ByName("AdminService"),
	}
}

// addConnect adds each method of each service, by Connect, gRPC-Web and gRPC.
func addConnect(mux *http.ServeMux) {
	for _, service := range Services() {
		for i := range service.Methods().Len() {
			m := method{service.Methods().Get(i)}
			mux.Handle(m.name(), m.handler())
		}
	}
}

// A method is handed on to the server as it comes, without code of its own.
type method struct{ protoreflect.MethodDescriptor }

func (m method) name() string { return fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name()) }

type (
	message = dynamicpb.Message
	request = connect.Request[message]
	reply   = connect.Response[message]
)

func (m method) handler() *connect.Handler {
	options := []connect.HandlerOption{
		connect.WithSchema(m.MethodDescriptor), connect.WithReadMaxBytes(wire.MaxRequest),
		connect.WithRequestInitializer(func(_ connect.Spec, v any) error {
			into, ok := v.(*message)
			if !ok {
				return fmt.Errorf("a %T is no message of %s", v, m.name())
			}

			// Connect makes an empty message, which has to get the type of the method.
			*into = *dynamicpb.NewMessage(m.Input())
			return nil
		}),
	}

	switch {
	case m.IsStreamingClient() && m.IsStreamingServer():
		return connect.NewBidiStreamHandler(m.name(), func(ctx context.Context, s *connect.BidiStream[message, message]) error {
			return m.relay(outgoing(ctx, s.RequestHeader()), func() (*message, error) { return s.Receive() }, s.Send)
		}, options...)
	case m.IsStreamingClient():
		return connect.NewClientStreamHandler(m.name(), func(ctx context.Context, s *connect.ClientStream[message]) (*reply, error) {
			var last *message
			err := m.relay(outgoing(ctx, s.RequestHeader()), func() (*message, error) {
				if s.Receive() {
					return s.Msg(), nil
				}
				if err := s.Err(); err != nil {
					return nil, err
				}
				return nil, io.EOF
			}, func(answer *message) error {
				last = answer
				return nil
			})
			if err != nil {
				return nil, err
			}
			return connect.NewResponse(last), nil
		}, options...)
	case m.IsStreamingServer():
		return connect.NewServerStreamHandler(m.name(), func(ctx context.Context, q *request, s *connect.ServerStream[message]) error {
			return m.relay(outgoing(ctx, q.Header()), once(q.Msg), s.Send)
		}, options...)
	}

	return connect.NewUnaryHandler(m.name(), func(ctx context.Context, q *request) (*reply, error) {
		answer := dynamicpb.NewMessage(m.Output())
		if err := (relay{}).Invoke(outgoing(ctx, q.Header()), m.name(), q.Msg, answer); err != nil {
			return nil, connectError(err)
		}
		return connect.NewResponse(answer), nil
	}, options...)
}

// once returns a message, and then the end.
func once(q *message) func() (*message, error) {
	return func() (*message, error) {
		if q == nil {
			return nil, io.EOF
		}
		m := q
		q = nil
		return m, nil
	}
}

// relay hands on all requests of a call and then all answers: no method that HTTP offers
// answers before it has all requests, unless it fails.
func (m method) relay(ctx context.Context, receive func() (*message, error), send func(*message) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := relay{}.NewStream(ctx, &grpc.StreamDesc{ClientStreams: m.IsStreamingClient(), ServerStreams: m.IsStreamingServer()}, m.name())
	if err != nil {
		return connectError(err)
	}

	for {
		q, err := receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err // of Connect's own
		}
		err = stream.SendMsg(proto.Message(q))
		if errors.Is(err, io.EOF) {
			break // receiving says why
		}
		if err != nil {
			return connectError(err)
		}
	}

	_ = stream.CloseSend() // receiving says what fails

	for {
		answer := dynamicpb.NewMessage(m.Output())
		err := stream.RecvMsg(answer)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return connectError(err)
		}
		if err := send(answer); err != nil {
			return err
		}
		if !m.IsStreamingServer() {
			return nil
		}
	}
}
