package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/coditect/mapreduce/api/transport"
)

// handshakes secure the connections of all listeners: TLS over TCP if the server has it,
// nothing within this process, nothing over a bridge, whose other side has done it, and
// nothing over Unix sockets, of which the system says who is at the other end.
type handshakes struct {
	tls    *tls.Config // nil for none
	logger *slog.Logger
	logged *atomic.Int64 // when a refusal was last logged, in Unix nanoseconds
}

var _ credentials.TransportCredentials = handshakes{}

// ServerHandshake implements credentials.TransportCredentials. A connection counts what it
// carries above TLS, where the frames are.
func (h handshakes) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, ok := raw.(*connection)
	if !ok {
		return raw, transport.Memory{CommonAuthInfo: noSecurity}, nil
	}

	if over, ok := c.Conn.(*bridged); ok {
		return c, over.info, nil
	}
	if unix, ok := c.Conn.(*net.UnixConn); ok {
		return c, transport.UnixPeer(unix), nil
	}
	if h.tls == nil {
		return c, transport.Plain{CommonAuthInfo: noSecurity}, nil
	}

	secured := tls.Server(c.Conn, h.tls)
	if err := secured.HandshakeContext(context.Background()); err != nil { // gRPC has set the deadline of the connection
		h.logRefusal(c, err)
		partInOrder(c.Conn)
		return nil, nil, fmt.Errorf("TLS: %w", err)
	}

	c.data = secured
	state := secured.ConnectionState()
	return c, credentials.TLSInfo{State: state, CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, nil
}

var noSecurity = credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}

// logEvery is the least time between two lines of the log on peers that were refused, so
// that
// a peer that tries again and again does not fill the disk.
const logEvery = 100 * time.Millisecond

func (h handshakes) logRefusal(c *connection, err error) {
	now, last := time.Now().UnixNano(), h.logged.Load()
	if now-last < int64(logEvery) || !h.logged.CompareAndSwap(last, now) {
		return
	}
	h.logger.Info("a connection was refused", "peer", c.Conn.RemoteAddr().String(), "why", transport.Describe(err))
}

// partWait is how long a peer that was refused has to read why.
const partWait = time.Second

// partInOrder ends a connection after a failed handshake. What the peer has sent is read:
// otherwise the system would throw away what was sent to the peer.
func partInOrder(conn net.Conn) {
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || conn.SetReadDeadline(time.Now().Add(partWait)) != nil {
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(conn, 64<<10)) // nothing of it is needed
}

// ClientHandshake implements credentials.TransportCredentials. A server dials nobody.
func (h handshakes) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, fmt.Errorf("credentials of a server in a client")
}

// Info implements credentials.TransportCredentials.
func (h handshakes) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements credentials.TransportCredentials.
func (h handshakes) Clone() credentials.TransportCredentials { return h }

// OverrideServerName implements credentials.TransportCredentials. It has no meaning here.
func (h handshakes) OverrideServerName(string) error { return nil }
