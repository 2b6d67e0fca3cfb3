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

// reachOptions returns options that give calls which did not reach a server an error
// that names the server as the user did, or else by its target.
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

// The beginnings of gRPC's messages for a connection that failed, or that reached
// something else than our server. gRPC has no status code for either.
var notReached = []string{
	"connection error: ", "last connection error: ", "name resolver error: ", "dns: ",
	"unexpected HTTP status code received from server",
}

// describeUnreachable returns err. If err says that there is no server, it returns an
// error that names the server and keeps the part of the reason that is not about gRPC.
func describeUnreachable(name, hint string, err error) error {
	s, ok := status.FromError(err)
	// A status with details is the service's own.
	if !ok || err == nil || len(s.Details()) > 0 {
		return err
	}

	for _, begin := range notReached {
		if strings.HasPrefix(s.Message(), begin) {
			return &errs.Error{
				Kind: errs.Unavailable, Err: status.Error(codes.Unavailable, s.Message()),
				Message: fmt.Sprintf("cannot reach %s: %s", name, reasonFor(s.Message(), hint)),
			}
		}
	}
	return err
}

// reasonFor returns what gRPC says, with the hint that fits it. A server that hangs up
// without a word has most often been waiting for TLS.
func reasonFor(message, hint string) string {
	reason := plainReason(message)
	silent := strings.HasSuffix(reason, "EOF") || strings.HasSuffix(reason, "connection reset by peer")
	if silent && strings.Contains(message, "error reading server preface: ") {
		return "it closes the connection at once; if it needs TLS, give --tls-ca"
	}
	return reason + hint
}

// plainReason returns what gRPC says without the layers that it names.
func plainReason(message string) string {
	message, _, _ = strings.Cut(message, "; malformed header")
	for _, layer := range []string{"last ", "connection error: ", `desc = "`, "transport: ", "authentication handshake failed: ", "error reading server preface: ", "Error while dialing: ", "name resolver error: "} {
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
