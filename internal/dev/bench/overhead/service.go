package overhead

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/auth"
	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/telemetry"
	"github.com/coditect/mapreduce/api/transport"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/access"
	"github.com/coditect/mapreduce/orchestrator/observe"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/pebble"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/step"
)

// provider is the name under which units run.
const provider = "rules"

// options are what a kind of service has.
type options struct {
	tls, telemetry, quotas, policy bool
}

func optionsOf(kind string) options {
	all := kind == Everything
	return options{tls: all || kind == TLS, telemetry: all || kind == Telemetry, quotas: all || kind == Quotas, policy: all}
}

// A service is a server over TCP on a store of its own, with workers that connect to it when
// there is a lap.
type service struct {
	options options
	address string
	client  *client.Client
	dial    client.Config
	signals *signals // nil without telemetry

	store  store.Store
	server *server.Server
	guard  *auth.Guard // nil without a policy
	stop   context.CancelFunc
	ends   sync.WaitGroup

	mu     sync.Mutex // guards the variable below
	failed []error    // of what ran
}

// open starts a service in a folder, which it makes.
func open(ctx context.Context, dir string, o options) (*service, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}

	s := &service{options: o}
	if o.telemetry {
		s.signals = newSignals()
	}
	kv, err := pebble.Open(filepath.Join(dir, "store"), pebble.Config{})
	if err != nil {
		return nil, err
	}
	s.store = kv

	orch, err := s.openOrchestrator()
	if err == nil {
		err = s.openEdges(dir, orch)
	}
	if err != nil {
		return nil, errors.Join(err, kv.Close())
	}

	// The service runs until close, and not with ctx.
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.ends.Go(func() { s.note(orch.Run(run)) })

	if s.guard != nil {
		s.ends.Go(func() { s.guard.Run(run) })
	}

	<-orch.Started()
	return s, nil
}

func (s *service) openOrchestrator() (*orchestrator.Orchestrator, error) {
	watch, err := observe.NewStoreObserver(s.signals.meter(), s.signals.tracer(), "pebble")
	if err != nil {
		return nil, err
	}

	all := jobs.New(store.NewDB(s.store, store.Config{Observe: watch}), keys.New(), mapreduce.NodeID(fmt.Sprintf("node-%d", os.Getpid())), time.Now)
	config := orchestrator.Config{Exclusive: true, Adopt: true, Committers: 2, Meter: s.signals.meter(), Tracer: s.signals.tracer()}
	if s.options.quotas {
		config.Rules = func(mapreduce.TenantID) mapreduce.TenantRule {
			return mapreduce.TenantRule{Quota: mapreduce.Quota{
				Jobs: 1000, UnendedJobs: 1000, WaitingUnits: 1 << 40, StoredBytes: 1 << 50, TokensPerDay: 1 << 50, Calls: 1 << 20, RequestsPerMinute: 1 << 30,
			}}
		}
	}

	return orchestrator.New(all, config)
}

// openEdges makes the server, its listener and a client.
func (s *service) openEdges(dir string, orch *orchestrator.Orchestrator) (err error) {
	config := server.Config{Options: s.signals.serverOptions()}
	s.dial.Options = s.signals.dialOptions()
	if s.options.tls {
		if err := s.secure(dir, &config); err != nil {
			return err
		}
	}

	// The parts are wired as in the command.
	var offered mapreduce.Service = access.NewService(orch, access.Rules{TenantOf: orch.TenantOf, AdmitCall: orch.AdmitCall})
	if s.signals != nil {
		if offered, err = telemetry.NewService(offered, s.signals.meter(), s.signals.tracer()); err != nil {
			return err
		}
	}

	if s.server, err = server.New(offered, access.NewFleet(orch), config); err != nil {
		return err
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.address = l.Addr().String()
	s.ends.Go(func() { s.note(s.server.Serve(l)) })

	s.client, err = client.Dial(s.address, s.dial)
	return err
}

// principal is the name in the certificate of clients and workers.
const principal = "bench"

// secure makes an authority, certificates of it and, if there is to be one, a policy.
func (s *service) secure(dir string, config *server.Config) error {
	ca, _, err := transport.OpenAuthority(dir, "bench", time.Hour, time.Now)
	if err != nil {
		return err
	}

	path := func(name string) string { return filepath.Join(dir, name) }
	for name, r := range map[string]transport.CertificateRequest{
		"server": {Names: []string{"127.0.0.1"}, Server: true, Valid: time.Hour}, principal: {Names: []string{principal}, Valid: time.Hour},
	} {
		cert, key, err := ca.Issue(r)
		if err == nil {
			err = transport.WritePair(path(name+".pem"), path(name+".key"), cert, key)
		}
		if err != nil {
			return err
		}
	}

	own, err := transport.NewServer(transport.ServerConfig{Cert: path("server.pem"), Key: path("server.key"), ClientCA: path(transport.CertFile)})
	if err != nil {
		return err
	}
	config.TLS = own.TLS()
	if s.dial.Credentials, err = transport.NewClient(transport.ClientConfig{CA: path(transport.CertFile), Cert: path(principal + ".pem"), Key: path(principal + ".key")}); err != nil {
		return err
	}

	// Without a policy, TLS alone is measured.
	if !s.options.policy {
		return nil
	}

	policy := "principals: [{match: 'dns:" + principal + "', tenant: a, roles: [submitter, operator, worker]}]\n"
	if err := os.WriteFile(path("policy.yaml"), []byte(policy), 0o600); err != nil {
		return err
	}

	known, err := auth.New(auth.Config{Policy: path("policy.yaml"), Peers: own})
	if err != nil {
		return err
	}

	s.guard = auth.NewGuard(known)
	config.Guard = s.guard
	return nil
}

// work runs a worker, over a connection of its own, until the function that it returns is
// called.
func (s *service) work(slots int) (stop func() error, err error) {
	c, err := client.Dial(s.address, s.dial)
	if err != nil {
		return nil, err
	}

	w, err := worker.New(worker.Config{
		Steps: step.Serving(provider, idler{}), Slots: slots, Prefetch: min(4*slots, 256), DrainTimeout: time.Second, Addresses: []string{s.address},
		Meter: s.signals.meter(), Tracer: s.signals.tracer(),
		Connect: []worker.Connect{func(ctx context.Context) (worker.Stream, error) { return c.Connect(ctx) }},
	})
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() error {
		cancel()
		return errors.Join(<-ended, c.Close())
	}, nil
}

func (s *service) note(err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = append(s.failed, err)
}

// close ends the service.
func (s *service) close() error {
	s.note(s.client.Close())
	s.stop()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute) // however long the machine stands still
	defer stop()
	s.server.Shutdown(ctx)
	s.ends.Wait()
	s.note(s.signals.close(ctx))
	s.note(s.store.Close())
	return errors.Join(s.failed...)
}

// An idler does nothing.
type idler struct{}

// Run implements agent.Agent.
func (idler) Run(context.Context, *agent.Task, agent.Calls) (*agent.Result, error) {
	return &agent.Result{Output: []byte{}, Size: 1, Confidence: 1}, nil
}

// documents yields so many small documents.
func documents(n int) iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		for i := range n {
			name := fmt.Sprintf("d%06d", i)
			if !yield(&mapreduce.Document{ID: mapreduce.DocumentID(name), Content: []byte("the text of document " + name)}, nil) {
				return
			}
		}
	}
}
