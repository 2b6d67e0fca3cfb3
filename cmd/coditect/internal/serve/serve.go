// Package serve has the commands that run until they are stopped, the server and the worker,
// with their listener for operators, and the one that makes certificates for trying them out.
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/auth"
	"github.com/coditect/mapreduce/api/dashboard"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/memory"
	"github.com/coditect/mapreduce/api/web"
	"github.com/coditect/mapreduce/cmd/coditect/internal/apart"
	"github.com/coditect/mapreduce/cmd/coditect/internal/embedded"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/worker"
)

// drainWait is how long units may run on when a server or a worker was asked to stop,
// unless --drain says otherwise.
const drainWait = 25 * time.Second

// addDrainFlag adds the flag of that time. A supervisor should wait longer than this before
// it kills the process.
func addDrainFlag(f *pflag.FlagSet, d *time.Duration) {
	f.DurationVar(d, "drain", drainWait, "time for which units may continue after this process is asked to stop; it then hands the others back")
}

// aheadOf returns how many waiting units a worker for jobs of all kinds holds.
func aheadOf(slots int) int { return max(1, slots/4) }

// serveOptions are the flags of serve.
type serveOptions struct {
	listen   string
	http     string
	origins  []string // of pages that may call by HTTP
	workers  int
	security securityOptions
	admin    string
	memory   int64 // MiB
	drain    time.Duration
	keep     time.Duration
	unended  int64 // jobs of a tenant
}

// mostUnended is the default for the largest number of jobs of a tenant that have not
// ended. A server looks at all of these again and again and has to finish them, so without
// a limit one client could keep it busy long after it left.
const mostUnended = 1000

// rules returns what is set for tenants: by the policy, and by flags for what the policy
// does not say of them.
func (o *serveOptions) rules(g *auth.Guard) func(mapreduce.TenantID) mapreduce.TenantRule {
	return func(t mapreduce.TenantID) (rule mapreduce.TenantRule) {
		if g != nil {
			rule = g.RuleOf(t)
		}
		rule.Keep = cmp.Or(rule.Keep, o.keep)
		rule.Quota.UnendedJobs = cmp.Or(rule.Quota.UnendedJobs, o.unended)
		return rule
	}
}

func (cmds *commands) serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve jobs to other processes and machines",
		Long: `Serve keeps jobs in a store and runs them for clients, with workers in this process
and workers that connect to it. On SIGTERM it lets units finish or hands them back.
Jobs continue when serve starts again.

Serve always listens on a Unix socket in its data directory, which only its owner can
open. Commands and workers with the same --data-dir find it there, and need no --server.
--listen HOST:PORT makes it listen on a TCP address too. On a cluster there is no data
directory, so serve listens on 127.0.0.1:7600 unless --listen names another address.

An address that other machines can reach needs TLS (--tls-cert, --tls-key) and a policy that
says who may do what (--policy). Callers authenticate with certificates (--client-ca), with
tokens whose hashes the server has (--tokens), or with tokens of an OpenID Connect issuer
(--oidc-issuer, --oidc-audience). ` + "`coditect certs`" + ` makes certificates and tokens for tests.
All these files are read again when they change. The calls of a principal that is no longer
in the policy are ended.

--http serves the same methods to browsers and to programs without gRPC: REST, described by
/openapi.json, Connect and gRPC-Web. Callers authenticate in the same ways. Scripts of web
pages may call it only if --cors-origin names the origin of the page. At / it serves pages for
people. They sign in with a token, or with their account at the issuer (--oidc-client,
--public-url).

A policy has a list of principals. Each has a name to match (spiffe://…, dns:NAME, cn:NAME,
oidc:SUBJECT, token:NAME or uid:NUMBER), a tenant, and roles: observer, viewer, submitter, reviewer,
operator, worker, scaler (an autoscaler), admin.

Several servers can share the jobs of a FoundationDB cluster. When a server dies, the
others continue its jobs. This needs a program built with FoundationDB: make build-fdb.`,
		Example: `  coditect serve
  coditect serve --listen 127.0.0.1:7600
  coditect serve --listen 127.0.0.1:7601 --store pebble:/var/lib/coditect --workers 0
  coditect serve --listen 0.0.0.0:7600 --tls-cert server.pem --tls-key server.key --client-ca ca.pem --policy policy.yaml
  coditect serve --http 127.0.0.1:7680
  coditect serve --store fdb:/etc/foundationdb/fdb.cluster --store-prefix prod`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmds.serveUntil(cmd.Context(), o) },
	}

	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "", "`address` to listen on, HOST:PORT, or \"unix\": only the socket in the data directory (default unix; 127.0.0.1:7600 on a cluster)")
	f.StringVar(&o.http, "http", "", "`address` for REST, Connect and gRPC-Web, HOST:PORT (default: none)")
	f.StringSliceVar(&o.origins, "cors-origin", nil, "`origin` of web pages whose scripts may call --http, SCHEME://HOST[:PORT]; may be repeated")
	f.IntVar(&o.workers, "workers", mapreduce.DefaultParallelism, "number of units that run in this process at the same time; 0 leaves all units to other workers")
	cmds.Runners.Models.AddFleet(f)
	cmds.Runners.Documents.AddFlags(f)
	cmds.Runners.Tools.AddFlags(f)
	cmds.Runners.Limits.AddFlags(f)
	f.Int64Var(&o.memory, "memory", 384, "`MiB` of memory for the calls of all clients and workers together; a call that needs more waits, and is refused after a while")
	addAdminFlag(f, &o.admin)
	addDrainFlag(f, &o.drain)
	f.DurationVar(&o.keep, "keep", 0, "time for which jobs are kept after their end, if the policy does not say it for their tenant; 0 keeps them until they are deleted")
	f.Int64Var(&o.unended, "unended-jobs", mostUnended, "largest number of jobs of a tenant that have not ended, if the policy does not say it; 0 sets no limit")
	o.security.addFlags(f)
	return cmd
}

