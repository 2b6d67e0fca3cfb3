package embedded

import (
	"context"
	"net"
	"strings"
	"sync"

	"google.golang.org/grpc/stats"
)

// guests count the connections of other processes that have begun a job here
// and wait for it. It is a stats handler, as nothing else in gRPC sees a
// connection end.
type guests struct {
	mu      sync.Mutex // guards the variables below
	waiting int
	left    chan struct{} // closed and replaced whenever a guest leaves
}

var _ stats.Handler = (*guests)(nil)

func newGuests() *guests { return &guests{left: make(chan struct{})} }

// A connKey is the key of a connection's conn in its context.
type connKey struct{}

// A conn is one connection. It is a guest's from the first call that begins or
// resumes a job until it ends.
type conn struct {
	guest bool // guarded by guests.mu
}

// begins are the methods whose callers then wait for a job.
var begins = [...]string{"/SubmitJob", "/ResumeJob"}

// TagConn implements stats.Handler.
func (g *guests) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	if _, ok := info.LocalAddr.(*net.UnixAddr); !ok {
		return ctx // this process itself, or a server's client, who can come back
	}
	return context.WithValue(ctx, connKey{}, new(conn))
}

// TagRPC implements stats.Handler.
func (g *guests) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	c, ok := ctx.Value(connKey{}).(*conn)
	if !ok {
		return ctx
	}
	for _, method := range begins {
		if strings.HasSuffix(info.FullMethodName, method) {
			g.enter(c)
		}
	}
	return ctx
}

// HandleRPC implements stats.Handler.
func (g *guests) HandleRPC(context.Context, stats.RPCStats) {}

// HandleConn implements stats.Handler.
func (g *guests) HandleConn(ctx context.Context, s stats.ConnStats) {
	if _, ended := s.(*stats.ConnEnd); !ended {
		return
	}
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		g.leave(c)
	}
}

func (g *guests) enter(c *conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !c.guest {
		c.guest = true
		g.waiting++
	}
}

func (g *guests) leave(c *conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.guest {
		c.guest = false
		g.waiting--
		close(g.left)
		g.left = make(chan struct{})
	}
}

func (g *guests) count() int {
	n, _ := g.look()
	return n
}

func (g *guests) look() (waiting int, left <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting, g.left
}

func (g *guests) wait(ctx context.Context) error {
	for {
		n, left := g.look()
		if n == 0 {
			return nil
		}
		select {
		case <-left:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
