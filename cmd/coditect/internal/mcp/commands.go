// Package mcp has the command that serves jobs to other people's agents, by the Model
// Context Protocol: to submit a job, to look at it, to read its result, and to search in
// that. An agent can do no more than a user of the commands, and spends what the operator
// of the command has allowed.
package mcp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
)

// options are the flags of the command.
type options struct {
	listen    string
	tokenFile string
	baseURL   string
	spec      mapreduce.JobSpec // what the operator says of every job
	flags     *pflag.FlagSet
}

// Commands returns the command.
func Commands(p *program.Program) []*cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Let agents run jobs, by the Model Context Protocol",
		Long: `Mcp is a server of the Model Context Protocol. Through it an agent can submit documents,
watch its job, read the result with its citations, and search in it. It reads messages from
standard input and writes answers to standard output. With --listen it uses HTTP instead, on
this machine only.

Jobs run in this process or, with --server, on a server. Agents cannot choose the provider,
the model or the budget: --provider, --model and --budget set them for all jobs. The default
provider asks no model.`,
		Example: `  coditect mcp
  coditect mcp --server 127.0.0.1:7600
  coditect mcp --provider anthropic --model claude-haiku-4-5 --budget 200000
  coditect mcp --listen 127.0.0.1:7610 --http-token-file token`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.flags = cmd.Flags()
			return serve(cmd.Context(), p, &o)
		},
	}

	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "", "`address` on this machine to serve streamable HTTP on, such as 127.0.0.1:7610 (default standard input and output)")
	f.StringVar(&o.tokenFile, "http-token-file", "", "`file` with a token that each HTTP request must have (default none: anyone who can log in to this machine can use the server)")
	f.StringVar(&o.spec.Provider, "provider", runners.RulesProvider, "provider that finds the values in all jobs: "+runners.ProviderWords())
	f.StringVar(&o.spec.Model, "model", "", "`name` of the provider's model, or several as in the command run")
	f.StringVar(&o.baseURL, "base-url", "", "`URL` of the provider's API, or of a server with the same API (default the provider's own)")
	f.Int64Var(&o.spec.Budget, "budget", 0, "tokens that each job may spend in all (default no limit)")
	f.IntVar(&o.spec.Parallelism, "parallelism", mapreduce.DefaultParallelism, "number of units that run at the same time")
	p.Runners.Models.AddFlags(f)
	p.Runners.Limits.AddFlags(f)
	p.Runners.Documents.AddFlags(f)
	p.Runners.Tools.AddFlags(f)
	console.OfferWords(cmd, "provider", append([]string{runners.RulesProvider}, runners.ModelProviders()...)...)
	return []*cobra.Command{cmd}
}

// checkReaders refuses flags of reading documents that have no effect because another
// process reads those of jobs.
func checkReaders(p *program.Program, flags *pflag.FlagSet, here bool) error {
	where := "the server " + p.Global.Server
	switch {
	case here:
		return nil
	case p.Global.Server == "":
		where = fmt.Sprintf("the process that works in %s", p.Global.Location)
	}
	return p.Runners.Documents.CheckElsewhere(flags, where, false)
}

// serve serves until ctx ends, or the input does.
func serve(ctx context.Context, p *program.Program, o *options) (err error) {
	switch {
	case o.spec.Budget < 0:
		return exit.UsageError("--budget: must be at least 1")
	case o.spec.Parallelism < 1:
		return exit.UsageError("--parallelism: must be at least 1")
	case o.tokenFile != "" && o.listen == "":
		return exit.UsageError("--http-token-file: needs --listen")
	}

	o.spec.Vars = make(map[string]string)
	if o.baseURL != "" {
		o.spec.Vars[settings.VarBaseURL] = o.baseURL
	}

	token, err := readToken(ctx, o.tokenFile)
	if err != nil {
		return err
	}

	if err := runners.SpreadModels(&o.spec); err != nil {
		return exit.UsageError("--%w", err)
	}
	if err := p.Runners.Models.SetPrices(&o.spec); err != nil {
		return err
	}

	check := o.spec // the provider, before any agent comes
	if err := p.Runners.CheckRunnable(&check, nil); err != nil {
		return err
	}

	if err := checkReaders(p, o.flags, p.Global.Server == ""); err != nil {
		return err
	}
	o.spec.Reading = p.Runners.Documents.Reading(o.flags)

	// An address in use is found before tools and the store are opened.
	var listener net.Listener
	if o.listen != "" {
		if listener, err = listenHere(ctx, o.listen); err != nil {
			return err
		}
		defer listener.Close()
	}

	defer func() { err = errors.Join(err, p.Runners.CloseTools()) }()
	if _, err := p.Runners.OpenTools(ctx); err != nil {
		return exit.Cause(ctx, err)
	}

	m := p.ProgressMeter()
	defer m.End()
	session, err := p.OpenSession(ctx, program.ModeRunUnits, m)
	if err != nil {
		return exit.Cause(ctx, err)
	}

	if err := checkReaders(p, o.flags, session.IsHere()); err != nil {
		return errors.Join(err, session.Close())
	}

	jobs := &jobs{session: session, runners: &p.Runners, spec: o.spec, local: p.Global.Server == ""}
	if err = session.RunWorkerFor(&o.spec); err == nil {
		server := newServer(jobs, p.Version)
		if listener != nil {
			m.Note("serving agents on http://%s%s", listener.Addr(), path)
			err = serveHTTP(ctx, listener, server, token)
		} else {
			err = serveStreams(ctx, server, p)
		}
	}

	return exit.Cause(ctx, errors.Join(err, session.Close()))
}

