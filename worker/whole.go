package worker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/ground"
)

// A reading is a request for a piece of a document that waits for its answer.
type reading struct {
	start int64         // byte of the text
	done  chan struct{} // closed when answered
	data  []byte        // valid once done is closed
	err   error         // the same
}

// whole returns what agents get as Task.Whole, nil for units that have all of
// their document, or whose orchestrator does not hand texts out.
func (u *unit) whole(t *mapreduce.Text) func(context.Context, func(*ground.Text)) error {
	if t == nil || t.Chunks < 2 || t.Length == 0 {
		return nil
	}
	return func(ctx context.Context, use func(*ground.Text)) error {
		if t.Length > mapreduce.MaxWholeText {
			return fmt.Errorf("%w: its text has %d bytes; at most %d are looked through", agent.ErrTooLong, t.Length, mapreduce.MaxWholeText)
		}
		key := bookKey{u.id.job, string(t.SHA256)}
		load := func(ctx context.Context) (string, error) { return u.fetch(ctx, t) }
		if err := u.session.library.lend(ctx, key, t.Length, load, use); err != nil {
			return fmt.Errorf("text of %s: %w", t.Document, err)
		}
		return nil
	}
}

// fetch gets a text piece by piece, and checks that it is the one that the unit
// is a chunk of.
func (u *unit) fetch(ctx context.Context, t *mapreduce.Text) (string, error) {
	var b strings.Builder
	b.Grow(int(t.Length))
	sum := sha256.New()
	for have := int64(0); have < t.Length; have = int64(b.Len()) {
		data, err := u.read(ctx, have)
		if err != nil {
			return "", err
		}
		if len(data) == 0 || int64(len(data)) > t.Length-have {
			return "", fmt.Errorf("a piece of %d bytes came for byte %d of %d", len(data), have, t.Length)
		}
		b.Write(data)
		sum.Write(data)
	}
	if !bytes.Equal(sum.Sum(nil), t.SHA256) {
		return "", errors.New("what came has another hash")
	}
	return b.String(), nil
}

// read asks for the piece that begins at a byte, and waits for it. One at a time
// is under way for a unit.
func (u *unit) read(ctx context.Context, start int64) ([]byte, error) {
	r := &reading{start: start, done: make(chan struct{})}
	u.mu.Lock()
	u.reading = r
	u.mu.Unlock()
	u.session.askText(u)
	select {
	case <-r.done:
		return r.data, r.err
	case <-u.ctx.Done():
		return nil, context.Cause(u.ctx)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// brought takes a piece. One that was asked for twice, over two streams, comes
// twice, and counts once.
func (u *unit) brought(p mapreduce.TextPiece) {
	u.mu.Lock()
	defer u.mu.Unlock()
	r := u.reading
	if r == nil || r.start != p.Start {
		return
	}
	u.reading = nil
	r.data = p.Data
	if p.Error != "" {
		r.err = errors.New(p.Error)
	}
	close(r.done)
}

// wants returns the byte of the text that is asked for.
func (u *unit) wants() (start int64, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.reading == nil {
		return 0, false
	}
	return u.reading.start, true
}

// askText queues a unit's request.
func (s *session) askText(u *unit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.texts = append(s.out.texts, u)
	s.signal()
}

func (s *session) pullTexts(m *mapreduce.FromWorker) {
	for _, u := range s.out.texts {
		if start, ok := u.wants(); ok && u.phase == running {
			m.Texts = append(m.Texts, mapreduce.TextRequest{Held: u.held(), Start: start})
		}
	}
	s.out.texts = nil
}

// bring takes what orchestrators hand out.
func (s *session) bring(p mapreduce.TextPiece) {
	s.mu.Lock()
	u := s.held(p.Held)
	s.mu.Unlock()
	if u != nil {
		u.brought(p)
	}
}
