package simulation

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"sync"
	"time"
)

// A trace is what has happened, in order: each write to the network and to the store, each begin
// and end of an attempt, and each fault. It is kept as a hash of all of it, and is written to Out if
// there is one.
type trace struct {
	begun time.Time
	out   io.Writer // may be nil

	mu     sync.Mutex // guards the fields below
	sum    hash.Hash
	events int
}

func newTrace(out io.Writer) *trace {
	return &trace{begun: time.Now(), out: out, sum: sha256.New()}
}

// note adds an event.
func (t *trace) note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events++
	line := fmt.Sprintf("%12d %s\n", time.Since(t.begun).Microseconds(), fmt.Sprintf(format, args...))
	_, _ = io.WriteString(t.sum, line) // a hash never fails
	if t.out != nil {
		_, _ = io.WriteString(t.out, line) // whoever reads it notices
	}
}

// hash returns that of all events so far, and how many there are.
func (t *trace) hash() (string, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return hex.EncodeToString(t.sum.Sum(nil)[:8]), t.events
}
