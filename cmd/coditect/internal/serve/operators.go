package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof" // nothing serves the mux in which it registers itself
	"slices"
	"strings"
	"sync"
	"time"
)

// An AdminCheck is something that a process needs to be ready.
type AdminCheck struct {
	Name string // one word
	// Run returns nil, or why the process is not ready, for people. It ends with ctx.
	Run func(ctx context.Context) error
}

// An AdminConfig says what a listener shows.
type AdminConfig struct {
	// Address is HOST:PORT; without a host it is one of this machine's own.
	Address string
	Checks  []AdminCheck
	// Metrics answers GET /metrics. Defaults to none.
	Metrics http.Handler
	// Logger defaults to none.
	Logger *slog.Logger
}

// An AdminServer answers the operators of a process. It has no authentication, so it listens on
// this machine unless a flag names another address, and gives profiles to this machine alone.
type AdminServer struct {
	config   AdminConfig
	listener net.Listener
	server   *http.Server
	serving  sync.WaitGroup
}

const (
	loopback    = "127.0.0.1"
	checkWait   = 2 * time.Second // for the checks of one request
	headerWait  = 5 * time.Second
	longest     = 3 * time.Minute // for a profile
	headerBytes = 16 << 10
)

// ListenAdmin begins to serve.
func ListenAdmin(c AdminConfig) (*AdminServer, error) {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))

	host, port, err := net.SplitHostPort(c.Address)
	if err != nil {
		return nil, fmt.Errorf("%q is not HOST:PORT, nor :PORT", c.Address)
	}

	l, err := net.Listen("tcp", net.JoinHostPort(cmp.Or(host, loopback), port))
	if err != nil {
		return nil, err
	}

	s := &AdminServer{config: c, listener: l}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", s.answerAlive)
	mux.HandleFunc("GET /readyz", s.answerReady)
	mux.HandleFunc("GET /readyz/{name}", s.answerReady)
	if c.Metrics != nil {
		mux.Handle("GET /metrics", c.Metrics)
	}

	for path, handle := range map[string]http.HandlerFunc{
		"/debug/pprof/": pprof.Index, "/debug/pprof/profile": pprof.Profile, "/debug/pprof/symbol": pprof.Symbol, "/debug/pprof/trace": pprof.Trace,
	} {
		mux.Handle("GET "+path, fromHere(handle))
	}

	// Writing may take as long as the longest profile.
	s.server = &http.Server{
		Handler: s.guardHost(mux), ReadHeaderTimeout: headerWait, ReadTimeout: headerWait, WriteTimeout: longest, IdleTimeout: longest,
		MaxHeaderBytes: headerBytes, ErrorLog: slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug),
	}

	s.serving.Go(func() {
		if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			c.Logger.Error("the admin listener has ended", "error", err)
		}
	})

	if !isLoopback(l.Addr()) {
		c.Logger.Warn("others can reach the admin listener, which asks for no authentication: they see names of tenants and models", "address", l.Addr().String())
	}
	return s, nil
}

// Addr returns the address that it listens on.
func (s *AdminServer) Addr() net.Addr { return s.listener.Addr() }

// Close ends the listener and what it is answering.
func (s *AdminServer) Close() error {
	err := s.server.Close()
	s.serving.Wait()
	return err
}

func (s *AdminServer) answerAlive(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintln(w, "ok")
}

// answerReady runs the checks: the one that the path names, or all but those that
// ?exclude=NAME names.
func (s *AdminServer) answerReady(w http.ResponseWriter, r *http.Request) {
	checks, without := s.config.Checks, r.URL.Query()["exclude"]
	if one := r.PathValue("name"); one != "" {
		checks = slices.DeleteFunc(slices.Clone(checks), func(c AdminCheck) bool { return c.Name != one })
		if len(checks) == 0 {
			http.NotFound(w, r)
			return
		}
	}

	ctx, stop := context.WithTimeout(r.Context(), checkWait)
	defer stop()
	ready, text := runChecks(ctx, checks, without)

	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if !ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprint(w, text)
}

// runChecks runs checks at the same time, and says of each what it found, in order. One
// that does not end in time has failed.
func runChecks(ctx context.Context, checks []AdminCheck, without []string) (ready bool, text string) {
	found := make([]chan error, len(checks))
	for i, c := range checks {
		if slices.Contains(without, c.Name) {
			continue
		}

		// Each channel has room for its answer, so that a check that ends too late does
		// end.
		found[i] = make(chan error, 1)
		go func() { found[i] <- c.Run(ctx) }()
	}

	var b strings.Builder
	ready = true
	for i, c := range checks {
		if slices.Contains(without, c.Name) {
			fmt.Fprintf(&b, "[+] %s excluded\n", c.Name)
			continue
		}

		var err error
		select {
		case err = <-found[i]:
		case <-ctx.Done():
			err = fmt.Errorf("no answer within %v", checkWait)
		}

		if err != nil {
			ready = false
			fmt.Fprintf(&b, "[-] %s: %v\n", c.Name, err)
		} else {
			fmt.Fprintf(&b, "[+] %s ok\n", c.Name)
		}
	}

	if ready {
		b.WriteString("ready\n")
	} else {
		b.WriteString("not ready\n")
	}
	return ready, b.String()
}

// fromHere refuses those who are not on this machine.
func fromHere(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
			http.Error(w, "profiles are given to this machine alone", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// guardHost refuses requests that a foreign web page makes a browser on this machine send:
// they name another host, while this listener is addressed as localhost or by its address.
func (s *AdminServer) guardHost(next http.Handler) http.Handler {
	if !isLoopback(s.listener.Addr()) {
		return next
	}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}

		if host = strings.Trim(host, "[]"); host != "localhost" && net.ParseIP(host) == nil {
			http.Error(w, "this listener is asked for by its address", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