// serveStreams serves one agent on standard input and output.
func serveStreams(ctx context.Context, server *sdk.Server, p *program.Program) error {
	in := console.NewInterruptibleReader(ctx, p.Stdin)
	err := server.Run(ctx, &sdk.IOTransport{Reader: readCloser{in}, Writer: writeCloser{p.Raw}, MaxLineLength: maxRequest})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

const (
	path       = "/mcp"
	maxRequest = 32 << 20 // bytes: documents come in requests

	idleSession = 30 * time.Minute
)

// listenHere listens on an address of this machine that no other machine reaches.
func listenHere(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, exit.UsageError("--listen: %q is not HOST:PORT", address)
	}

	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, exit.UsageError("--listen: %s can be reached from other machines; give an address of this machine alone, such as 127.0.0.1:7610, and put a server with TLS in front", address)
	}

	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	return l, nil
}

// readToken reads the token that requests have to bring; "" if they need none.
func readToken(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "", nil
	}

	data, err := console.ReadBounded(ctx, name, 4<<10)
	if err != nil {
		return "", console.UnreadableFlag(ctx, "--http-token-file", err)
	}

	token := strings.TrimSpace(string(data))
	if len(token) < 16 {
		return "", exit.UsageError("--http-token-file: %s has fewer than 16 characters; write a random token there, such as `openssl rand -hex 32` prints", name)
	}
	return token, nil
}

// serveHTTP serves agents over HTTP until ctx ends. Pages in a browser are refused: the
// library refuses other names of this machine, and the protection other origins.
func serveHTTP(ctx context.Context, l net.Listener, server *sdk.Server, token string) error {
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
		SessionTimeout: idleSession, MaxRequestBodyBytes: maxRequest,
	})

	mux := http.NewServeMux()
	mux.Handle(path, http.NewCrossOriginProtection().Handler(withToken(token, handler)))
	h := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10, BaseContext: func(net.Listener) context.Context { return ctx }}

	var closing sync.WaitGroup
	stopped := make(chan struct{})
	closing.Go(func() {
		select {
		case <-ctx.Done():
		case <-stopped:
		}
		for s := range server.Sessions() {
			_ = s.Close()
		}
		_ = h.Close()
	})

	err := h.Serve(l)

	// Serve may also end by an error of the listener, and the goroutine must end then too.
	close(stopped)
	closing.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return context.Cause(ctx)
	}
	return err
}

// withToken lets requests through that bring the token.
func withToken(token string, next http.Handler) http.Handler {
	if token == "" {
		return next
	}

	// Hashes have one length, so a comparison takes the same time for all tokens.
	want := sha256.Sum256([]byte("Bearer " + token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a token is needed: Authorization: Bearer TOKEN, with what --http-token-file names", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// jobs are the jobs of the service. It is safe for concurrent use, which the session that
// it replaces when the service goes away is not.
type jobs struct {
	runners *runners.Runners
	spec    mapreduce.JobSpec // of every job
	local   bool              // the service is on this machine, and works on what it is asked to
	going   sync.Map          // the ids of jobs that it was asked to work on

	mu      sync.RWMutex // guards the next: held for writing while it is replaced
	session *program.Session
}

// do calls the service, and once more when it has gone away and another is there.
func (j *jobs) do(ctx context.Context, call func(mapreduce.Client) error) error {
	j.mu.RLock()
	err := call(j.session)
	j.mu.RUnlock()
	if errs.KindOf(err) != errs.Unavailable || ctx.Err() != nil {
		return err
	}

	j.mu.Lock()
	defer j.mu.Unlock()
	return j.session.RetryReconnected(ctx, func() error { return call(j.session) })
}
