// Package network is a network in memory, whose links are cut, slowed and broken as a test
// says. Its connections are streams of bytes, as TCP's are: nothing is lost, doubled or put in
// another order while a connection lasts. What goes over a blocked link waits until the link is
// mended, and what is under way over a connection that breaks is lost.
//
// These things always hold:
//  1. what is read from a connection is a prefix of what was written at its other end;
//  2. a link has two directions, of which each is blocked, slowed and mended for itself;
//  3. nothing goes over a link that is blocked: no data, no end, and no reset;
//  4. time is that of package time, so that within a bubble of testing/synctest, or where a
//     program is given clocks of its own, it is as virtual as everything else.
//
// It imports nothing of the project.
package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// Port is where every host listens.
const Port = 7400

// A Network connects hosts by name.
type Network struct {
	// Seen is called for every write, with how many bytes go from one host to another. It may
	// be nil, must not block, and is set before the first connection.
	Seen func(from, to string, bytes int)

	mu        sync.Mutex // guards the fields below, and the ends of all connections
	latency   time.Duration
	links     map[direction]*link
	listeners map[string]*listener
	addresses map[string]net.IP
	port      int // the last that was given to a connection
	pairs     map[*pair]struct{}
}

// A direction is one of the two of a link.
type direction struct{ from, to string }

// A link is how bytes go in one direction.
type link struct {
	mended chan struct{} // closed when the link is no longer blocked; nil if it is not
	slow   time.Duration // what every byte takes besides the latency of the network
}

// New returns a network without hosts, of which each link takes latency one way.
func New(latency time.Duration) *Network {
	return &Network{
		latency: latency, links: make(map[direction]*link), listeners: make(map[string]*listener),
		addresses: make(map[string]net.IP), pairs: make(map[*pair]struct{}),
	}
}

// link returns the link of a direction. The caller holds n.mu.
func (n *Network) link(d direction) *link {
	l := n.links[d]
	if l == nil {
		l = new(link)
		n.links[d] = l
	}
	return l
}

// Block lets nothing go from one host to another until Mend. The other direction is as it was.
func (n *Network) Block(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.link(direction{from, to}); l.mended == nil {
		l.mended = make(chan struct{})
	}
}

// Slow lets everything that goes from one host to another take so much longer until Mend.
func (n *Network) Slow(from, to string, by time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.link(direction{from, to}).slow = by
}

// Mend ends Block and Slow of a direction. What has waited goes on, as if it was sent now.
func (n *Network) Mend(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mend(direction{from, to})
}

// MendAll ends Block and Slow everywhere.
func (n *Network) MendAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for d := range n.links {
		n.mend(d)
	}
}

// mend is Mend for a caller that holds n.mu.
func (n *Network) mend(d direction) {
	l := n.link(d)
	l.slow = 0
	if l.mended == nil {
		return
	}

	close(l.mended)
	l.mended = nil
	again := time.Now().Add(n.latency)
	for p := range n.pairs {
		for _, s := range p.streams {
			if s.direction == d {
				s.resend(again)
			}
		}
	}
}

// Break breaks all connections between two hosts, and returns how many: both ends are told,
// and what is under way is lost. With silent only a is told: to b, such a connection seems to
// stand still.
func (n *Network) Break(a, b string, silent bool) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	broken := 0
	for p := range n.pairs {
		if p.joins(a, b) {
			p.reset(func(host string) bool { return host == a || !silent })
			broken++
		}
	}
	return broken
}

// Down takes a host away, with its listener and its connections. If it is told, as when a
// process dies whose machine lives, the other ends are reset over links that are not blocked.
// If not, as when a machine loses power, they hear nothing any more.
func (n *Network) Down(host string, told bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.listeners[host]; l != nil {
		l.closeLocked()
	}
	for p := range n.pairs {
		if other, found := p.other(host); found {
			hears := told && n.link(direction{host, other}).mended == nil
			p.reset(func(at string) bool { return at == host || hears })
		}
	}
}

// Listen lets a host take connections, until the listener is closed or the host goes down.
func (n *Network) Listen(host string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[host] != nil {
		return nil, fmt.Errorf("network: %s listens already", host)
	}
	l := &listener{network: n, host: host, backlog: make(chan *end, 64), closed: make(chan struct{})}
	n.listeners[host] = l
	return l, nil
}

// address returns the address of a host. The caller holds n.mu.
func (n *Network) address(host string, port int) net.Addr {
	ip := n.addresses[host]
	if ip == nil {
		number := len(n.addresses) + 1
		ip = net.IPv4(10, 0, byte(number>>8), byte(number))
		n.addresses[host] = ip
	}
	return &net.TCPAddr{IP: ip, Port: port}
}

// Dial connects a host to another. It waits while a direction of the link is blocked, and is
// refused if nobody listens.
func (n *Network) Dial(ctx context.Context, from, to string) (net.Conn, error) {
	for _, d := range []direction{{from, to}, {to, from}} {
		if err := n.cross(ctx, d); err != nil {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
		}
	}

	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.listeners[to]
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}

	n.port++
	near, far := n.address(from, 20_000+n.port%40_000), n.address(to, Port)
	p := newPair(n, from, to, near, far)
	select {
	case l.backlog <- p.ends[1]:
		n.pairs[p] = struct{}{}
		return p.ends[0], nil
	default:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
}

// cross waits as long as a packet takes in a direction.
func (n *Network) cross(ctx context.Context, d direction) error {
	for {
		n.mu.Lock()
		l := n.link(d)
		mended, takes := l.mended, n.latency+l.slow
		n.mu.Unlock()

		// A packet that was lost on a blocked link is sent again once that is mended.
		if mended != nil {
			select {
			case <-mended:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}

		t := time.NewTimer(takes)
		defer t.Stop()
		select {
		case <-t.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A listener takes the connections of a host.
type listener struct {
	network *Network
	host    string
	backlog chan *end
	closed  chan struct{} // closed by closeLocked
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case e := <-l.backlog:
		return e, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: net.ErrClosed}
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	l.closeLocked()
	return nil
}

// closeLocked is Close for a caller that holds the lock of the network. Connections that
// nobody has taken are reset.
func (l *listener) closeLocked() {
	if l.network.listeners[l.host] != l {
		return
	}
	delete(l.network.listeners, l.host)
	close(l.closed)
	for {
		select {
		case e := <-l.backlog:
			e.pair.reset(func(string) bool { return true })
		default:
			return
		}
	}
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr {
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	return l.network.address(l.host, Port)
}

// errReset is what an end reads and writes whose connection was broken.
var errReset = errors.Join(errors.New("network: connection broken"), syscall.ECONNRESET)
