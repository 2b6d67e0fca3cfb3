package network

import (
	"io"
	"net"
	"os"
	"slices"
	"time"
)

// window is how many bytes may be under way in one direction of a connection.
const window = 256 << 10

// A pair is one connection, with both ends. The lock of the network guards it.
type pair struct {
	network *Network
	ends    [2]*end
	streams [2]*stream // from the first end, and from the second
}

// A stream is one direction of a connection. The lock of the network guards it.
type stream struct {
	direction
	network  *Network
	segments []segment
	size     int           // bytes of segments
	finished bool          // the end at from has closed
	ignored  bool          // the end at to has closed: nobody reads
	arrived  time.Time     // when the last segment does, since none overtakes another
	arrival  chan struct{} // holds an element when the reader should look again
	room     chan struct{} // the same for the writer
}

// A segment is what was written at once.
type segment struct {
	at   time.Time // when it arrives, unless the link is blocked then
	data []byte    // none is the end of the stream
}

// An end is one end of a connection. One goroutine at a time may read, and one write.
type end struct {
	pair        *pair
	host        string
	in, out     *stream
	near, far   net.Addr
	broken      bool      // by a reset that this end was told of; guarded by the network's lock
	closed      bool      // likewise
	readBefore  time.Time // likewise; zero is no deadline
	writeBefore time.Time // likewise
}