func (cmds *commands) serveUntil(ctx context.Context, o serveOptions) (err error) {
	if o.memory < leastMemory {
		return exit.UsageError("--memory: must be at least %d MiB, for a document and what is made of it", leastMemory)
	}
	if o.drain <= 0 {
		return exit.UsageError("--drain: must be above 0")
	}
	if o.keep < 0 || o.keep > 0 && o.keep < leastKeep {
		return exit.UsageError("--keep: must be %v or longer, or 0 to keep jobs until they are deleted", leastKeep)
	}
	if o.unended < 0 {
		return exit.UsageError("--unended-jobs: must not be negative")
	}
	if o.workers < 0 {
		return exit.UsageError("--workers: must not be negative")
	}

	if o.listen == "" {
		if o.listen = defaultListen; cmds.Global.Location.Dir != "" {
			o.listen = socketAlone
		}
	}
	if o.listen == socketAlone && cmds.Global.Location.Dir == "" {
		return exit.UsageError("--listen: a server on a cluster has no data directory for a socket; give HOST:PORT")
	}

	if err := cmds.checkAddresses(o); err != nil {
		return err
	}

	// StepRegistry makes agents that depend on it: they send a key to no address that a job
	// names.
	cmds.Runners.Models.Fleet = true
	all, err := cmds.Runners.StepRegistry()
	if err != nil {
		return err
	}

	log, closeAll, err := cmds.openTelemetryAndTools(ctx, "coditect-server", o.admin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()

	config, err := cmds.NodeConfig(all, log)
	if err != nil {
		return err
	}

	config.Memory = memory.Limits{Total: o.memory << 20}
	limitHeap(config.Memory.Total)
	if err := cmds.CheckPrivacy(func(message string) { log.Warn(message) }); err != nil {
		return err
	}

	secured, err := cmds.secure(ctx, o.security, log)
	if err != nil {
		return err
	}

	config.TLS, config.Guard, config.Rules = secured.tls(), secured.guard, o.rules(secured.guard)
	config.Adopt, config.Drain, config.HTTP = true, o.drain, o.http != ""

	// Operators are served before the store opens, which may take long; until then the
	// server is not ready.
	var ready readiness
	closeAdmin, err := cmds.listenAdmin(o.admin, ready.serverChecks(), log)
	if err != nil {
		return err
	}
	defer closeAdmin()

	node, err := embedded.Open(config)
	if err != nil {
		return fmt.Errorf("store %s: %w", cmds.Global.Location, err)
	}
	ready.node.Store(node)

	err = cmds.serveNode(ctx, node, o, secured, log)
	ready.stopping.Store(true)
	log.Info("stopping; what runs may finish", "for", o.drain)
	return errors.Join(err, node.Close())
}

// openTelemetryAndTools opens what a server and a worker have beside their work: telemetry of
// a name, and tools. It returns the log and what closes both.
func (cmds *commands) openTelemetryAndTools(ctx context.Context, name, admin string) (*slog.Logger, func() error, error) {
	log, closeTelemetry, err := cmds.openTelemetry(ctx, name, admin)
	if err != nil {
		return nil, nil, err
	}

	closeAll := func() error {
		err := cmds.Runners.CloseTools()
		closeTelemetry()
		return err
	}

	cmds.Runners.Note = func(message string) { log.Info(message) }
	cmds.Runners.LogTools(log)
	cmds.Runners.WatchKeys(func(err error) { log.Warn("units that ask this provider fail here", "error", err) })
	if _, err := cmds.Runners.OpenTools(ctx); err != nil {
		return nil, nil, errors.Join(err, closeAll())
	}
	return log, closeAll, nil
}

// leastKeep is the least --keep: jobs are looked for whose time is over once a minute.
const leastKeep = time.Minute

// leastMemory is the least --memory, in MiB: documents have up to 64 MiB, and what a
// document takes while it is dealt with is a multiple of that.
const leastMemory = 320

// limitHeap sets the memory limit of the Go runtime to what peers may make this process
// hold, and some room beside it, unless the environment sets the limit.
func limitHeap(held int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(held + 320<<20)
	}
}

