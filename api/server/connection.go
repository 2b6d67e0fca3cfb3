package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc/stats"

	"github.com/coditect/mapreduce/api/memory"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// streamBytes is about what a call takes that says nothing: its goroutine and buffers.
const streamBytes = 16 << 10

// chargeStep is the least change of what a connection holds, in bytes, that is charged to
// the budget.
const chargeStep = 64 << 10

// A connection is one of a peer. It reads and writes as the one that it wraps, and
// counts what has come and was not read by a call, and what calls have sent and was not
// read by the peer: gRPC bounds both for each call, but not for all calls of a
// connection, nor for all connections.
type connection struct {
	net.Conn          // to the peer
	data     net.Conn // over which calls go: Conn, or TLS over it. Set before the first call, only read after
	peers    *peers
	close    sync.Once

	in, out   frames
	delivered atomic.Int64 // bytes of messages that calls have read
	decoded   atomic.Int64 // bytes of those that calls deal with
	sent      atomic.Int64 // bytes of messages that calls have sent
	calls     atomic.Int64 // under way
	charging  sync.Mutex   // held while the account is charged, so that the latest charge comes last
	charged   atomic.Int64 // what was last charged to the account
	account   *memory.Connection
	working   chan struct{} // full while as many calls are carried out as may be at once

	used       atomic.Int64 // when a byte last came or went, in Unix nanoseconds
	wrote      atomic.Int64 // when a byte last went
	unfinished atomic.Int64 // since when the peer has a frame or a block of headers unfinished; 0 if it has none

	came   int64       // when a byte last came, in Unix nanoseconds. Of the goroutine that reads
	closed atomic.Bool // by the peer's system, while the peer was heard
}

// An address is that of a peer, with the connection that it is of: gRPC hands on nothing
// else of a connection.
type address struct {
	net.Addr
	connection *connection
}

// connectionOf returns the connection with a peer's address, or nil.
func connectionOf(a net.Addr) *connection {
	if own, ok := a.(address); ok {
		return own.connection
	}
	return nil
}

// isSocket reports whether the connection needs a file of this process: those of peers of
// another edge are bounded there.
func (c *connection) isSocket() bool {
	_, within := c.Conn.(*bridged)
	return !within
}

// RemoteAddr implements net.Conn.
func (c *connection) RemoteAddr() net.Addr { return address{c.Conn.RemoteAddr(), c} }

// Read implements net.Conn.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.data.Read(p)
	if n > 0 {
		now := time.Now().UnixNano()
		c.used.Store(now)
		c.came = now
		whole := c.in.add(p[:n])

		switch {
		case whole:
			c.unfinished.Store(0)
		case c.in.progressed || c.unfinished.Load() == 0:
			c.unfinished.Store(now)
		}

		c.charge()
	}

	if isHangUp(err) && time.Now().UnixNano()-c.came < int64(heardWithin) {
		c.closed.Store(true)
	}
	return n, err
}

// heardWithin is how long ago a peer may have been heard that is said to have closed its
// connection. One that could not be heard for longer, as the network was broken, may close a
// connection that it gave up for a new one, and be well.
const heardWithin = 5 * time.Second

// isHangUp reports whether an error of reading says that the other end has closed the
// connection, rather than that this end has, or that the network took too long.
func isHangUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// reaches reports whether the connection has its other end at the address that the peer says
// it has there, so that nothing is between the two. A socket of this machine has no address.
func (c *connection) reaches(said string) bool {
	if c == nil || !c.isSocket() {
		return false
	}
	if c.Conn.RemoteAddr().Network() == "unix" {
		return true
	}

	seen, err := netip.ParseAddrPort(c.Conn.RemoteAddr().String())
	if err != nil {
		return false
	}
	own, err := netip.ParseAddrPort(said)
	return err == nil && seen.Port() == own.Port() && seen.Addr().Unmap().WithZone("") == own.Addr().Unmap().WithZone("")
}

// Write implements net.Conn.
func (c *connection) Write(p []byte) (int, error) {
	n, err := c.data.Write(p)
	if n > 0 {
		now := time.Now().UnixNano()
		c.used.Store(now)
		c.wrote.Store(now)
		c.out.add(p[:n])
		c.charge()
	}
	return n, err
}

