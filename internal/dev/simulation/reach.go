package simulation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/store"
)

// A reach is the store as one process reaches it. What the process asks may not get there, what
// the store answers may not come back, and both may take longer. Once the process is dead nothing
// that it does has an effect any more.
type reach struct {
	store.Store

	mu    sync.Mutex    // guards the fields below
	there chan struct{} // closed when questions get there again; nil if they do
	back  chan struct{} // the same for answers
	takes time.Duration // on the way there
	full  bool          // the store has no room
	dead  chan struct{} // closed when the process is
}

var errDead = errors.New("simulation: this process is dead")

func newReach(s store.Store) *reach { return &reach{Store: s, dead: make(chan struct{})} }

// block lets nothing there, or back.
func (r *reach) block(there, back bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if there && r.there == nil {
		r.there = make(chan struct{})
	}
	if back && r.back == nil {
		r.back = make(chan struct{})
	}
}

// set changes how the store behaves towards this process.
func (r *reach) set(takes time.Duration, full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takes, r.full = takes, full
}

// mend ends all that block and set have begun.
func (r *reach) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range []*chan struct{}{&r.there, &r.back} {
		if *c != nil {
			close(*c)
			*c = nil
		}
	}
	r.takes, r.full = 0, false
}

// kill makes the process dead. Killing it again does nothing.
func (r *reach) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isDead() {
		close(r.dead)
	}
}

func (r *reach) isDead() bool {
	select {
	case <-r.dead:
		return true
	default:
		return false
	}
}

// pass waits until a message gets there, or back.
func (r *reach) pass(ctx context.Context, back bool) error {
	r.mu.Lock()
	blocked, takes := r.there, r.takes
	if back {
		blocked, takes = r.back, 0
	}
	r.mu.Unlock()

	if blocked != nil {
		select {
		case <-blocked:
		case <-r.dead:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if takes > 0 && clock.Sleep(ctx, takes) != nil {
		return context.Cause(ctx)
	}
	if r.isDead() {
		return errDead
	}
	return nil
}

// Begin implements store.Store. Nothing is asked of the store yet.
func (r *reach) Begin(ctx context.Context) (store.Tx, error) {
	if r.isDead() {
		return nil, errDead
	}
	tx, err := r.Store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &reaching{Tx: tx, reach: r}, nil
}

// Watch implements store.Store. A watch that is set fires whatever is blocked: it says no more than
// that something may have changed.
func (r *reach) Watch(ctx context.Context, key []byte) (<-chan struct{}, error) {
	if err := r.pass(ctx, false); err != nil {
		return nil, err
	}
	return r.Store.Watch(ctx, key)
}

// A reaching transaction is one of a process.
type reaching struct {
	store.Tx
	reach   *reach
	writing bool
}

// ask asks something of the store and waits for its answer.
func (t *reaching) ask(ctx context.Context, question func() error) error {
	if err := t.reach.pass(ctx, false); err != nil {
		return err
	}
	if err := question(); err != nil {
		return err
	}
	return t.reach.pass(ctx, true)
}

// Get implements store.Reader.
func (t *reaching) Get(ctx context.Context, key []byte) ([]byte, error) {
	return reachingReader{t, t.Tx}.Get(ctx, key)
}

// GetAll implements store.Reader.
func (t *reaching) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	return reachingReader{t, t.Tx}.GetAll(ctx, keys)
}

// GetRange implements store.Reader.
func (t *reaching) GetRange(ctx context.Context, r store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	return reachingReader{t, t.Tx}.GetRange(ctx, r, o)
}

// Snapshot implements store.Tx.
func (t *reaching) Snapshot() store.Reader { return reachingReader{t, t.Tx.Snapshot()} }

// Set implements store.Tx.
func (t *reaching) Set(key, value []byte) {
	t.writing = true
	t.Tx.Set(key, value)
}

// Clear implements store.Tx.
func (t *reaching) Clear(key []byte) {
	t.writing = true
	t.Tx.Clear(key)
}

// ClearRange implements store.Tx.
func (t *reaching) ClearRange(r store.Range) {
	t.writing = true
	t.Tx.ClearRange(r)
}

// Add implements store.Tx.
func (t *reaching) Add(key []byte, delta int64) {
	t.writing = true
	t.Tx.Add(key, delta)
}

// SetVersionstampedKey implements store.Tx.
func (t *reaching) SetVersionstampedKey(key []byte, offset int, value []byte) {
	t.writing = true
	t.Tx.SetVersionstampedKey(key, offset, value)
}

// Commit implements store.Tx. A process that gives up waiting for the answer does not know what
// became of its transaction.
func (t *reaching) Commit(ctx context.Context) error {
	if err := t.reach.pass(ctx, false); err != nil {
		return err
	}

	t.reach.mu.Lock()
	full := t.reach.full
	t.reach.mu.Unlock()
	if full && t.writing {
		t.Tx.Discard()
		return store.ErrNoSpace
	}

	if err := t.Tx.Commit(ctx); err != nil {
		return err
	}
	if err := t.reach.pass(ctx, true); err != nil {
		return fmt.Errorf("%w: %w", store.ErrTimedOut, err)
	}
	return nil
}

// A reachingReader reads for a transaction.
type reachingReader struct {
	*reaching
	from store.Reader
}

// Get implements store.Reader.
func (r reachingReader) Get(ctx context.Context, key []byte) (value []byte, err error) {
	err = r.ask(ctx, func() error {
		value, err = r.from.Get(ctx, key)
		return err
	})
	return value, err
}

// GetAll implements store.Reader.
func (r reachingReader) GetAll(ctx context.Context, keys [][]byte) (values [][]byte, err error) {
	err = r.ask(ctx, func() error {
		values, err = r.from.GetAll(ctx, keys)
		return err
	})
	return values, err
}

// GetRange implements store.Reader.
func (r reachingReader) GetRange(ctx context.Context, keys store.Range, o store.RangeOptions) (pairs []store.KeyValue, more bool, err error) {
	err = r.ask(ctx, func() error {
		pairs, more, err = r.from.GetRange(ctx, keys, o)
		return err
	})
	return pairs, more, err
}
