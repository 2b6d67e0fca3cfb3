package embedded

import (
	"context"
	"net"
	"strings"
	"sync"

	"google.golang.org/grpc/stats"
)

// waitingClients count the connections of other processes that have begun a job here
// and wait for it. It is a stats handler, as nothing else in gRPC sees a
// connection end.
type waitingClients struct {
	mu      sync.Mutex // guards the variables below
	waiting int
	left    chan struct{} // closed and replaced whenever one stops waiting
}

var _ stats.Handler = (*waitingClients)(nil)

func newWaitingClients() *waitingClients { return &waitingClients{left: make(chan struct{})} }

// A connKey is the key of a connection's clientConn in its context.
type connKey struct{}

// A clientConn is a connection of another process. That process waits from the first call
// that submits or resumes a job until the connection ends.
type clientConn struct {
	waits bool // it waits for a job; guarded by waitingClients.mu
}

// begins are the methods whose callers then wait for a job.
var begins = [...]string{"/SubmitJob", "/ResumeJob"}

// TagConn implements stats.Handler.
func (w *waitingClients) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	if _, ok := info.LocalAddr.(*net.UnixAddr); !ok {
		return ctx // this process itself, or a server's client, which can come back
	}
	return context.WithValue(ctx, connKey{}, new(clientConn))
}

// TagRPC implements stats.Handler.
func (w *waitingClients) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	c, ok := ctx.Value(connKey{}).(*clientConn)
	if !ok {
		return ctx
	}

	for _, method := range begins {
		if strings.HasSuffix(info.FullMethodName, method) {
			w.addConn(c)
		}
	}
	return ctx
}

// HandleRPC implements stats.Handler.
func (w *waitingClients) HandleRPC(context.Context, stats.RPCStats) {}

// HandleConn implements stats.Handler.
func (w *waitingClients) HandleConn(ctx context.Context, s stats.ConnStats) {
	if _, ended := s.(*stats.ConnEnd); !ended {
		return
	}
	if c, ok := ctx.Value(connKey{}).(*clientConn); ok {
		w.removeConn(c)
	}
}

func (w *waitingClients) addConn(c *clientConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !c.waits {
		c.waits = true
		w.waiting++
	}
}

func (w *waitingClients) removeConn(c *clientConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.waits {
		c.waits = false
		w.waiting--
		close(w.left)
		w.left = make(chan struct{})
	}
}

func (w *waitingClients) countWaiting() int {
	n, _ := w.waitState()
	return n
}

func (w *waitingClients) waitState() (waiting int, left <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting, w.left
}

func (w *waitingClients) waitUntilNone(ctx context.Context) error {
	for {
		n, left := w.waitState()
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