// Close implements net.Conn.
func (c *connection) Close() error {
	err := c.data.Close()
	c.forget()
	return err
}

// forget gives back what the connection holds of its server.
func (c *connection) forget() {
	c.close.Do(func() {
		c.peers.remove(c)
		c.account.Close()
	})
}

// cutOff ends the connection without waiting for anything. No reason is sent, as the peer
// may not read.
func (c *connection) cutOff(error) {
	_ = c.Conn.Close() // frees its file descriptor
	go c.forget()      // by and by, as the caller may hold locks
}

// unsent returns how many bytes of messages the peer has not taken.
func (c *connection) unsent() int64 { return max(0, c.sent.Load()-c.out.data.Load()) }

// unread returns how many bytes of messages calls have not read.
func (c *connection) unread() int64 { return max(0, c.in.data.Load()-c.delivered.Load()) }

// charge charges the budget with what the connection holds.
func (c *connection) charge() {
	if !c.isToCharge(c.held()) {
		return
	}
	c.charging.Lock()
	defer c.charging.Unlock()
	if n := c.held(); c.isToCharge(n) {
		c.charged.Store(n)
		c.account.Charge(n)
	}
}

// held returns how many bytes the connection holds.
func (c *connection) held() int64 {
	return c.unread() + c.decoded.Load() + c.unsent() + streamBytes*c.calls.Load()
}

// isToCharge reports whether n bytes are so many more or fewer than those charged that they
// are to be charged.
func (c *connection) isToCharge(n int64) bool {
	d := n - c.charged.Load()
	return d <= -chargeStep || d >= chargeStep || n == 0 && d != 0
}

// beginning is how many calls, of those that the server has not begun to count, may have
// sent a window of bytes.
const beginning = 16

// forgetUnread forgets bytes that no call will read any more, as far as they are more than
// the calls under way can have been sent: those of calls that were given up. A call of a
// worker lasts as long as its connection, so there may never be none under way.
func (c *connection) forgetUnread() {
	if more := c.unread() - streamWindow*(c.calls.Load()+beginning); more > 0 {
		c.delivered.Add(more)
	}
}

// settle forgets bytes that no call will read any more: those of calls that have ended
// before they had read all. It is called while no call is under way.
func (c *connection) settle() {
	c.delivered.Store(c.in.data.Load())
	if time.Now().UnixNano()-c.wrote.Load() > int64(unreadAfter) {
		c.sent.Store(c.out.data.Load())
	}
	c.charge()
}

const (
	// unfinishedAfter is how long a peer may take for a frame, or for headers.
	unfinishedAfter = 20 * time.Second
	// unreadAfter is how long a peer may read nothing of much that it asked for.
	unreadAfter = time.Minute
	// muchUnread is how many bytes that is.
	muchUnread = 1 << 20
)

// maxWorking is how many calls of one connection are carried out at once, of those that
// need long or read much; the others wait for these. So one peer's calls, however many
// they are, leave processors to others.
const maxWorking = 16

