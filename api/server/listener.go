package server

import (
	"net"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/coditect/mapreduce/api/memory"
)

// A listener bounds the connections of peers. While there are as many as may be, the
// one that has had no call for the longest makes way for the next; if each has calls,
// the next is closed.
type listener struct {
	net.Listener
	peers *peers
}

// peers are the connections of all listeners of a server.
type peers struct {
	most   int // connections; 0 is no limit
	budget *memory.Budget

	mu      sync.Mutex // guards the variables below
	all     map[*connection]struct{}
	sockets int // of all, those that need a file
}

// idleBefore is how long a connection must have had no use to make way for another.
const idleBefore = time.Second

// watchEvery is how often connections are looked at for peers that stall.
const watchEvery = 5 * time.Second

func newPeers(most int, b *memory.Budget) *peers {
	return &peers{most: most, budget: b, all: make(map[*connection]struct{})}
}

// listen wraps a listener, unless its peers are in this process.
func (p *peers) listen(l net.Listener) net.Listener {
	if _, ok := l.(*bufconn.Listener); ok {
		return l
	}
	return &listener{l, p}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.peers.admit(conn); c != nil {
			return c, nil
		}
		_ = conn.Close() // there is no room for it
	}
}

// admit makes room for a connection, or returns nil.
func (p *peers) admit(conn net.Conn) *connection {
	now := time.Now()
	c := &connection{Conn: conn, data: conn, peers: p, working: make(chan struct{}, maxWorking)}
	c.in.prefix = prefaceBytes
	c.used.Store(now.UnixNano())
	c.wrote.Store(now.UnixNano())
	c.unfinished.Store(now.UnixNano()) // its preface is yet to come

	p.mu.Lock()
	defer p.mu.Unlock()

	if p.most > 0 && c.isSocket() && p.sockets >= p.most {
		idle := p.mostIdle(now)
		if idle == nil {
			return nil
		}
		p.forget(idle)
		idle.cutOff(nil)
	}

	if c.isSocket() {
		p.sockets++
	}

	c.account = p.budget.Connect(c.cutOff)
	p.all[c] = struct{}{}
	return c
}

// mostIdle returns the connection without calls that was used last the longest ago, of
// those that need a file, or nil. The caller holds mu.
func (p *peers) mostIdle(now time.Time) (idle *connection) {
	for c := range p.all {
		if !c.isSocket() || c.calls.Load() > 0 || now.UnixNano()-c.used.Load() < int64(idleBefore) {
			continue
		}
		if idle == nil || c.used.Load() < idle.used.Load() {
			idle = c
		}
	}
	return idle
}

// remove forgets a connection that has ended.
func (p *peers) remove(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(c)
}

// forget is remove for a caller that holds mu.
func (p *peers) forget(c *connection) {
	if _, found := p.all[c]; !found {
		return
	}
	delete(p.all, c)
	if c.isSocket() {
		p.sockets--
	}
}

// watch ends connections whose peers stall, until done closes.
func (p *peers) watch(done <-chan struct{}) {
	t := time.NewTicker(watchEvery)
	defer t.Stop()

	again := 0 // looks after which memory is still to be given back
	for {
		select {
		case <-done:
			return
		case now := <-t.C:
			p.cutStalled(now)
			p.returnMemory(&again)
		}
	}
}

// worthReturning is how many bytes peers must have held for their memory to be given
// back to the system at once, rather than by and by.
const worthReturning = 64 << 20

// returnAgain is for how many further looks that is done: what sessions and jobs of those
// peers held becomes free only by and by.
const returnAgain = 12

// returnMemory gives memory back to the system once peers hold little of what they did.
func (p *peers) returnMemory(looks *int) {
	if p.budget.Settle(worthReturning) {
		*looks = returnAgain + 1
	}
	if *looks > 0 {
		*looks--
		debug.FreeOSMemory()
	}
}

func (p *peers) cutStalled(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.all {
		if c.stalled(now) {
			c.cutOff(nil)
		}
	}
}
