// Package client is the gRPC edge of everything that talks to an orchestrator.
// A Client is a Service like the one at the other end, whether that is in this
// process, behind a Unix socket or on another machine, and it connects workers.
// It adapts and decides nothing: it makes a call again only where the service says when,
// and has no choice between addresses.
//
// For programs that have folders and files, SubmitFolder submits the documents of a folder as a
// job, Wait waits for its end, and WriteRecords writes its records. result.json is written by
// Client.GetResultFile. Of the project the package must import only the vocabulary and the wire.
package client

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/wire"
	"github.com/coditect/mapreduce/api/wire/codec"
	"github.com/coditect/mapreduce/api/wire/fault"
	"github.com/coditect/mapreduce/api/wire/parts"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

var _ mapreduce.Client = (*Client)(nil)

// A Config says how to talk to a server. The zero Config works.
type Config struct {
	// Credentials secure the connection. Defaults to none, which only suits
	// loopback addresses and Unix sockets.
	Credentials credentials.TransportCredentials

	// MaxReceive bounds a message from the server, in bytes.
	// Defaults to wire.MaxReply.
	MaxReceive int

	// MaxSend bounds a message to the server, in bytes; it should not exceed
	// what the server takes. Defaults to wire.MaxRequest.
	MaxSend int

	// Keepalive is the pause after which a silent connection is tried, with a
	// call under way or not. Servers allow no less than 10 s, which is also the
	// least that gRPC does. Defaults to 15 s: one that only listens hears no sooner that
	// the server has given the connection up, which it does after 10 s.
	Keepalive time.Duration

	// Patience is how long one call may wait in all for a service that refuses it for a
	// while, and says for how long, as it does when a quota is used up or it holds too
	// much already. The call is then made again: the documents of a submission are taken
	// again from their sequence. A call that failed in any other way, or whose outcome is
	// not known, is never repeated. Defaults to none.
	Patience time.Duration

	// Name is what errors call the server by. Defaults to the target.
	Name string

	// Options are added to the client's: credentials of calls, interceptors,
	// stats handlers.
	Options []grpc.DialOption
}

func (c Config) withDefaults() Config {
	if c.Credentials == nil {
		c.Credentials = insecure.NewCredentials()
	}
	c.MaxReceive = cmp.Or(c.MaxReceive, wire.MaxReply)
	c.MaxSend = cmp.Or(c.MaxSend, wire.MaxRequest)
	c.Keepalive = cmp.Or(c.Keepalive, 15*time.Second)
	return c
}

func (c Config) dialOptions(codec encoding.CodecV2) []grpc.DialOption {
	return append([]grpc.DialOption{
		grpc.WithTransportCredentials(c.Credentials),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(codec),
			grpc.MaxCallRecvMsgSize(c.MaxReceive),
			grpc.MaxCallSendMsgSize(c.MaxSend),
		),
		grpc.WithConnectParams(connecting),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time:                c.Keepalive,
			Timeout:             unheard,
			PermitWithoutStream: true,
		}),
	}, c.Options...)
}

// connecting is how soon a server that could not be reached is tried again, if
// somebody asks for it. By default gRPC refuses to for a second, and in the end for
// two minutes: a worker could not go to a server that was away for long, or has just
// started, when its own dies, and would lose its units. How often a server is asked
// for, its callers bound.
//
// An attempt to connect is given up after 5 s. Systems ask for a connection again after 1, 3, 7 and 15 s, so
// that no pause is longer than 2.5 s, and a network that lost everything is used soon after it is whole again.
var connecting = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
	MinConnectTimeout: 5 * time.Second,
}

// unheard is how long a connection lasts over which no answer comes: of the other system to what was sent, or
// of the server to the question whether it is there. The pauses after which a system sends again grow, so
// a new connection works sooner.
const unheard = 5 * time.Second

// A Client talks to one server. Its methods may be called at the same time.
type Client struct {
	conn     *grpc.ClientConn
	jobs     pb.MapReduceServiceClient
	admin    pb.AdminServiceClient
	workers  pb.WorkerServiceClient
	patience time.Duration
	split    int    // bytes above which a message of a session is sent as several
	after    func() // what Close has to end besides; may be nil
}

