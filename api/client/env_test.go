package client_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/server/servertest"
	"github.com/coditect/mapreduce/api/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An edge is a way from a client to a server.
type edge struct {
	name string
	open func(testing.TB, *server.Server) *client.Client
}

var edges = []edge{
	{"in process", inProcess},
	{"tcp", func(t testing.TB, s *server.Server) *client.Client {
		l := listen(t, s, "tcp", "127.0.0.1:0")
		return dial(t, l.Addr().String())
	}},
	{"unix", func(t testing.TB, s *server.Server) *client.Client {
		path := filepath.Join(t.TempDir(), "s")
		listen(t, s, "unix", path)
		return dial(t, "unix:"+path)
	}},
}

func inProcess(t testing.TB, s *server.Server) *client.Client {
	t.Helper()
	c, err := client.NewInProcess(s, client.Config{})
	return opened(t, c, err)
}

func dial(t testing.TB, target string) *client.Client {
	t.Helper()
	c, err := client.Dial(target, client.Config{})
	return opened(t, c, err)
}

func opened(t testing.TB, c *client.Client, err error) *client.Client {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, errs.Cancelled) {
			t.Error(err)
		}
	})
	return c
}

func listen(t testing.TB, s *server.Server, network, address string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		stop(s)
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return l
}

// stop shuts s down without patience.
func stop(s *server.Server) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.Shutdown(ctx)
}

func newServer(t testing.TB, service mapreduce.Service, fleet protocol.Fleet, config server.Config) *server.Server {
	t.Helper()
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := server.New(service, fleet, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(s) })
	return s
}

// overEveryEdge runs a test on a service through every edge.
func overEveryEdge(t *testing.T, service func() mapreduce.Service, fleet protocol.Fleet, test func(*testing.T, *client.Client)) {
	t.Helper()
	for _, e := range edges {
		t.Run(e.name, func(t *testing.T) {
			test(t, e.open(t, newServer(t, service(), fleet, server.Config{MaxDocument: 8 << 20})))
		})
	}
	t.Run("mutual tls", func(t *testing.T) {
		l := newLaboratory(t)
		l.issue(l.ca, "server", transport.CertificateRequest{Names: []string{"127.0.0.1"}, Server: true})
		l.issue(l.ca, "alice", transport.CertificateRequest{Names: []string{"alice"}})
		s := newServer(t, service(), fleet, server.Config{MaxDocument: 8 << 20, TLS: tlsOf(t, l.serverFiles("server"))})
		secured, err := transport.NewClient(l.clientFiles("alice"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := client.Dial(listen(t, s, "tcp", "127.0.0.1:0").Addr().String(), client.Config{Credentials: secured})
		test(t, opened(t, c, err))
	})
}

func memory() mapreduce.Service { return new(servertest.Service) }

func documents(docs ...*mapreduce.Document) iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		for _, doc := range docs {
			if !yield(doc, nil) {
				return
			}
		}
	}
}

func aDocument(id mapreduce.DocumentID, content string) *mapreduce.Document {
	return &mapreduce.Document{ID: id, MediaType: "text/plain", Metadata: map[string]string{"from": "test"}, Content: []byte(content)}
}

// near returns a client of a service, without an edge between them.
func near(s mapreduce.Service) mapreduce.Client {
	return servertest.Client{Service: s, By: mapreduce.Local("")}
}

func submitted(t *testing.T, s mapreduce.Client, spec mapreduce.JobSpec, docs ...*mapreduce.Document) *mapreduce.Job {
	t.Helper()
	job, err := s.SubmitJob(t.Context(), spec, documents(docs...))
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func wantKind(t *testing.T, err error, kind errs.Kind) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got error %v, want one of kind %v", err, kind)
	}
}
