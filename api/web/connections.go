package web

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/coditect/mapreduce/api/memory"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/api/transport"
	"github.com/coditect/mapreduce/api/wire"
)

// connections are those of peers, each with one to the server.
type connections struct {
	most   int // 0 is no limit
	server *server.Server
	bridge *server.Bridge

	mu    sync.Mutex // guards the variables below, and idle of each
	all   map[net.Conn]*connection
	count int // of those that were accepted, which are in all a little later
}

func newConnections(most int, s *server.Server, b *server.Bridge) *connections {
	return &connections{most: most, server: s, bridge: b, all: make(map[net.Conn]*connection)}
}

// A connection is one of a peer.
type connection struct {
	conn    net.Conn
	bridge  *server.Bridge
	account *memory.Connection // of what the calls of the connection hold here
	idle    time.Time          // since when it has had no call; zero while it has one

	mu     sync.Mutex // guards the variables below
	relay  *grpc.ClientConn
	closed bool
	held   int64 // bytes that the account is charged with
}

// idleBefore is how long a connection must have had no call to make way for another.
const idleBefore = time.Second

// idleRelay is how long a connection to the server is kept that has no calls: it takes some
// 60 kB, and peers may keep many connections open.
const idleRelay = 2 * time.Second

// A listener bounds connections: while there are as many as may be, the one that has had
// no call for the longest makes way for the next; if each has calls, the next is closed.
type listener struct {
	net.Listener
	conns *connections
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.conns.admit() {
			return &counted{Conn: conn, conns: l.conns}, nil
		}
		_ = conn.Close() // there is no room for it
	}
}

// A counted connection is counted until it is closed.
type counted struct {
	net.Conn
	conns *connections
	once  sync.Once
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.once.Do(func() {
		c.conns.mu.Lock()
		defer c.conns.mu.Unlock()
		c.conns.count--
	})
	return c.Conn.Close()
}

// admit makes room for a connection and reports whether there is some.
func (cs *connections) admit() bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.most > 0 && cs.count >= cs.most {
		longest := cs.longestIdle(time.Now())
		if longest == nil {
			return false
		}
		longest.idle = time.Time{} // once is enough
		go func() { _ = longest.conn.Close() }()
	}
	cs.count++
	return true
}

// longestIdle returns the connection that has had no call for the longest, or nil. The
// caller holds mu.
func (cs *connections) longestIdle(now time.Time) (longest *connection) {
	for _, c := range cs.all {
		if c.idle.IsZero() || now.Sub(c.idle) < idleBefore {
			continue
		}
		if longest == nil || c.idle.Before(longest.idle) {
			longest = c
		}
	}
	return longest
}

type connectionKey struct{}

// open is http.Server.ConnContext.
func (cs *connections) open(ctx context.Context, conn net.Conn) context.Context {
	c := &connection{conn: conn, bridge: cs.bridge, idle: time.Now()}
	c.account = cs.server.Account(func(error) { go func() { _ = conn.Close() }() })
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.all[conn] = c
	return context.WithValue(ctx, connectionKey{}, c)
}

// note is http.Server.ConnState.
func (cs *connections) note(conn net.Conn, state http.ConnState) {
	cs.mu.Lock()
	c := cs.all[conn]
	if c != nil {
		switch state {
		case http.StateActive:
			c.idle = time.Time{}
		case http.StateIdle:
			c.idle = time.Now()
		case http.StateClosed, http.StateHijacked:
			delete(cs.all, conn)
		}
	}
	cs.mu.Unlock()
	if c != nil && state == http.StateClosed {
		c.close()
	}
}

func (c *connection) close() {
	c.mu.Lock()
	relay := c.relay
	c.relay, c.closed = nil, true
	c.mu.Unlock()
	if relay != nil {
		_ = relay.Close() // its calls have ended with their requests
	}
	c.account.Close()
}

// hold changes what the calls of the connection hold.
func (c *connection) hold(n int64) {
	if n == 0 {
		return
	}
	c.mu.Lock()
	c.held += n
	held := c.held
	c.mu.Unlock()
	c.account.Charge(held)
}

// dial returns the connection to the server, over which calls are those of the peer.
func (c *connection) dial(r *http.Request) (*grpc.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.relay != nil {
		return c.relay, nil
	}
	if c.closed {
		return nil, net.ErrClosed
	}
	var info credentials.AuthInfo = transport.Plain{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}
	if r.TLS != nil {
		info = credentials.TLSInfo{State: *r.TLS, CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}
	}
	codec, err := wire.NewCodec()
	if err != nil {
		return nil, err
	}
	remote := c.conn.RemoteAddr()
	c.relay, err = grpc.NewClient("passthrough:///bridge",
		grpc.WithTransportCredentials(insecure.NewCredentials()), // nothing leaves this process
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return c.bridge.Dial(ctx, info, remote) }),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec), grpc.MaxCallRecvMsgSize(wire.MaxReply), grpc.MaxCallSendMsgSize(wire.MaxRequest)),
		grpc.WithIdleTimeout(idleRelay), grpc.WithReadBufferSize(8<<10), grpc.WithWriteBufferSize(8<<10), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
	)
	return c.relay, err
}