// Dial returns a client of the server at target: HOST:PORT, or unix:PATH. It
// does not connect before the first call, and connects again after a failure; a
// call while there is no connection fails as errs.Unavailable and names the server.
func Dial(target string, config Config) (*Client, error) {
	if err := checkTarget(target); err != nil {
		return nil, err
	}
	return openClient(target, config, reachOptions(config.Name, target)...)
}

func checkTarget(target string) error {
	if path, ok := strings.CutPrefix(target, "unix:"); ok {
		if path == "" {
			return errs.Field("server", "%q names no socket", target)
		}
		return nil
	}
	if host, port, err := net.SplitHostPort(target); err != nil || host == "" || port == "" {
		return errs.Field("server", "%q is neither HOST:PORT nor unix:PATH", target)
	}
	return nil
}

func openClient(target string, config Config, more ...grpc.DialOption) (*Client, error) {
	coder, err := codec.New()
	if err != nil {
		return nil, errs.New(errs.Internal, "codec: %w", err)
	}

	config = config.withDefaults()
	options := slices.Concat(config.dialOptions(coder), more)
	conn, err := grpc.NewClient(target, options...)
	if err != nil {
		return nil, errs.Field("server", "%q: %w", target, err)
	}

	return &Client{
		conn:    conn,
		jobs:    pb.NewMapReduceServiceClient(conn),
		admin:   pb.NewAdminServiceClient(conn),
		workers: pb.NewWorkerServiceClient(conn),
		split:   min(wire.SplitSize, config.MaxSend), patience: config.Patience,
	}, nil
}

// Over returns a client that calls over a connection of somebody else's. Its Close leaves that
// open, and it has no sessions of workers.
func Over(conn grpc.ClientConnInterface) *Client {
	return &Client{jobs: pb.NewMapReduceServiceClient(conn), admin: pb.NewAdminServiceClient(conn)}
}

// Close ends the connection and the calls on it.
func (c *Client) Close() error {
	if c.conn == nil {
		return nil
	}
	err := c.conn.Close()
	if c.after != nil {
		c.after()
	}
	return fault.Error(err)
}

// A WorkerStream is a worker's end of a session. Send and Recv may be called at
// the same time, each by one goroutine. The stream ends with the context that
// it was made with, which must end at some time.
type WorkerStream interface {
	// Send sends a message, as several if it is large; it waits while the
	// orchestrator is slow to read. io.EOF means that the stream has ended, and
	// that Recv says why.
	Send(*protocol.FromWorker) error

	// Recv returns the orchestrator's next message, or io.EOF when the
	// orchestrator has ended the stream in order.
	Recv() (*protocol.ToWorker, error)

	// CloseSend says that the worker is done; the orchestrator ends the stream.
	CloseSend() error

	// Blobs carries the session's blobs, to and from the same orchestrator.
	protocol.Blobs
}

// Connect begins a stream for a worker's session.
func (c *Client) Connect(ctx context.Context) (WorkerStream, error) {
	stream, err := c.workers.Work(ctx)
	if err != nil {
		return nil, fault.Error(err)
	}
	return workerStream{blobs{c.workers}, stream, c.split, localAddress(stream.Context())}, nil
}

// localAddress returns this end of the connection of a call, or "" if it has no address.
func localAddress(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok && p.LocalAddr != nil {
		return p.LocalAddr.String()
	}
	return ""
}

type workerStream struct {
	blobs
	stream  grpc.BidiStreamingClient[pb.WorkRequest, pb.WorkResponse]
	split   int    // bytes
	address string // of this end, for the greeting
}

func (s workerStream) Send(m *protocol.FromWorker) error {
	if m.Hello != nil {
		greeting, hello := *m, *m.Hello // which are the caller's
		hello.Address = s.address
		greeting.Hello = &hello
		m = &greeting
	}

	for p := range parts.SplitRequest(wire.EncodeFromWorker(m), s.split) {
		if err := s.stream.Send(p); err != nil {
			return fault.Error(err)
		}
	}
	return nil
}

func (s workerStream) Recv() (*protocol.ToWorker, error) {
	p, err := s.stream.Recv()
	if err != nil {
		return nil, fault.Error(err)
	}
	return wire.DecodeToWorker(p)
}

func (s workerStream) CloseSend() error { return fault.Error(s.stream.CloseSend()) }
