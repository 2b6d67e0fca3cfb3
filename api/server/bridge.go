package server

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"

	"github.com/coditect/mapreduce/api/memory"
)

// A Bridge is a listener by which another edge in this process hands on the calls of its
// peers. Each connection over it is that of one peer, so that the peer is known, bounded and
// cut off as if it had connected to the server itself.
type Bridge struct {
	conns chan net.Conn
	close sync.Once
	done  chan struct{} // closed by Close
}

var _ net.Listener = (*Bridge)(nil)

// NewBridge returns a bridge, which a server has to Serve.
func NewBridge() *Bridge {
	return &Bridge{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Accept implements net.Listener.
func (b *Bridge) Accept() (net.Conn, error) {
	select {
	case c := <-b.conns:
		return c, nil
	case <-b.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (b *Bridge) Close() error {
	b.close.Do(func() { close(b.done) })
	return nil
}

// Addr implements net.Listener.
func (b *Bridge) Addr() net.Addr { return bridgeAddress{} }

// bridgeAddress is where a bridge listens: nowhere that others can reach.
type bridgeAddress struct{}

func (bridgeAddress) Network() string { return "bridge" }
func (bridgeAddress) String() string  { return "bridge" }

// Dial connects to the server as a peer: info is what is known of the peer's connection to
// the other edge, and remote where it comes from.
func (b *Bridge) Dial(ctx context.Context, info credentials.AuthInfo, remote net.Addr) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case b.conns <- &bridged{Conn: far, info: info, remote: remote}:
		return near, nil
	case <-b.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A bridged connection is the server's end of one over a bridge.
type bridged struct {
	net.Conn
	info   credentials.AuthInfo
	remote net.Addr
}

// RemoteAddr implements net.Conn.
func (b *bridged) RemoteAddr() net.Addr { return b.remote }

// Account returns an account for what another edge holds for a connection of a peer, within
// what all peers may make this process hold; see memory.Budget.Connect.
func (s *Server) Account(cut func(error)) *memory.Connection { return s.budget.Connect(cut) }

// Held returns how many bytes peers make this process hold, as far as these are counted.
func (s *Server) Held() int64 { return s.budget.Used() }
