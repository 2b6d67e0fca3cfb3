package pebble

import (
	"context"
	"sync"
)

// A watch is a key with a caller who waits for its change.
type watch struct {
	key   []byte
	hash  uint64
	fired chan struct{}
	// stop cancels the callback at the end of the context. It is set once,
	// before other goroutines see the watch.
	stop func() bool
}

// watches fires each watch when a group that writes its key is published.
type watches struct {
	mu      sync.Mutex
	waiting map[uint64][]*watch // by hash of the key; guarded by mu
	ends    sync.WaitGroup      // callbacks of ending contexts
}

// add returns a channel that is closed when key is written or ctx ends.
func (w *watches) add(ctx context.Context, key []byte, hash uint64) <-chan struct{} {
	added := &watch{key: append([]byte{}, key...), hash: hash, fired: make(chan struct{})}

	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == nil {
		w.waiting = make(map[uint64][]*watch)
	}

	w.waiting[hash] = append(w.waiting[hash], added)
	w.ends.Add(1)
	added.stop = context.AfterFunc(ctx, func() {
		defer w.ends.Done()
		w.removeWatch(added)
	})

	return added.fired
}

// removeWatch fires and removes a watch whose context ended, unless it has fired.
func (w *watches) removeWatch(old *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.waiting[old.hash]
	for i, other := range list {
		if other == old {
			w.setWaiting(old.hash, append(list[:i], list[i+1:]...))
			close(old.fired)
			return
		}
	}
}

func (w *watches) setWaiting(hash uint64, list []*watch) {
	if len(list) == 0 {
		delete(w.waiting, hash)
	} else {
		w.waiting[hash] = list
	}
}

// notifyWatches fires the watches on the keys and ranges that were written.
func (w *watches) notifyWatches(wrote *footprint) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if len(w.waiting) == 0 {
		return
	}
	for _, hash := range wrote.keys.hashes {
		if list, ok := w.waiting[hash]; ok {
			w.fireAll(hash, list)
		}
	}

	if len(wrote.ranges) > 0 {
		w.notifyRangeWatches(wrote)
	}
}

func (w *watches) notifyRangeWatches(wrote *footprint) {
	for hash, list := range w.waiting {
		for _, watched := range list {
			if wrote.coversKey(watched.key) {
				w.fireAll(hash, list)
				break
			}
		}
	}
}

// fireAll fires all watches of one hash.
func (w *watches) fireAll(hash uint64, list []*watch) {
	delete(w.waiting, hash)
	for _, watched := range list {
		close(watched.fired)
		if watched.stop() {
			w.ends.Done()
		}
	}
}

// close fires all watches and waits for running callbacks. No watch is added after
// it.
func (w *watches) close() {
	w.mu.Lock()
	for hash, list := range w.waiting {
		w.fireAll(hash, list)
	}
	w.mu.Unlock()
	w.ends.Wait()
}
