package web

import (
	"container/list"
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
	"github.com/coditect/mapreduce/api/wire/codec"
)

// connections are those of peers, each with one to the server.
type connections struct {
	most   int // 0 is no limit
	server *server.Server
	bridge *server.Bridge

	mostRelays int // beyond which idle connections lose theirs

	mu     sync.Mutex // guards the variables below, and idle and resting of each
	all    map[net.Conn]*connection
	count  int         // of those that were accepted, which are in all a little later
	idlers list.List   // of *connection: those that are idle and may have a relay, the longest first
	relays int         // of all connections
	sweep  *time.Timer // nil while nobody is idle
}

func newConnections(most, mostRelays int, s *server.Server, b *server.Bridge) *connections {
	return &connections{most: most, mostRelays: mostRelays, server: s, bridge: b, all: make(map[net.Conn]*connection)}
}

// A connection is one of a peer.
type connection struct {
	conns   *connections
	conn    net.Conn
	account *memory.Connection // of what the calls of the connection hold here
	idle    time.Time          // since when it has had no call; zero while it has one
	resting *list.Element      // of idlers; nil while it has a call, and when its relay is closed

	mu     sync.Mutex // guards the variables below
	relay  *grpc.ClientConn
	closed bool
	held   int64 // bytes that the account is charged with
}

// idleBefore is how long a connection must have had no call to make way for another.
const idleBefore = time.Second

// A relay is a connection to the server. Peers may keep many connections open, so relays of
// those that are idle are closed after idleRelay, and those that have been idle for the
// longest when there are many. Each is charged with what it takes.
const (
	idleRelay  = 2 * time.Second
	relayBytes = 64 << 10
)

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
	c := &connection{conns: cs, conn: conn, idle: time.Now()}
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
		cs.wake(c)
		switch state {
		case http.StateActive:
			c.idle = time.Time{}
		case http.StateIdle:
			c.idle = time.Now()
			cs.rest(c)
		case http.StateClosed, http.StateHijacked:
			delete(cs.all, conn)
		}
	}
	cs.mu.Unlock()

	if c != nil && state == http.StateClosed {
		c.close()
	}
}

// rest notes that a connection is idle. The caller holds mu.
func (cs *connections) rest(c *connection) {
	c.resting = cs.idlers.PushBack(c)
	if cs.sweep == nil {
		cs.sweep = time.AfterFunc(idleRelay, cs.closeIdle)
	}
}

// wake notes that a connection is idle no more. The caller holds mu.
func (cs *connections) wake(c *connection) {
	if c.resting != nil {
		cs.idlers.Remove(c.resting)
		c.resting = nil
	}
}

// closeIdle closes the relays of connections that have been idle for long.
func (cs *connections) closeIdle() {
	now := time.Now()
	cs.closeRelays(func(longest *connection) bool { return now.Sub(longest.idle) >= idleRelay })
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if front := cs.idlers.Front(); front != nil {
		cs.sweep = time.AfterFunc(idleRelay-now.Sub(front.Value.(*connection).idle), cs.closeIdle)
	} else {
		cs.sweep = nil
	}
}

// closeRelays closes the relays of idle connections, the longest idle first, as long as that
// is wanted.
func (cs *connections) closeRelays(wanted func(longest *connection) bool) {
	var closing []*connection

	cs.mu.Lock()
	for front := cs.idlers.Front(); front != nil && wanted(front.Value.(*connection)); front = cs.idlers.Front() {
		c := front.Value.(*connection)
		cs.wake(c)
		if c.closeRelay() {
			cs.relays--
			closing = append(closing, c)
		}
	}
	cs.mu.Unlock()

	for _, c := range closing {
		c.hold(-relayBytes)
	}
}

// addRelay notes that a connection has a relay, and closes those of idle ones if there are
// many.
func (cs *connections) addRelay(c *connection) {
	c.hold(relayBytes)
	cs.mu.Lock()
	cs.relays++
	many := cs.relays > cs.mostRelays
	cs.mu.Unlock()
	if many {
		cs.closeRelays(func(*connection) bool { return cs.relays > cs.mostRelays })
	}
}

// closeRelay closes the relay, whose calls have ended with their requests, and reports
// whether there was one.
func (c *connection) closeRelay() bool {
	c.mu.Lock()
	relay := c.relay
	c.relay = nil
	c.mu.Unlock()
	if relay != nil {
		_ = relay.Close() // only says that it was closed before
	}
	return relay != nil
}

func (c *connection) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	if c.closeRelay() {
		c.conns.mu.Lock()
		c.conns.relays--
		c.conns.mu.Unlock()
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
	relay, made, err := c.openRelay(r)
	if made {
		c.conns.addRelay(c)
	}
	return relay, err
}

// openRelay returns the relay, and makes one if there is none.
func (c *connection) openRelay(r *http.Request) (relay *grpc.ClientConn, made bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.relay != nil {
		return c.relay, false, nil
	}
	if c.closed {
		return nil, false, net.ErrClosed
	}

	var info credentials.AuthInfo = transport.Plain{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}
	if r.TLS != nil {
		info = credentials.TLSInfo{State: *r.TLS, CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}
	}

	coder, err := codec.New()
	if err != nil {
		return nil, false, err
	}

	remote := c.conn.RemoteAddr()
	c.relay, err = grpc.NewClient("passthrough:///bridge",
		grpc.WithTransportCredentials(insecure.NewCredentials()), // nothing leaves this process
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return c.conns.bridge.Dial(ctx, info, remote) }),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(coder), grpc.MaxCallRecvMsgSize(wire.MaxReply), grpc.MaxCallSendMsgSize(wire.MaxRequest)),
		grpc.WithIdleTimeout(0), grpc.WithReadBufferSize(8<<10), grpc.WithWriteBufferSize(8<<10), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
	)
	return c.relay, err == nil, err
}
