// Package embedded is the whole service in one process: store, orchestrator and
// worker, wired over a connection in memory. Its store is in a data directory,
// which it holds alone, and through a Unix socket in it other processes on the
// same directory reach it; or it is a cluster, where others work beside it.
//
// It wires what others have made and decides nothing about jobs. Nothing but
// the command imports it.
package embedded

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/coditect/mapreduce/api/auth"
	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/memory"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/telemetry"
	"github.com/coditect/mapreduce/api/web"
	"github.com/coditect/mapreduce/internal/placement"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/access"
	"github.com/coditect/mapreduce/orchestrator/observe"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/pebble"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/apart"
	"github.com/coditect/mapreduce/worker/step"
)

// Config says what a node is made of.
type Config struct {
	// Dir is the data directory; it holds the store and the socket. Needed
	// unless there is a Cluster.
	Dir string
	// Cluster holds the store instead of Dir, if there is one.
	Cluster Cluster
	// Steps are what a worker in this process runs units with.
	Steps *step.Registry
	// Parsers are the names of the parsers that this worker has. Defaults to none.
	Parsers []string
	// Tools are the names of the tools that units may use here. Defaults to none.
	Tools []string
	// Limits hold back their calls to models. Defaults to none.
	Limits worker.Limiter
	// Manners are what servers of models refuse. Defaults to nothing known.
	Manners worker.MannersKeeper
	// Batches sees to batches at vendors. Defaults to none.
	Batches worker.Batcher
	// StartApart is that of worker.Config, and has its default.
	StartApart apart.Start
	// DrawPages is that of worker.Config, and has its default.
	DrawPages worker.DrawPages
	// Version of the program; for display.
	Version string
	// ReadOnly opens the store of Dir so that nothing in it changes. A node
	// that is read-only must not be started.
	ReadOnly bool
	// Adopt makes the node run every job in the store that may run, instead
	// of those that are submitted to it or resumed by it.
	Adopt bool
	// Drain is how long units may run on when the node closes. Defaults to
	// 2 s.
	Drain time.Duration
	// Lease, Heartbeat and Grace are those of orchestrator.Config, and have its
	// defaults.
	Lease, Heartbeat, Grace time.Duration
	// Look is that of orchestrator.Config, and has its default.
	Look func(*mapreduce.JobSpec, string, []byte) (plan.Look, bool)

	// Rates is that of orchestrator.Config, and has its default.
	Rates func(*mapreduce.JobSpec) plan.Rates
	// Overhead is that of orchestrator.Config, and has its default.
	Overhead func(*mapreduce.JobSpec) (prompt, answer int64)
	// Answer and Cost are those of orchestrator.Config, and have their defaults.
	Answer func(*mapreduce.JobSpec) int64
	Cost   func(*mapreduce.JobSpec, mapreduce.Tokens) int64
	Offer  func(*mapreduce.JobSpec) placement.Offer // likewise
	// Address is that of orchestrator.Config, and has its default.
	Address func(provider string) string
	// Check is that of orchestrator.Config, and has its default.
	Check func(*mapreduce.JobSpec) error
	// Advise is that of orchestrator.Config, and has its default.
	Advise func(*mapreduce.JobSpec) []string
	// MaxCalls and ModelLimits are MaxCalls and Limits of orchestrator.Config, and
	// have its defaults.
	MaxCalls    int
	ModelLimits func(model string) orchestrator.ModelLimits
	// Warms is that of orchestrator.Config, and has its default.
	Warms func(*mapreduce.JobSpec) bool
	// Memory bounds what other processes can make this one hold. Defaults to that of
	// memory.Limits.
	Memory memory.Limits
	// TLS secures the connections that Serve takes over TCP. Defaults to none.
	TLS *tls.Config
	// Rules is that of orchestrator.Config, and has its default.
	Rules func(mapreduce.TenantID) mapreduce.TenantRule
	// Guard asks the callers of other processes who they are. Defaults to none: each may do
	// everything.
	Guard *auth.Guard
	// HTTP leaves some of the connections that a process may have to ServeHTTP.
	HTTP bool
	// Hook is called at each failpoint that is passed, for tests.
	Hook failpoint.Hook
	// Logger defaults to none.
	Logger *slog.Logger
	// Meter and Tracer measure and trace what the node does. They default to none.
	Meter  metric.Meter
	Tracer trace.Tracer
	// Dial and Serve are options of the connection in memory and of the server that
	// others reach: stats handlers that measure and trace calls. They default to none.
	Dial  []grpc.DialOption
	Serve []grpc.ServerOption
}

