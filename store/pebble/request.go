package pebble

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/coditect/mapreduce/store"
)

// A request is a transaction that is being committed. It shares no memory with its
// caller, who may have stopped waiting.
type request struct {
	batch       *pebbledb.Batch // the writes, without versionstamps
	stamps      []stampPlace    // where the versionstamps go
	wrote       footprint
	reads       bool // whether there are reads to check
	readVersion uint64
	read        footprint

	// Written by the committer and the publisher before done is closed.
	done  chan struct{}
	err   error
	stamp store.Versionstamp
}

// A stampPlace is a place for a versionstamp.
type stampPlace struct {
	batch  int // offset in the encoded batch
	key    int // index in wrote.keys
	offset int // in that key
}

// newRequest encodes the writes and conflicts of t.
func (t *tx) newRequest() (*request, error) {
	r := &request{
		batch: t.store.db.NewBatchWithSize(t.writes.size + 16*len(t.writes.ops) + 64),
		wrote: t.writeConflicts,
		read:  t.reads,
		done:  make(chan struct{}),
	}

	if !t.reads.isEmpty() {
		r.reads, r.readVersion = true, t.view.version
	}

	r.wrote.keys.grow(len(t.writes.ops), t.writes.keysSize)
	for _, o := range t.writes.ops {
		if err := r.encodeOp(o, t.store); err != nil {
			r.discardBatch()
			return nil, err
		}
	}

	return r, nil
}

func (r *request) encodeOp(o op, s *Store) error {
	if o.kind == opClearRange {
		r.wrote.addRange(store.Range{Begin: o.key, End: o.value})
		return r.batch.DeleteRange(o.key, o.value, nil)
	}

	r.wrote.keys.add(o.key, s.hashKey(o.key))
	switch o.kind {
	case opClear:
		return r.batch.Delete(o.key, nil)
	case opAdd:
		return r.batch.Merge(o.key, encodeSum(uint64(o.number)), nil)
	case opStamp:
		return r.encodeStamp(o)
	default:
		return r.batch.Set(o.key, o.value, nil)
	}
}

// encodeStamp encodes a write with a versionstamp in its key. It relies on the
// encoding of a batch: a kind, then the key and the value, each after its length.
func (r *request) encodeStamp(o op) error {
	if err := r.batch.Set(o.key, o.value, nil); err != nil {
		return err
	}

	var length [binary.MaxVarintLen64]byte
	afterKey := binary.PutUvarint(length[:], uint64(len(o.value))) + len(o.value)
	r.stamps = append(r.stamps, stampPlace{
		batch:  len(r.batch.Repr()) - afterKey - len(o.key) + int(o.number),
		key:    r.wrote.keys.len() - 1,
		offset: int(o.number),
	})
	return nil
}

// fillStamps writes stamp into all its places.
func (r *request) fillStamps(stamp store.Versionstamp, s *Store) {
	r.stamp = stamp
	for _, place := range r.stamps {
		copy(r.batch.Repr()[place.batch:], stamp[:])
		key := r.wrote.keys.keyAt(place.key)
		copy(key[place.offset:], stamp[:])
		r.wrote.keys.hashes[place.key] = s.hashKey(key)
	}
}

// discardBatch frees the batch of a request that was not applied.
func (r *request) discardBatch() {
	if r.batch != nil {
		_ = r.batch.Close() // only fails after a failed sync
		r.batch = nil
	}
}

// finishWith passes the outcome of the request to the caller.
func (r *request) finishWith(err error) {
	if err != nil {
		r.err, r.stamp = err, store.Versionstamp{}
	}
	close(r.done)
}

// wait waits for the outcome of the request. It returns store.ErrTimedOut if ctx
// ends before.
func (r *request) wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
	}

	select {
	case <-r.done: // both happened
		return r.err
	default:
		return fmt.Errorf("%w: %w", store.ErrTimedOut, context.Cause(ctx))
	}
}

// A queue holds requests until the committer takes them. Each request has a waiting
// caller, so the number of callers bounds the queue.
type queue struct {
	mu      sync.Mutex
	waiting []*request // guarded by mu
	closed  bool       // guarded by mu
	wake    chan struct{}
}

func newQueue() queue { return queue{wake: make(chan struct{}, 1)} }

func (q *queue) put(r *request) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return store.ErrClosed
	}
	q.waiting = append(q.waiting, r)
	q.wakeCommitter()
	return nil
}

// wakeCommitter signals the committer. One pending signal is enough, because the
// committer takes all requests.
func (q *queue) wakeCommitter() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// takeAll waits for requests and returns them all. It reuses spare for later
// requests. It returns none if the queue is closed and empty.
func (q *queue) takeAll(spare []*request) []*request {
	for {
		q.mu.Lock()
		taken, closed := q.waiting, q.closed
		if len(taken) > 0 {
			q.waiting = spare
		}
		q.mu.Unlock()

		if len(taken) > 0 || closed {
			return taken
		}
		<-q.wake
	}
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wakeCommitter()
}
