// Package server is the gRPC edge of an orchestrator: it serves a Service and a
// Fleet to clients and workers, near or far. It adapts and guards (limits,
// deadlines, panics, errors) and decides nothing; it must not import anything of
// the project but the vocabulary and the wire.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/reflection"

	"github.com/coditect/mapreduce/api/auth"
	"github.com/coditect/mapreduce/api/concurrency"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/memory"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/wire"
	"github.com/coditect/mapreduce/api/wire/codec"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
	"github.com/coditect/mapreduce/proto/externalscaler"
)

// A Config says how a server guards itself. The zero Config works.
type Config struct {
	// Logger gets failed calls, and for internal errors their causes, which
	// callers do not see. Defaults to slog.Default().
	Logger *slog.Logger

	// MaxReceive bounds a message from a client or worker, in bytes.
	// Defaults to wire.MaxRequest.
	MaxReceive int

	// MaxSend bounds a message to a client or worker, in bytes.
	// Defaults to wire.MaxReply.
	MaxSend int

	// MaxDocument bounds the content of a submitted document, in bytes: it is
	// held in memory while it comes in. Defaults to 64 MiB.
	MaxDocument int

	// MaxStreams bounds the calls at once on one connection; more wait at the
	// client. All of them end when the connection does, and until that is done others
	// wait for a processor. Defaults to 250.
	MaxStreams int

	// Margin is taken off a caller's deadline, so that the answer still gets
	// there in time; calls with less than twice the margin left are refused.
	// Defaults to 20 ms.
	Margin time.Duration

	// Patience is how long a call may take that only asks for a little, unless
	// the caller gives it a deadline. One that takes longer fails as
	// errs.Unavailable, with the reason errs.StoreAway: a store that has lost its
	// machines answers when they are back. Defaults to 10 s.
	Patience time.Duration

	// BlobIdle is how long a transfer of a blob waits for the worker to send or to
	// read a part. Defaults to 30 s.
	BlobIdle time.Duration

	// SubmitIdle is how long a submission, or the question what it would do, waits for
	// the caller's next message. Defaults to 5 min.
	SubmitIdle time.Duration

	// MaxConnections bounds the connections of peers in other processes: it should be
	// well below what the process may open of files, so that its store can go on.
	// Defaults to no limit.
	MaxConnections int

	// Memory bounds what peers make the process hold.
	Memory memory.Limits

	// Calls bounds how many calls of peers in other processes are carried out at once,
	// those of workers apart.
	Calls concurrency.Limits

	// Demand, if it is set, answers autoscalers: the server is then an external scaler
	// of KEDA's as well. Defaults to none.
	Demand protocol.Demander

	// TLS secures connections over TCP; nil leaves them in the clear. Connections over
	// Unix sockets and within this process need none.
	TLS *tls.Config

	// Guard asks callers who they are, and whether they may call. Without one each caller
	// may do everything.
	Guard *auth.Guard

	// Options are added to the server's: interceptors, stats
	// handlers. Interceptors run within the server's own, so they may return
	// errors of package errs, and panic.
	Options []grpc.ServerOption
}

func (c Config) withDefaults() Config {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.MaxReceive = cmp.Or(c.MaxReceive, wire.MaxRequest)
	c.MaxSend = cmp.Or(c.MaxSend, wire.MaxReply)
	c.MaxDocument = cmp.Or(c.MaxDocument, 64<<20)
	c.MaxStreams = cmp.Or(c.MaxStreams, 250)
	c.Margin = cmp.Or(c.Margin, 20*time.Millisecond)
	c.Patience = cmp.Or(c.Patience, 10*time.Second)
	c.BlobIdle = cmp.Or(c.BlobIdle, 30*time.Second)
	c.SubmitIdle = cmp.Or(c.SubmitIdle, 5*time.Minute)
	return c
}

func (c Config) validate() error {
	switch {
	case c.MaxReceive < wire.PartSize:
		return errs.Field("MaxReceive", "must be at least %d bytes, for a piece of a document", wire.PartSize)
	case c.MaxSend < wire.PartSize:
		return errs.Field("MaxSend", "must be at least %d bytes", wire.PartSize)
	case c.MaxDocument < 0:
		return errs.Field("MaxDocument", "is negative")
	case c.MaxStreams < 0:
		return errs.Field("MaxStreams", "is negative")
	case c.Margin < 0:
		return errs.Field("Margin", "is negative")
	case c.Patience < 0:
		return errs.Field("Patience", "is negative")
	case c.BlobIdle < 0:
		return errs.Field("BlobIdle", "is negative")
	case c.SubmitIdle < 0:
		return errs.Field("SubmitIdle", "is negative")
	case c.MaxConnections < 0:
		return errs.Field("MaxConnections", "is negative")
	}

	return nil
}

// A Server serves one Service and one Fleet, on any number of listeners.
type Server struct {
	config  Config
	grpc    *grpc.Server
	health  *health.Server
	workers *workers
	budget  *memory.Budget
	calls   *concurrency.Limiter
	peers   *peers

	refusals refusals // that were logged

	leave   sync.Once
	leaving chan struct{} // closed when Shutdown begins
}

