// Package web is the HTTP edge of an orchestrator: it offers what a server offers to
// clients by REST, by Connect and by gRPC-Web, to programs and to browsers. Each call is
// handed on to the server over a bridge, as a call of the peer that made it, so that the
// server alone knows who may do what, and bounds what peers take. What workers need is not
// offered.
package web

import (
	"cmp"
	"context"
	"crypto/tls"
	_ "embed" // the OpenAPI document
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/dashboard"
	"github.com/coditect/mapreduce/api/server"
)

//go:generate make -C ../.. generate

// The OpenAPI document of REST, made of the .proto files and of proto/rest.
//
//go:embed openapi.swagger.json
var openAPI []byte

// A Config says how the edge serves. Server is needed.
type Config struct {
	// Server answers the calls.
	Server *server.Server

	// TLS secures connections; nil leaves them in the clear. It has to agree on HTTP/2 and
	// on HTTP/1.1.
	TLS *tls.Config

	// Origins are those of whose pages the scripts may call, each SCHEME://HOST[:PORT].
	// Defaults to none but this listener's own.
	Origins []string

	// LocalOnly refuses calls that name another host than this machine: else a page of
	// somebody else's could reach a listener on this machine by a name that leads there.
	// It is for listeners that ask nobody who they are.
	LocalOnly bool

	// MaxConnections bounds the connections. Defaults to no limit.
	MaxConnections int

	// Relays is how many connections to the server those of peers may keep while they have
	// no calls, for at most two seconds each. Defaults to 200.
	Relays int

	// Idle is how long a peer may take for each part of what it sends or reads, while it
	// is awaited. Defaults to a minute.
	Idle time.Duration

	// Dashboard has pages served for people below the root, beside what programs call; nil has
	// none. Its Jobs, Context and Logger are those of the edge.
	Dashboard *dashboard.Config

	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

const (
	headerWait    = 20 * time.Second
	keepAlive     = 2 * time.Minute  // for the next request of a connection
	pingAfter     = 30 * time.Second // on a connection of HTTP/2 that says nothing
	headerBytes   = 64 << 10
	streamsAtOnce = 100 // of one connection of HTTP/2
)

// An Edge serves HTTP for one server.
type Edge struct {
	config  Config
	origins *origins
	conns   *connections
	bridge  *server.Bridge
	http    *http.Server
	routes  *http.ServeMux

	bridging sync.WaitGroup // serves the bridge
}

// New returns an edge of a server. It starts nothing.
func New(c Config) (*Edge, error) {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.Idle = cmp.Or(c.Idle, time.Minute)
	c.Relays = cmp.Or(c.Relays, 200)

	allowed, err := newOrigins(c.Origins)
	if err != nil {
		return nil, err
	}

	e := &Edge{config: c, origins: allowed, bridge: server.NewBridge(), routes: http.NewServeMux()}
	e.conns = newConnections(c.MaxConnections, c.Relays, c.Server, e.bridge)
	rest, err := newREST()
	if err != nil {
		return nil, err
	}
	methods, err := readMethods(openAPI)
	if err != nil {
		return nil, err
	}

	e.routes.Handle("/v1/", methods.before(answerHeads(rest)))
	e.routes.HandleFunc("/openapi.json", serveOpenAPI)
	addConnect(e.routes)
	if err := e.addRest(); err != nil {
		return nil, err
	}

	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(c.TLS != nil)
	protocols.SetUnencryptedHTTP2(c.TLS == nil)

	e.http = &http.Server{
		Handler: e, TLSConfig: c.TLS, Protocols: &protocols,
		ReadHeaderTimeout: headerWait, IdleTimeout: keepAlive, MaxHeaderBytes: headerBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: streamsAtOnce, SendPingTimeout: pingAfter, PingTimeout: pingAfter, WriteByteTimeout: c.Idle,
		},
		ConnContext: e.conns.open, ConnState: e.conns.note,
		ErrorLog: slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug), // a peer could fill it
	}
	return e, nil
}

// addRest adds what answers requests that no call of a program takes: the pages for people, if
// there are some.
func (e *Edge) addRest() error {
	if e.config.Dashboard == nil {
		e.routes.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			writeError(w, status.Errorf(codes.NotFound, "there is nothing at %s; /openapi.json lists what there is", r.URL.Path))
		})
		return nil
	}

	c := *e.config.Dashboard
	c.Jobs, c.Logger = client.Over(relay{}), e.config.Logger
	c.Context = func(r *http.Request) context.Context { return outgoing(r.Context(), r.Header) }
	pages, err := dashboard.New(c)
	if err == nil {
		e.routes.Handle("/", pages)
	}
	return err
}

// Serve takes connections from a listener until Shutdown or Close, or until the listener
// fails. It closes the listener, and is called once.
func (e *Edge) Serve(l net.Listener) error {
	served := make(chan error, 1)
	e.bridging.Go(func() { served <- e.config.Server.Serve(e.bridge) })

	bounded := &listener{l, e.conns}
	var err error
	if e.config.TLS != nil {
		err = e.http.ServeTLS(bounded, "", "")
	} else {
		err = e.http.Serve(bounded)
	}

	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}

	e.bridging.Wait() // it ends with Shutdown of the server, or with Close
	if failed := <-served; failed != nil && !errors.Is(failed, net.ErrClosed) {
		err = errors.Join(err, failed)
	}
	return err
}

// Shutdown takes no more connections and waits for the calls that are under way; when ctx
// ends, it ends them. The server should be shut down meanwhile, so that calls end that
// would last.
func (e *Edge) Shutdown(ctx context.Context) {
	if e.http.Shutdown(ctx) != nil {
		_ = e.http.Close() // only says that a listener was closed before
	}
	_ = e.bridge.Close() // never fails
}

// ServeHTTP implements http.Handler.
func (e *Edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")

	if e.config.LocalOnly && !isLocal(r.Host) {
		writeError(w, status.Errorf(codes.PermissionDenied, "the Host header of a call must name this machine, such as 127.0.0.1, and is %q", r.Host))
		return
	}
	if !e.origins.admit(w, r) {
		return
	}

	c := newCall(w, r, e.config.Idle)
	defer c.end()
	e.routes.ServeHTTP(c.writer, c.request)
}

func serveOpenAPI(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		refuseMethod(w, r, []string{http.MethodGet, http.MethodHead})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI) // a peer that is gone cannot be told
}