func (c Config) withDefaults() Config {
	if c.Drain == 0 {
		c.Drain = 2 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// A Node is a service in this process.
// Start, Work and Listen are called once each at most, by one goroutine.
type Node struct {
	*client.Client
	config  Config
	store   store.Store
	jobs    *jobs.Jobs
	orch    *orchestrator.Orchestrator
	server  *server.Server
	web     *web.Edge // nil before ServeHTTP
	clients *waitingClients

	stopOrchestrator context.CancelFunc // nil before Start
	orchestrating    sync.WaitGroup
	stopWorker       context.CancelFunc // nil before Work
	working          sync.WaitGroup
	serving          sync.WaitGroup
	socket           *dirSocket // nil before Listen
	once             sync.Once
	closed           error // of Close

	mu     sync.Mutex // guards the variable below
	failed []error    // of what ran
}

// Open opens a store and a service over it that can be read. A data directory is
// made if need be; nothing is written to a cluster. The errors are those of
// pebble.Open, among them store.ErrInUse, or those of fdb.Open and jobs.Inspect.
func Open(c Config) (*Node, error) {
	c = c.withDefaults()
	kv, err := c.openStore()
	if err != nil {
		return nil, err
	}

	id := mapreduce.NodeID("node_" + strings.ToLower(rand.Text()))
	watch, err := observe.NewStoreObserver(c.Meter, c.Tracer, c.storeSystem())
	if err != nil {
		return nil, errors.Join(err, kv.Close())
	}

	n := &Node{config: c, store: kv, clients: newWaitingClients(), jobs: jobs.New(store.NewDB(kv, store.Config{Observe: watch}), c.keySpace(), id, time.Now)}
	if err := n.checkInstallation(); err != nil {
		return nil, errors.Join(err, kv.Close())
	}
	if err := n.wireService(); err != nil {
		return nil, errors.Join(err, kv.Close())
	}

	return n, nil
}

func (n *Node) wireService() (err error) {
	n.jobs.SetHook(n.config.Hook)
	n.orch, err = orchestrator.New(n.jobs, orchestrator.Config{
		Adopt: n.config.Adopt, Exclusive: !n.config.isShared(), Logger: n.config.Logger,
		Lease: n.config.Lease, Heartbeat: n.config.Heartbeat, Grace: n.config.Grace, Rates: n.config.Rates, Look: n.config.Look, Warms: n.config.Warms,
		Overhead: n.config.Overhead, Answer: n.config.Answer, Cost: n.config.Cost, Offer: n.config.Offer, Address: n.config.Address, Check: n.config.Check, Advise: n.config.Advise, MaxCalls: n.config.MaxCalls, Limits: n.config.ModelLimits, Meter: n.config.Meter, Tracer: n.config.Tracer,
		Rules: n.config.Rules,
	})
	if err != nil {
		return err
	}

	var service mapreduce.Service = access.NewService(n.orch, access.Rules{TenantOf: n.orch.TenantOf, AdmitCall: n.orch.AdmitCall})
	// Telemetry is the outermost, so that calls which access refuses are measured as well.
	if n.config.Meter != nil || n.config.Tracer != nil {
		if service, err = telemetry.NewService(service, n.config.Meter, n.config.Tracer); err != nil {
			return err
		}
	}

	n.server, err = server.New(service, access.NewFleet(n.orch), server.Config{
		Logger: n.config.Logger, MaxConnections: n.connections(), Memory: n.config.Memory, Demand: access.NewDemander(n.orch), TLS: n.config.TLS, Guard: n.config.Guard,
		Options: append([]grpc.ServerOption{grpc.StatsHandler(n.clients)}, n.config.Serve...),
	})
	if err != nil {
		return err
	}

	n.Client, err = client.NewInProcess(n.server, client.Config{Options: n.config.Dial})
	return err
}

// CheckStoreAnswers returns an error if the store does not answer; see
// read.Overview.CheckStoreAnswers.
func (n *Node) CheckStoreAnswers(ctx context.Context) error { return n.orch.CheckStoreAnswers(ctx) }

// CountWorkers returns how many workers have a stream to this process, its own included.
func (n *Node) CountWorkers() int { return n.orch.CountWorkers() }

// Start makes the node move jobs, and returns when it does.
func (n *Node) Start(ctx context.Context) error {
	if err := n.markInstallation(ctx); err != nil {
		return err
	}

	// ctx bounds only the start: the orchestrator runs until Close.
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.stopOrchestrator = stop
	ended := make(chan struct{})
	n.orchestrating.Go(func() {
		defer close(ended)
		n.recordFailure("orchestrator", n.orch.Run(run))
	})

	select {
	case <-n.orch.Started():
		return nil
	case <-ended:
		return errors.Join(n.takeFailures()...)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Work runs units in this process: so many at once, and so many held beside
// them.
func (n *Node) Work(slots, prefetch int) error {
	w, err := worker.New(worker.Config{
		Version: n.config.Version, Steps: n.config.Steps, Parsers: n.config.Parsers, Tools: n.config.Tools, Limits: n.config.Limits, Manners: n.config.Manners, Batches: n.config.Batches, StartApart: n.config.StartApart, DrawPages: n.config.DrawPages, Slots: slots, Prefetch: prefetch,
		Embedded: true, Logger: n.config.Logger, Meter: n.config.Meter, Tracer: n.config.Tracer, DrainTimeout: n.config.Drain, Grace: time.Second,
		Addresses: []string{"this process"},
		Connect:   []worker.Connect{func(ctx context.Context) (worker.Stream, error) { return n.Connect(ctx) }},
	})
	if err != nil {
		return err
	}

	ctx, stop := context.WithCancel(context.Background())
	n.stopWorker = stop
	n.working.Go(func() { n.recordFailure("worker", w.Run(ctx)) })
	return nil
}

// Shared reports whether other processes may work on the store as well.
func (n *Node) Shared() bool { return n.config.isShared() }

// Listen makes the node reachable for other processes that use the same data
// directory. Those on a cluster have no need of it.
func (n *Node) Listen() error {
	if n.config.isShared() {
		return nil
	}
	s, err := listenSocket(n.config.Dir)
	if err != nil {
		return err
	}
	n.socket = s
	n.Serve(s.listener)
	return nil
}

// Serve takes connections from a listener until Close.
func (n *Node) Serve(l net.Listener) {
	n.serving.Go(func() { n.recordFailure("server", n.server.Serve(l)) })
}

// ServeHTTP takes connections of HTTP from a listener until Close. Of the configuration,
// Server, MaxConnections and Logger are the node's.
func (n *Node) ServeHTTP(l net.Listener, c web.Config) error {
	c.Server, c.MaxConnections, c.Logger = n.server, n.connections(), n.config.Logger
	edge, err := web.New(c)
	if err != nil {
		return err
	}
	n.web = edge
	n.serving.Go(func() { n.recordFailure("HTTP", edge.Serve(l)) })
	return nil
}

// connections returns how many connections an edge may have.
func (n *Node) connections() int {
	all := maxConnections(pebble.MaxTableFiles())
	if n.config.HTTP {
		all /= 2
	}
	return all
}

// CountClients returns how many other processes wait here for jobs of theirs.
func (n *Node) CountClients() int { return n.clients.countWaiting() }

// WaitForClients waits until no other process waits for a job here, or ctx ends.
func (n *Node) WaitForClients(ctx context.Context) error { return n.clients.waitUntilNone(ctx) }

func (n *Node) recordFailure(what string, err error) {
	if err == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failed = append(n.failed, fmt.Errorf("%s: %w", what, err))
}

// takeFailures returns what failed and was not returned before.
func (n *Node) takeFailures() []error {
	n.mu.Lock()
	defer n.mu.Unlock()
	failed := n.failed
	n.failed = nil
	return failed
}

// shutdownWait bounds how long calls may go on when a node closes.
const shutdownWait = 2 * time.Second

// Close ends the node: units that run get Config.Drain to finish, others go
// back, and all that was finished is stored when Close returns.
func (n *Node) Close() error {
	n.once.Do(func() { n.closed = n.close() })
	return n.closed
}

// shutDownEdges ends the calls of others. Those that came by HTTP end with those that they
// have become.
func (n *Node) shutDownEdges() {
	ctx, stop := context.WithTimeout(context.Background(), shutdownWait)
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { n.server.Shutdown(ctx) })
	if n.web != nil {
		both.Go(func() { n.web.Shutdown(ctx) })
	}
	both.Wait()
}

func (n *Node) close() error {
	// The worker ends first, as its last results go to the orchestrator, which needs the
	// store.
	if n.stopWorker != nil {
		n.stopWorker()
		n.working.Wait()
	}

	if n.stopOrchestrator != nil {
		n.stopOrchestrator()
		n.orchestrating.Wait()
	}

	n.shutDownEdges()
	n.serving.Wait()

	ctx, stop := context.WithTimeout(context.Background(), shutdownWait)
	defer stop()
	if n.stopOrchestrator != nil && n.config.isShared() {
		if err := n.orch.Retire(ctx); err != nil { // others find out by the lease
			n.config.Logger.Warn("other servers take over the jobs of this one only when its lease has expired", "err", err)
		}
	}

	if n.socket != nil {
		n.recordFailure("socket", n.socket.removeFiles())
	}

	n.recordFailure("client", n.Client.Close())
	n.recordFailure("store", n.store.Close())
	return errors.Join(n.takeFailures()...)
}