// New returns a server of service and fleet. It starts nothing.
func New(service mapreduce.Service, fleet protocol.Fleet, config Config) (*Server, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}

	coder, err := codec.New()
	if err != nil {
		return nil, errs.New(errs.Internal, "codec: %w", err)
	}
	pool, err := codec.NewPool()
	if err != nil {
		return nil, errs.New(errs.Internal, "pool of buffers: %w", err)
	}

	s := &Server{
		config: config, health: health.NewServer(), leaving: make(chan struct{}),
		budget: memory.New(config.Memory), calls: concurrency.New(config.Calls),
	}
	s.peers = newPeers(config.MaxConnections, s.budget)
	// The options come last, so that their interceptors run within the server's own.
	s.grpc = grpc.NewServer(append(s.serverOptions(coder, pool), config.Options...)...)

	pb.RegisterMapReduceServiceServer(s.grpc, &jobs{
		service: service, maxDocument: config.MaxDocument, maxPage: min(wire.SplitSize, config.MaxSend), leaving: s.leaving,
		idle: config.SubmitIdle,
	})
	pb.RegisterAdminServiceServer(s.grpc, &admin{service: service, leaving: s.leaving})
	s.workers = &workers{fleet: fleet, split: min(wire.SplitSize, config.MaxSend), idle: config.BlobIdle, recovered: s.recoverPanic}
	pb.RegisterWorkerServiceServer(s.grpc, s.workers)

	if config.Demand != nil {
		externalscaler.RegisterExternalScalerServer(s.grpc, &scaler{demander: config.Demand, leaving: s.leaving})
	}

	healthpb.RegisterHealthServer(s.grpc, s.health)
	for name := range s.grpc.GetServiceInfo() {
		s.health.SetServingStatus(name, healthpb.HealthCheckResponse_SERVING)
	}

	reflection.Register(s.grpc)
	return s, s.checkRules()
}

// checkRules refuses a server with a method for which package auth has no rule.
func (s *Server) checkRules() error {
	for service, info := range s.grpc.GetServiceInfo() {
		for _, m := range info.Methods {
			if _, found := auth.RuleOf("/" + service + "/" + m.Name); !found {
				return errs.New(errs.Internal, "there is no rule who may call /%s/%s", service, m.Name)
			}
		}
	}
	return nil
}

const (
	// streamWindow is how many bytes of a call a peer may send which the call has not
	// read. Left to itself, gRPC would let a fast peer raise that to 16 MB for each call,
	// whether or not the call reads any of it.
	streamWindow = 256 << 10
	// connectionWindow is how many bytes may be under way over a connection.
	connectionWindow = 1 << 20
)

// serverOptions bounds what a connection may take. A connection of an idle worker
// should cost little, as there may be 100,000: hence the small read buffer (what
// is larger is read past it) and pings only once a minute; workers beat at a
// level above. Clients may ping every 10 seconds, with or without a call.
func (s *Server) serverOptions(codec encoding.CodecV2, pool mem.BufferPool) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.Creds(handshakes{tls: s.config.TLS, logger: s.config.Logger, logged: new(atomic.Int64)}),
		grpc.ForceServerCodecV2(codec),
		experimental.BufferPool(pool),
		grpc.MaxRecvMsgSize(s.config.MaxReceive),
		grpc.MaxSendMsgSize(s.config.MaxSend),
		grpc.MaxConcurrentStreams(uint32(min(s.config.MaxStreams, 1<<31-1))),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connectionWindow),
		grpc.MaxHeaderListSize(64 << 10),
		grpc.ConnectionTimeout(20 * time.Second),
		grpc.ReadBufferSize(8 << 10),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
		grpc.InTapHandle(s.tapCall),
		grpc.StatsHandler(meter{}),
		grpc.ChainUnaryInterceptor(s.guardUnary),
		grpc.ChainStreamInterceptor(s.guardStream),
	}
}

// Serve takes connections from listener until Shutdown, and then returns nil
// once that has ended; or until the listener fails. It closes the listener.
func (s *Server) Serve(listener net.Listener) error {
	var watching sync.WaitGroup
	defer watching.Wait()
	ended := make(chan struct{})
	defer close(ended)
	watching.Go(func() { s.peers.watch(ended) })
	if err := s.grpc.Serve(s.peers.listen(listener)); !errors.Is(err, grpc.ErrServerStopped) { // which Shutdown may be the first to cause
		return err
	}
	return nil
}

// Shutdown ends the server. It accepts no more calls, ends the watches, and waits for
// the other calls and for the sessions of workers; the Fleet should ask these to leave.
// When ctx ends, Shutdown cancels the contexts of the remaining calls, which must obey.
func (s *Server) Shutdown(ctx context.Context) {
	s.leave.Do(func() { close(s.leaving) })
	s.health.Shutdown()

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.grpc.GracefulStop()
		s.workers.transfers.Wait()
	}()

	select {
	case <-ended:
	case <-ctx.Done():
		s.grpc.Stop()
		<-ended
	}
}

// Services returns the services of the server with their methods, by their full names.
func (s *Server) Services() map[string]grpc.ServiceInfo { return s.grpc.GetServiceInfo() }