// serveNode serves until ctx ends.
func (cmds *commands) serveNode(ctx context.Context, node *embedded.Node, o serveOptions, secured *security, log *slog.Logger) error {
	// The address is taken first: if it is in use, no job begins to move.
	l, err := listen(o)
	if err != nil {
		return err
	}

	err = node.Start(ctx)
	if err == nil {
		err = node.Listen()
	}
	if err != nil {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
		return exit.Cause(ctx, err)
	}

	address := embedded.SocketAddress(cmds.Global.Location.Dir)
	if l != nil {
		node.Serve(l)
		address = l.Addr().String()
		secured.warn(log, address)
	}

	drawer := cmds.Self.Drawer(cmds.Runners.Drawing())
	defer drawer.Close()
	if err := cmds.serveHTTP(node, o, secured, drawer, log); err != nil {
		return err
	}
	if o.workers > 0 {
		if err := node.Work(o.workers, aheadOf(o.workers)); err != nil {
			return err
		}
	}

	log.Info("serving", "address", address, "store", cmds.Global.Location, "version", cmds.Version, "workers", o.workers)
	if secured.guard != nil {
		secured.guard.Run(ctx)
	}
	<-ctx.Done()
	return nil
}

// serveHTTP begins to serve HTTP, if there is an address for it. Pages of documents are drawn by drawer.
func (cmds *commands) serveHTTP(node *embedded.Node, o serveOptions, secured *security, drawer *apart.Drawer, log *slog.Logger) error {
	if o.http == "" {
		return nil
	}
	l, err := net.Listen("tcp", o.http)
	if err != nil {
		return exit.RefusedError("--http: %w", err)
	}

	public, err := isPublic(o.http)
	var pages *dashboard.Config
	if err == nil {
		pages, err = cmds.pages(secured, o.workers > 0, drawer)
	}
	if err == nil {
		err = node.ServeHTTP(l, web.Config{
			TLS: secured.webTLS(), Origins: o.origins, LocalOnly: !public && !secured.asked(), Dashboard: pages,
		})
	}
	if err != nil {
		_ = l.Close() // nobody has used it
		return exit.RefusedError("--%w", err)
	}

	log.Info("HTTP is served", "http", l.Addr().String())
	secured.warn(log, l.Addr().String())
	return nil
}

// defaultListen is where a server of a cluster listens if --listen does not say where, and
// socketAlone is the value of --listen with which a server listens on its socket alone, as
// one with a data directory does if --listen says nothing.
const (
	defaultListen = "127.0.0.1:7600"
	socketAlone   = "unix"
)

// listen returns the TCP listener of the server, or nil if it listens on its socket alone.
func listen(o serveOptions) (net.Listener, error) {
	if o.listen == socketAlone {
		return nil, nil
	}
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return nil, exit.RefusedError("--listen: %w", err)
	}
	return l, nil
}

