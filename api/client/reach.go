package client

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/coditect/mapreduce/api/errs"
)

// reachOptions returns options by which calls that did not get to a server say so in
// the words of whoever named it, be it by its target alone.
func reachOptions(name, target string) []grpc.DialOption {
	hint := ""
	if name == "" {
		name, hint = target, `; is "coditect serve" running there?`
	}
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return describeUnreachable(name, hint, invoke(ctx, method, req, reply, cc, opts...))
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := open(ctx, desc, cc, method, opts...)
			return stream, describeUnreachable(name, hint, err)
		}),
	}
}

// How gRPC begins to say that there is no connection, or no server like ours at
// its end. It has no code of its own for either.
var notReached = []string{
	"connection error: ", "last connection error: ", "name resolver error: ", "dns: ",
	"unexpected HTTP status code received from server",
}

// describeUnreachable returns err, or if it says that there is no server, one that names it
// and keeps of the reason what is not about gRPC.
func describeUnreachable(name, hint string, err error) error {
	s, ok := status.FromError(err)
	if !ok || err == nil || len(s.Details()) > 0 {
		return err
	}
	for _, begin := range notReached {
		if strings.HasPrefix(s.Message(), begin) {
			return &errs.Error{
				Kind: errs.Unavailable, Err: status.Error(codes.Unavailable, s.Message()),
				Message: fmt.Sprintf("cannot reach %s: %s%s", name, plainReason(s.Message()), hint),
			}
		}
	}
	return err
}

// plainReason returns what gRPC says without the layers that it names.
func plainReason(message string) string {
	message, _, _ = strings.Cut(message, "; malformed header")
	for _, layer := range []string{"last ", "connection error: ", `desc = "`, "transport: ", "Error while dialing: ", "name resolver error: "} {
		message = strings.TrimPrefix(message, layer)
	}
	message = strings.TrimSuffix(message, `"`)
	if _, cause, ok := strings.Cut(message, ": connect: "); ok {
		return cause
	}
	if message == "produced zero addresses" {
		return "no such host"
	}
	return message
}
