package embedded

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/wire/fault"
)

// notAccepted is the reason of an error of a call that was not made.
const notAccepted = "NOT_ACCEPTED"

// NotAccepted reports whether an error of a client that Join has returned says that the
// process which held the data directory has not taken the call, as one that ends does not:
// the call did nothing, and may be made again by the process that holds the directory next.
func NotAccepted(err error) bool { return errs.ReasonOf(err) == notAccepted }

// A departure is whether a call has left this process. gRPC makes an attempt at a call
// again only if the server says that it has not looked at the one before, so that the last
// attempt decides.
type departure struct{ left atomic.Bool }

type departureKey struct{}

// departures notes which calls leave this process. It is a stats handler, as nothing else
// in gRPC sees that of each attempt.
type departures struct{}

var _ stats.Handler = departures{}

// TagRPC implements stats.Handler. It is called for each attempt.
func (departures) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	if d, ok := ctx.Value(departureKey{}).(*departure); ok {
		d.left.Store(false)
	}
	return ctx
}

// HandleRPC implements stats.Handler.
func (departures) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.OutHeader); !ok {
		return
	}
	if d, ok := ctx.Value(departureKey{}).(*departure); ok {
		d.left.Store(true)
	}
}

// TagConn implements stats.Handler.
func (departures) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (departures) HandleConn(context.Context, stats.ConnStats) {}

// mark returns err, with the reason notAccepted if the call has not left.
func (d *departure) mark(err error) error {
	e, ok := fault.Error(err).(*errs.Error) //nolint:errorlint // an error of a call is one, or io.EOF
	if !ok || e.Kind != errs.Unavailable || d.left.Load() {
		return err
	}
	marked := *e
	marked.Reason = notAccepted
	return &marked
}

// markOptions return options that make errors of calls say whether they were not accepted.
func markOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithStatsHandler(departures{}),
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			d := new(departure)
			return d.mark(invoke(context.WithValue(ctx, departureKey{}, d), method, req, reply, cc, opts...))
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			d := new(departure)
			stream, err := open(context.WithValue(ctx, departureKey{}, d), desc, cc, method, opts...)
			if err != nil {
				return nil, d.mark(err)
			}
			return markedStream{stream, d}, nil
		}),
	}
}

// A markedStream is a stream whose errors say whether it was not accepted.
type markedStream struct {
	grpc.ClientStream
	departure *departure
}

// RecvMsg implements grpc.ClientStream.
func (s markedStream) RecvMsg(m any) error { return s.departure.mark(s.ClientStream.RecvMsg(m)) }
