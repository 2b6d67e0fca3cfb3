package servertest

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// A Server serves calls of connections that a listener accepts, until it is shut down. A
// *server.Server is one.
type Server interface {
	Serve(l net.Listener) error
	Shutdown(ctx context.Context)
}

// A Test is what runs: a *testing.T, *testing.B or *testing.F.
type Test interface {
	Helper()
	Error(args ...any)
	Fatal(args ...any)
	Cleanup(do func())
}

// Connect serves in memory and returns a connection to the server, for calls as they are on
// the wire. Both end with the test, which fails if the server did.
func Connect(t Test, s Server) *grpc.ClientConn {
	t.Helper()
	l := bufconn.Listen(1 << 20)

	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()

	conn, err := grpc.NewClient("passthrough:///memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		ctx, stop := context.WithTimeout(context.Background(), time.Second)
		defer stop()
		s.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Error(err)
		}
	})

	return conn
}