func newPair(n *Network, from, to string, near, far net.Addr) *pair {
	p := &pair{network: n}
	for i, d := range []direction{{from, to}, {to, from}} {
		p.streams[i] = &stream{direction: d, network: n, arrival: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	}
	p.ends[0] = &end{pair: p, host: from, in: p.streams[1], out: p.streams[0], near: near, far: far}
	p.ends[1] = &end{pair: p, host: to, in: p.streams[0], out: p.streams[1], near: far, far: near}
	return p
}

// joins reports whether the ends are at two hosts.
func (p *pair) joins(a, b string) bool {
	return p.ends[0].host == a && p.ends[1].host == b || p.ends[0].host == b && p.ends[1].host == a
}

// other returns the host at the other end of the connection.
func (p *pair) other(host string) (string, bool) {
	switch host {
	case p.ends[0].host:
		return p.ends[1].host, true
	case p.ends[1].host:
		return p.ends[0].host, true
	}
	return "", false
}

// reset loses what is under way, and tells the ends for which told is true. The caller holds
// the network's lock.
func (p *pair) reset(told func(host string) bool) {
	for i, e := range p.ends {
		p.streams[i].segments, p.streams[i].size, p.streams[i].ignored = nil, 0, true
		if told(e.host) {
			e.broken = true
		}
	}

	if p.ends[0].broken && p.ends[1].broken {
		delete(p.network.pairs, p)
	}
	for _, s := range p.streams {
		s.wake()
	}
}

// wake lets both who read and who write look again.
func (s *stream) wake() {
	for _, c := range []chan struct{}{s.arrival, s.room} {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// send puts a segment on its way.
func (s *stream) send(data []byte) {
	at := time.Now().Add(s.network.latency + s.network.link(s.direction).slow)
	if at.Before(s.arrived) {
		at = s.arrived
	}
	s.arrived = at
	s.segments = append(s.segments, segment{at, data})
	s.size += len(data)
	s.wake()
}

// resend lets all that waits arrive no sooner than at.
func (s *stream) resend(at time.Time) {
	for i := range s.segments {
		if s.segments[i].at.Before(at) {
			s.segments[i].at = at
		}
	}
	if s.arrived.Before(at) {
		s.arrived = at
	}
	s.wake()
}

// Read implements net.Conn.
func (e *end) Read(p []byte) (int, error) {
	for {
		n, wait, err := e.readNow(p)
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
		await(e.in.arrival, wait)
	}
}

// readNow reads what has arrived. If nothing has, it returns how long to wait for it at most,
// where less than nothing stands for no bound.
func (e *end) readNow(p []byte) (n int, wait time.Duration, err error) {
	mu := &e.pair.network.mu
	mu.Lock()
	defer mu.Unlock()

	now, blocked := time.Now(), e.pair.network.link(e.in.direction).mended != nil
	switch {
	case e.closed:
		return 0, 0, &net.OpError{Op: "read", Net: "tcp", Err: net.ErrClosed}
	case e.broken:
		return 0, 0, &net.OpError{Op: "read", Net: "tcp", Err: errReset}
	case !e.readBefore.IsZero() && !now.Before(e.readBefore):
		return 0, 0, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	}

	if len(e.in.segments) > 0 && !blocked && !now.Before(e.in.segments[0].at) {
		return e.take(p)
	}

	wait = -1
	if len(e.in.segments) > 0 && !blocked {
		wait = e.in.segments[0].at.Sub(now)
	}
	return 0, sooner(wait, e.readBefore, now), nil
}

// take reads from the first segment, which has arrived.
func (e *end) take(p []byte) (int, time.Duration, error) {
	first := &e.in.segments[0]
	if len(first.data) == 0 {
		return 0, 0, io.EOF // and again, as it stays
	}

	n := copy(p, first.data)
	first.data = first.data[n:]
	e.in.size -= n
	if len(first.data) == 0 {
		e.in.segments = e.in.segments[1:]
	}

	// Room is made for the writer, which is at the other end.
	e.in.wake()
	return n, 0, nil
}

// Write implements net.Conn.
func (e *end) Write(p []byte) (written int, err error) {
	for written < len(p) {
		n, wait, err := e.writeNow(p[written:])
		written += n
		if err != nil {
			return written, err
		}
		if n == 0 {
			await(e.out.room, wait)
		}
	}
	if seen := e.pair.network.Seen; seen != nil {
		seen(e.out.from, e.out.to, len(p))
	}
	return written, nil
}

// writeNow writes as much as there is room for. If there is none, it returns how long to wait
// for it at most, as readNow does.
func (e *end) writeNow(p []byte) (n int, wait time.Duration, err error) {
	mu := &e.pair.network.mu
	mu.Lock()
	defer mu.Unlock()

	now := time.Now()
	switch {
	case e.closed:
		return 0, 0, &net.OpError{Op: "write", Net: "tcp", Err: net.ErrClosed}
	case e.broken:
		return 0, 0, &net.OpError{Op: "write", Net: "tcp", Err: errReset}
	case !e.writeBefore.IsZero() && !now.Before(e.writeBefore):
		return 0, 0, &net.OpError{Op: "write", Net: "tcp", Err: os.ErrDeadlineExceeded}
	case e.out.ignored:
		return len(p), 0, nil // nobody reads it, and nobody can say so
	}

	if n = min(len(p), window-e.out.size); n > 0 {
		e.out.send(slices.Clone(p[:n]))
		return n, 0, nil
	}
	return 0, sooner(-1, e.writeBefore, now), nil
}

// Close implements net.Conn. What was written still arrives.
func (e *end) Close() error {
	mu := &e.pair.network.mu
	mu.Lock()
	defer mu.Unlock()
	if e.closed {
		return nil
	}

	e.closed = true
	if !e.broken && !e.out.finished && !e.out.ignored {
		e.out.finished = true
		e.out.send(nil)
	}
	e.in.segments, e.in.size, e.in.ignored = nil, 0, true
	e.in.wake()
	e.out.wake()
	if e.pair.ends[0].closed && e.pair.ends[1].closed {
		delete(e.pair.network.pairs, e.pair)
	}
	return nil
}

// LocalAddr implements net.Conn.
func (e *end) LocalAddr() net.Addr { return e.near }

// RemoteAddr implements net.Conn.
func (e *end) RemoteAddr() net.Addr { return e.far }

// SetDeadline implements net.Conn.
func (e *end) SetDeadline(t time.Time) error {
	return e.setDeadlines(func() { e.readBefore, e.writeBefore = t, t })
}

// SetReadDeadline implements net.Conn.
func (e *end) SetReadDeadline(t time.Time) error {
	return e.setDeadlines(func() { e.readBefore = t })
}

// SetWriteDeadline implements net.Conn.
func (e *end) SetWriteDeadline(t time.Time) error {
	return e.setDeadlines(func() { e.writeBefore = t })
}

func (e *end) setDeadlines(set func()) error {
	mu := &e.pair.network.mu
	mu.Lock()
	defer mu.Unlock()
	set()
	e.in.wake()
	e.out.wake()
	return nil
}

// sooner returns the shorter of a wait, if there is one, and of what is left until a deadline,
// if there is one.
func sooner(wait time.Duration, deadline, now time.Time) time.Duration {
	if deadline.IsZero() {
		return wait
	}
	left := deadline.Sub(now)
	if wait < 0 || left < wait {
		return left
	}
	return wait
}

// await waits until something is said on c, or for most if that is not negative.
func await(c <-chan struct{}, most time.Duration) {
	if most < 0 {
		<-c
		return
	}
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-c:
	case <-t.C:
	}
}
