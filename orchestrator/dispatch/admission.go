package dispatch

import (
	"context"
	"sync"

	"github.com/coditect/mapreduce/api/errs"
)

// An admission says whether the streams of workers and their transfers may begin, and
// counts those that have not ended. Its methods are safe for concurrent use.
type admission struct {
	opened  chan struct{}  // closed once streams are admitted
	once    sync.Once      // closes opened
	streams sync.WaitGroup // of workers, with their transfers

	mu      sync.Mutex    // guards the variable below
	leaving chan struct{} // closed once no stream is admitted any more
}

func newAdmission() *admission {
	return &admission{opened: make(chan struct{}), leaving: make(chan struct{})}
}

// open begins to admit streams.
func (a *admission) open() { a.once.Do(func() { close(a.opened) }) }

// refuseStreams ends the admission of streams. It is called once.
func (a *admission) refuseStreams() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.leaving)
}

// admitStream admits a stream or a transfer while the orchestrator runs. The caller
// calls streams.Done when it has ended.
func (a *admission) admitStream(ctx context.Context) error {
	select {
	case <-a.opened:
	case <-ctx.Done():
		return context.Cause(ctx)
	}

	// refuseStreams takes the lock as well: no stream begins after it, and whoever called it
	// can wait for the streams that there are.
	a.mu.Lock()
	defer a.mu.Unlock()

	select {
	case <-a.leaving:
		return errLeaving
	default:
		a.streams.Add(1)
		return nil
	}
}

var errLeaving = errs.New(errs.Unavailable, "this orchestrator is leaving; connect to another")
