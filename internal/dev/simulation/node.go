package simulation

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/concurrency"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/api/server"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/keys"
)

// A node is one process of an orchestrator, at an address that others have after it.
type node struct {
	world  *world
	at     int // its address
	id     mapreduce.NodeID
	reach  *reach
	jumped atomic.Int64 // how far its clock is off, in nanoseconds
	fatal  atomic.Pointer[failpoint.Point]
	leave  context.CancelFunc // stops it in order
	left   atomic.Bool        // it was stopped so
	serves atomic.Bool        // workers can connect
	ended  chan struct{}      // closed when nothing of it runs any more
	once   sync.Once          // ends it
}

// hostOf returns the host of an orchestrator's address.
func hostOf(address int) string { return fmt.Sprintf("orchestrator-%d", address) }

// startNode runs an orchestrator at an address, unless another than the one before it is there.
func (w *world) startNode(at int, before *node) {
	w.mu.Lock()
	if w.nodes[at] != before {
		w.mu.Unlock()
		return
	}
	w.started++
	n := &node{world: w, at: at, id: mapreduce.NodeID(fmt.Sprintf("node-%d", w.started)), reach: newReach(w.faults), ended: make(chan struct{})}
	w.nodes[at] = n
	w.mu.Unlock()

	ctx, leave := context.WithCancel(context.Background())
	n.leave = leave
	w.running.Go(func() {
		defer close(n.ended)
		n.serve(ctx)
	})
}

// now is the clock on its wall.
func (n *node) now() time.Time { return time.Now().Add(time.Duration(n.jumped.Load())) }

// serve runs the orchestrator until ctx ends. One that cannot begin, for the store is away, is tried
// again, as whatever starts processes does.
func (n *node) serve(ctx context.Context) {
	for ctx.Err() == nil {
		if err := n.serveOnce(ctx); err != nil {
			n.world.trace.note("%s does not begin: %v", n.id, err)
			_ = clock.Sleep(ctx, time.Second) // it is over either way
		}
	}
}

func (n *node) serveOnce(ctx context.Context) error {
	w := n.world
	j := jobs.New(store.NewDB(n.reach, store.Config{}), keys.New(), n.id, n.now)
	j.SetHook(n.pass)
	config := w.config
	config.Logger = slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelWarn})).With("node", n.id)
	o, err := orchestrator.New(j, config)
	if err != nil {
		return err
	}

	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-o.Started():
	}

	var fleet protocol.Fleet = doubling{o, w}
	if w.options.Tamper != nil {
		fleet = w.options.Tamper(fleet)
	}
	// How many goroutines are ready is another number each time.
	srv, err := server.New(o, fleet, server.Config{Logger: config.Logger, Calls: concurrency.Limits{CountReady: func() int { return 0 }}})
	if err != nil {
		return err
	}
	listener, err := w.net.Listen(hostOf(n.at))
	if err != nil {
		return err
	}
	n.serves.Store(true)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(listener) // ends with the listener, or with the server
	}()

	err = <-ended
	n.serves.Store(false)

	// Of a process that is dead nothing waits for anybody.
	patience, done := context.WithTimeout(context.Background(), 5*time.Second)
	defer done()
	if n.reach.isDead() {
		done()
	}
	srv.Shutdown(patience)
	<-served
	return err
}

// pass is called at each point that the orchestrator passes.
func (n *node) pass(p failpoint.Point) {
	n.world.trace.note("%s passes %s", n.id, p)
	if fatal := n.fatal.Load(); fatal != nil && *fatal == p {
		n.world.cover("an orchestrator died at a point")
		n.die(true)
	}
}

// die ends the process at once. If it is told, its machine goes on and says so to whoever is
// connected.
func (n *node) die(told bool) {
	n.once.Do(func() {
		n.world.trace.note("%s dies", n.id)
		n.serves.Store(false)
		n.reach.kill()
		n.world.net.Down(hostOf(n.at), told)
		n.leave()
	})
}

// stop ends the process in order, and waits for that.
func (n *node) stop() {
	n.once.Do(func() {
		n.world.trace.note("%s leaves", n.id)
		n.serves.Store(false)
		n.left.Store(true)
		n.leave()
	})
	<-n.ended
}

// A logBook keeps the log of all orchestrators.
type logBook struct {
	mu  sync.Mutex // guards out
	out io.Writer  // may be nil
}

// Write implements io.Writer.
func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out == nil {
		return len(p), nil
	}
	return l.out.Write(p)
}
