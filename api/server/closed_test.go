package server_test

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/server/servertest"
)

// A witness is a Fleet that greets a worker, and says how its stream has ended.
type witness struct {
	servertest.Fleet
	closed chan bool
}

// Work implements protocol.Fleet.
func (w *witness) Work(_ context.Context, stream protocol.WorkStream) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	if err := stream.Send(&protocol.ToWorker{Welcome: &protocol.Welcome{Node: "n", Epoch: 1}}); err != nil {
		return err
	}

	_, err := stream.Recv()
	w.closed <- stream.ClosedByWorker()
	return err
}

// A connection that a worker's own system has closed is told from one that ended otherwise.
func TestClosedByWorker(t *testing.T) {
	for _, test := range []struct {
		name    string
		network string
		proxy   bool
		end     func(cancel context.CancelFunc, conn net.Conn)
		want    bool
	}{
		{"its process ends", "tcp", false, func(_ context.CancelFunc, conn net.Conn) { _ = conn.Close() }, true},
		{"its process ends, on this machine", "unix", false, func(_ context.CancelFunc, conn net.Conn) { _ = conn.Close() }, true},
		{"its system resets the connection", "tcp", false, func(_ context.CancelFunc, conn net.Conn) {
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}, true},
		{"it ends the stream alone", "tcp", false, func(cancel context.CancelFunc, _ net.Conn) { cancel() }, false},
		{"a proxy between them ends", "tcp", true, func(_ context.CancelFunc, conn net.Conn) { _ = conn.Close() }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			place := "127.0.0.1:0"
			if test.network == "unix" {
				place = t.TempDir() + "/s"
			}

			l, err := (&net.ListenConfig{}).Listen(t.Context(), test.network, place)
			if err != nil {
				t.Fatal(err)
			}
			w := &witness{closed: make(chan bool, 1)}
			s, err := server.New(new(servertest.Service), w, server.Config{})
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan error, 1)
			go func() { served <- s.Serve(l) }()
			defer func() {
				stop(s)
				if err := <-served; err != nil {
					t.Error(err)
				}
			}()

			to := l.Addr()
			if test.proxy {
				to = forward(t, l.Addr())
			}
			conns := make(chan net.Conn, 1)
			c, err := client.Dial("127.0.0.1:1", client.Config{Options: []grpc.DialOption{
				grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
					conn, err := new(net.Dialer).DialContext(ctx, to.Network(), to.String())
					if err == nil {
						conns <- conn
					}
					return conn, err
				}),
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()

			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stream, err := c.Connect(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Send(&protocol.FromWorker{Hello: &protocol.Hello{Session: "s", Slots: 1}}); err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}

			test.end(cancel, <-conns)
			if got := <-w.closed; got != test.want {
				t.Errorf("the server takes the connection for closed by the worker's system: %t, want %t", got, test.want)
			}
		})
	}
}

// forward carries one connection to another address, as a proxy does.
func forward(t *testing.T, to net.Addr) net.Addr {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	var carrying sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); carrying.Wait() })
	carrying.Go(func() {
		near, err := l.Accept()
		if err != nil {
			return
		}
		far, err := new(net.Dialer).DialContext(context.Background(), to.Network(), to.String())
		if err != nil {
			_ = near.Close()
			return
		}

		carrying.Go(func() {
			_, _ = io.Copy(near, far)
			_ = near.Close()
		})
		_, _ = io.Copy(far, near)
		_ = far.Close()
	})
	return l.Addr()
}
