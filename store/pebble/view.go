package pebble

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/coditect/mapreduce/store/pebble/internal/files"
)

// A view is the state of the store after a group of commits.
type view struct {
	version  uint64
	snapshot *pebbledb.Snapshot
	refs     int // guarded by views.mu; one is held while it is current
}

// views gives transactions the newest view and closes views that are no longer
// used. An open snapshot keeps Pebble from dropping old data.
type views struct {
	mu      sync.Mutex
	current *view              // guarded by mu
	open    map[*view]struct{} // guarded by mu; with a live snapshot
}

// acquire returns the current view. The caller must release it.
func (v *views) acquire() *view {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.current.refs++
	return v.current
}

func (v *views) release(old *view) {
	v.mu.Lock()
	old.refs--
	_, live := v.open[old]
	unused := live && old.refs == 0
	if unused {
		delete(v.open, old)
	}
	v.mu.Unlock()

	if unused {
		_ = old.snapshot.Close() // never fails
	}
}

// publishView makes next the view that new transactions read.
func (v *views) publishView(next *view) {
	v.mu.Lock()
	if v.open == nil {
		v.open = make(map[*view]struct{})
	}
	old := v.current
	next.refs++
	v.current = next
	v.open[next] = struct{}{}
	v.mu.Unlock()

	if old != nil {
		v.release(old)
	}
}

func (v *views) currentVersion() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.current.version
}

// close closes all snapshots, including those of open transactions.
func (v *views) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for old := range v.open {
		_ = old.snapshot.Close() // never fails
	}
	clear(v.open)
}

// get returns a copy of the value of key, or nil if it has none.
func (v *view) get(key []byte) (value []byte, err error) {
	err = v.withValue(key, func(found []byte) { value = append(make([]byte, 0, len(found)), found...) })
	return value, err
}

// withValue calls use with the value of key, if it has one. The value is valid only
// during the call.
func (v *view) withValue(key []byte, use func(value []byte)) error {
	value, closer, err := v.snapshot.Get(key)
	if errors.Is(err, pebbledb.ErrNotFound) {
		return nil
	}
	if err != nil {
		return readError(err)
	}

	use(value)
	if err := closer.Close(); err != nil {
		return readError(err)
	}
	return nil
}

// readError distinguishes damage, which trying again does not repair. A table that is cut
// short while it is open ends before the block that is read of it.
func readError(err error) error {
	if pebbledb.IsCorruptionError(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		text, _, _ := strings.Cut(err.Error(), "\n") // the rest are names of types
		return files.Damaged(text)
	}
	return fmt.Errorf("store/pebble: read: %w", err)
}