// await waits until one more call of the connection may be carried out. The caller
// calls done when it was.
func (c *connection) await(ctx context.Context) (done func(), err error) {
	select {
	case c.working <- struct{}{}:
		return func() { <-c.working }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// stalled reports whether the peer has kept the connection waiting for too long.
func (c *connection) stalled(now time.Time) bool {
	if since := c.unfinished.Load(); since > 0 && now.UnixNano()-since > int64(unfinishedAfter) {
		return true
	}
	return c.unsent() > muchUnread && now.UnixNano()-c.wrote.Load() > int64(unreadAfter)
}

// frames follows the frames of HTTP/2 in one direction of a connection.
type frames struct {
	data       atomic.Int64 // bytes of payloads of DATA frames
	progressed bool         // the latest bytes ended a frame of another kind than headers

	head    [9]byte
	got     int  // bytes of head
	rest    int  // bytes of the payload, or preface, that are yet to come
	isData  bool // the frame is one of DATA
	headers bool // a block of headers has begun and not ended
	prefix  int  // bytes of the client's preface that are yet to come
}

// prefaceBytes is the length of what a client sends before its first frame.
const prefaceBytes = 24

const (
	frameData         = 0x0
	frameHeaders      = 0x1
	frameContinuation = 0x9
	flagEndHeaders    = 0x4
)

// add follows the next bytes, and reports whether no frame and no block of headers is
// unfinished behind them.
func (f *frames) add(p []byte) (whole bool) {
	f.progressed = false
	for len(p) > 0 {
		switch {
		case f.prefix > 0:
			// A client sends its preface before the first frame.
			n := min(f.prefix, len(p))
			f.prefix, p = f.prefix-n, p[n:]
		case f.rest > 0:
			n := min(f.rest, len(p))
			if f.isData {
				f.data.Add(int64(n))
			}
			f.rest, p = f.rest-n, p[n:]
		default:
			n := copy(f.head[f.got:], p)
			f.got, p = f.got+n, p[n:]
			if f.got == len(f.head) {
				f.beginFrame()
			}
		}

		if f.rest == 0 && f.got == 0 && f.prefix == 0 && !f.headers {
			f.progressed = true
		}
	}

	return f.rest == 0 && f.got == 0 && f.prefix == 0 && !f.headers
}

// beginFrame notes the frame whose header has come.
func (f *frames) beginFrame() {
	f.got = 0
	f.rest = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
	kind, flags := f.head[3], f.head[4]
	f.isData = kind == frameData
	if kind == frameHeaders || kind == frameContinuation {
		f.headers = flags&flagEndHeaders == 0
	}
}

// A meter notes for connections which messages have come and gone. It is a stats handler,
// as
// nothing else in gRPC sees when a message has left the transport.
type meter struct{}

var _ stats.Handler = meter{}

// connectionKey is the key of a call's connection in its context.
type connectionKey struct{}

// TagConn implements stats.Handler.
func (meter) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	if c := connectionOf(info.RemoteAddr); c != nil {
		return context.WithValue(ctx, connectionKey{}, c)
	}
	return ctx
}

// connectionFrom returns the connection of a call, or nil if it is in memory.
func connectionFrom(ctx context.Context) *connection {
	c, _ := ctx.Value(connectionKey{}).(*connection)
	return c
}

// A callMeter is what a call holds of the messages of its peer: the latest one.
type callMeter struct{ pending atomic.Int64 }

type callKey struct{}

// TagRPC implements stats.Handler.
func (meter) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	if connectionFrom(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, callKey{}, new(callMeter))
}

// partBytes is about what each part of a message takes beside its bytes.
const partBytes = 256

// partsOf counts the parts of a message that may have very many.
func partsOf(payload any) int {
	switch m := payload.(type) {
	case message:
		return len(m.GetDocuments())
	case *pb.WorkRequest:
		return len(m.GetHello().GetHolding()) + len(m.GetReports()) + len(m.GetStarted()) + len(m.GetReserve()) +
			len(m.GetHeartbeat().GetProgress()) + len(m.GetHeartbeat().GetBreakers()) + len(m.GetLimits())
	}
	return 0
}

// HandleConn implements stats.Handler.
func (meter) HandleConn(context.Context, stats.ConnStats) {}

// HandleRPC implements stats.Handler.
func (meter) HandleRPC(ctx context.Context, s stats.RPCStats) {
	c := connectionFrom(ctx)
	call, ok := ctx.Value(callKey{}).(*callMeter)
	if c == nil || !ok {
		return
	}

	switch s := s.(type) {
	case *stats.Begin:
		c.calls.Add(1)
		c.charge()
	case *stats.InPayload:
		// A call holds its latest message alone: the one before is given back.
		now := partBytes * int64(partsOf(s.Payload))
		c.decoded.Add(now + int64(s.WireLength) - call.pending.Swap(now+int64(s.WireLength)))
		c.delivered.Add(int64(s.WireLength))
		c.charge()
	case *stats.OutPayload:
		c.sent.Add(int64(s.WireLength))
		c.charge()
	case *stats.End:
		c.decoded.Add(-call.pending.Swap(0))
		if c.calls.Add(-1) == 0 {
			c.settle()
		} else {
			c.forgetUnread()
			c.charge()
		}
	}
}