func (cmds *commands) workerCommand() *cobra.Command {
	var (
		servers []string
		slots   int
		admin   string
		drain   time.Duration
	)

	cmd := &cobra.Command{
		Use:   "worker [--server ADDR]...",
		Short: "Run units for servers",
		Long: `Worker runs units, the pieces of work of jobs, for the given servers. It connects again
when they come back. On SIGTERM it finishes its units or hands them back. Without --server it
works for the server that runs on the data directory.

It reads the keys of models from its environment, ANTHROPIC_API_KEY and
OPENAI_API_KEY. A job cannot choose the address that a key is sent to.`,
		Example: `  coditect worker
  coditect worker --server 127.0.0.1:7600 --slots 20
  coditect worker --server jobs.example.org:7600 --tls-ca ca.pem --tls-cert worker.pem --tls-key worker.key
  coditect worker --server 127.0.0.1:7600 --providers openai --endpoint openai=http://10.0.0.5:8000/v1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmds.workUntil(cmd.Context(), servers, slots, admin, drain)
		},
	}

	f := cmd.Flags()
	f.StringArrayVar(&servers, "server", nil, "address of a server, `HOST:PORT` or unix:PATH; may be repeated")
	f.IntVar(&slots, "slots", mapreduce.DefaultParallelism, "number of units that run at the same time")
	addAdminFlag(f, &admin)
	addDrainFlag(f, &drain)
	cmds.Runners.Models.AddFleet(f)
	cmds.Runners.Documents.AddFlags(f)
	cmds.Runners.Tools.AddFlags(f)
	return cmd
}

func (cmds *commands) workUntil(ctx context.Context, servers []string, slots int, admin string, drain time.Duration) (err error) {
	if len(servers) == 0 {
		address := embedded.SocketAddress(cmds.Global.Location.Dir)
		if _, err := os.Stat(strings.TrimPrefix(address, "unix:")); err != nil {
			return exit.UsageError("--server is missing: name the address of a server, such as 127.0.0.1:7600; none listens in %s", cmds.Global.Location)
		}
		servers = []string{address}
	}

	if slots < 1 {
		return exit.UsageError("--slots: must be at least 1")
	}
	if drain <= 0 {
		return exit.UsageError("--drain: must be above 0")
	}

	// StepRegistry makes agents that depend on it: they send a key to no address that a job
	// names.
	cmds.Runners.Models.Fleet = true
	all, err := cmds.Runners.StepRegistry()
	if err != nil {
		return err
	}

	formats, err := cmds.Runners.DocumentFormats()
	if err != nil {
		return err
	}

	log, closeAll, err := cmds.openTelemetryAndTools(ctx, "coditect-worker", admin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()

	batches, err := cmds.Runners.Batches()
	if err != nil {
		return err
	}

	c := worker.Config{
		Version: cmds.Version, Steps: all, Parsers: formats.Parsers(), Tools: cmds.Runners.OfferedTools(), Limits: cmds.Runners.Gates, Manners: cmds.Runners.Manners, Batches: batches, StartApart: cmds.Self.Starter(apart.Whose(true)), DrawPages: cmds.Runners.DrawPages, Slots: slots, Prefetch: aheadOf(slots), Logger: log, Meter: cmds.Telemetry.Meter(), Tracer: cmds.Telemetry.Tracer(), DrainTimeout: drain,
	}

	for _, target := range servers {
		conn, err := cmds.Dial(target)
		if err != nil {
			return err
		}
		defer conn.Close()
		c.Connect = append(c.Connect, func(ctx context.Context) (worker.Stream, error) { return conn.Connect(ctx) })
		c.Addresses = append(c.Addresses, target)
	}

	w, err := worker.New(c)
	if err != nil {
		return err
	}

	keyless := cmds.Runners.CheckKeys()
	if keyless != nil {
		log.Warn("units that ask these models will fail here", "error", keyless)
	}

	var ready readiness
	closeAdmin, err := cmds.listenAdmin(admin, ready.workerChecks(w, keyless, cmds.Runners.Keys.Refused), log)
	if err != nil {
		return err
	}
	defer closeAdmin()

	log.Info("working", "session", w.Session(), "servers", strings.Join(servers, " "), "slots", slots, "version", cmds.Version)
	err = w.Run(ctx)
	st := w.Stats()
	log.Info("worked", "session", w.Session(), "done", st.Done, "failed", st.Errored, "returned", st.Returned, "panics", st.Panics,
		"accepted", st.Accepted, "refused", st.Refused, "connections", st.Connections, "left", st.Held, "abandoned", st.Abandoned)
	return err
}
