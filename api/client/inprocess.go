package client

import (
	"context"
	"math"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/test/bufconn"
)

// pipeSize is the buffer of an in-process connection, each way, in bytes.
const pipeSize = 256 << 10

// A Server takes connections from a listener until that is closed.
type Server interface {
	Serve(net.Listener) error
}

// NewInProcess returns a client of a server in this process, over a connection in
// memory. Everything else is the same as for a remote server, so that there is one
// code path. Close also closes the server's listener.
func NewInProcess(server Server, config Config) (*Client, error) {
	listener := bufconn.Listen(pipeSize)
	c, err := openClient("passthrough:///in-process", config,
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: math.MaxInt64}), // never: who does not answer is this process
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return listener.DialContext(ctx)
		}))
	if err != nil {
		return nil, err
	}

	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends with the listener; calls fail if it ends before
	}()
	c.after = func() {
		_ = listener.Close() // cannot fail
		<-served
	}

	return c, nil
}
