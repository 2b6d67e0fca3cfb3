// Package evidence is what tools brought to a unit, as one attempt at the unit has it: a
// list of all of it, and the texts that were needed last. The texts themselves are stored
// by the orchestrator.
package evidence

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
)

// A Store stores evidence of a unit under an attempt.
type Store interface {
	// Put stores an item with its text. It returns when the text is durable, or when the
	// attempt has ended: nobody else puts an item of the number then.
	Put(number int, e *mapreduce.Evidence, text []byte) error

	// Get returns the text of an item that is stored.
	Get(ctx context.Context, e *mapreduce.Evidence) ([]byte, error)
}

// A Shelf is the evidence of a unit. It is safe for concurrent use.
type Shelf struct {
	store Store

	mu      sync.Mutex // guards the variables below
	items   []mapreduce.Evidence
	bytes   int64 // of all texts
	texts   map[mapreduce.DocumentID][]byte
	recent  []mapreduce.DocumentID // of texts, the latest last
	held    int                    // bytes of texts
	putting chan struct{}          // full while an item is put, as items are numbered; nil before the first
}

var _ agent.EvidenceKeeper = (*Shelf)(nil)

// maxHeld is how many bytes of texts are held, beside the last: a worker may run a
// thousand agents. Others are fetched when they are asked for.
const maxHeld = 256 << 10

// Open returns what earlier attempts have kept, whose list is a JSON list of
// mapreduce.Evidence; it may be empty. The last own items are the unit's. What stands before
// them is of a unit that this one repeats, and becomes the unit's own here.
func Open(ctx context.Context, list []byte, own int, store Store) (*Shelf, error) {
	s := &Shelf{store: store}
	all, err := decodeList(list)
	if err != nil {
		return nil, err
	}

	if own < 0 || own > len(all) {
		return nil, errs.New(errs.DataLoss, "the list of the evidence has %d items, of which %d are the unit's own", len(all), own)
	}

	for _, e := range all[len(all)-own:] {
		s.addItem(e)
	}

	// Items of the unit that this one repeats become this unit's own, with a put for each.
	for _, e := range all[:len(all)-own] {
		if s.find(e.Document) != nil {
			continue
		}
		text, err := store.Get(ctx, &e)
		if err != nil {
			return nil, err
		}
		if _, err := s.KeepEvidence(ctx, e, text); err != nil {
			return nil, err
		}
	}

	return s, nil
}

// decodeList returns the items of a list, which may be empty.
func decodeList(list []byte) (items []mapreduce.Evidence, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	if err = json.Unmarshal(list, &items); err != nil {
		return nil, fmt.Errorf("list of the evidence: %w", err)
	}
	return items, nil
}

// KeepEvidence implements agent.EvidenceKeeper. A put goes on after ctx has ended, as long
// as the attempt does: the next item has the next number.
func (s *Shelf) KeepEvidence(ctx context.Context, e mapreduce.Evidence, text []byte) (mapreduce.DocumentID, error) {
	if err := e.CheckText(text); err != nil {
		return "", err
	}

	e.Retrieved = e.Retrieved.UTC().Truncate(time.Microsecond) // as it is stored
	e.DescribeText(text)
	if err := e.Check(); err != nil {
		return "", err
	}

	if s.find(e.Document) != nil {
		return e.Document, nil
	}

	putting := s.putTurn()
	select {
	case putting <- struct{}{}:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { <-putting }()

	n, full := s.room(&e)
	switch {
	case s.find(e.Document) != nil: // by another call meanwhile
		return e.Document, nil
	case full:
		return "", fmt.Errorf("%w: it has %d items, and %d bytes more would be too many", agent.ErrNoRoom, n, e.Bytes)
	}

	if err := s.store.Put(n, &e, text); err != nil {
		return "", fmt.Errorf("storing evidence from %s: %w", e.URI, err)
	}

	s.addItem(e)
	s.hold(e.Document, slices.Clone(text))
	return e.Document, nil
}

// putTurn returns what is full while an item is put.
func (s *Shelf) putTurn() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.putting == nil {
		s.putting = make(chan struct{}, 1)
	}
	return s.putting
}

// Evidence implements agent.EvidenceKeeper.
func (s *Shelf) Evidence() []mapreduce.Evidence {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.items)
}

// EvidenceText implements agent.EvidenceKeeper.
func (s *Shelf) EvidenceText(ctx context.Context, id mapreduce.DocumentID) ([]byte, error) {
	e := s.find(id)
	if e == nil {
		return nil, errs.New(errs.NotFound, "the unit has no evidence %s", id)
	}

	if text := s.heldText(id); text != nil {
		return text, nil
	}

	text, err := s.store.Get(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("text of %s: %w", id, err)
	}
	s.hold(id, text)
	return text, nil
}

// addItem adds an item that is stored.
func (s *Shelf) addItem(e mapreduce.Evidence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items = append(s.items, e)
	s.bytes += e.Bytes
}

// find returns an item, or nil.
func (s *Shelf) find(id mapreduce.DocumentID) *mapreduce.Evidence {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.items, func(e mapreduce.Evidence) bool { return e.Document == id })
	if i < 0 {
		return nil
	}
	e := s.items[i]
	return &e
}

// room returns the number of the next item, and whether there is no room for e.
func (s *Shelf) room(e *mapreduce.Evidence) (n int, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items), len(s.items) >= mapreduce.MaxEvidenceItems || s.bytes+e.Bytes > mapreduce.MaxEvidenceBytes
}

// heldText returns a text that is held, or nil.
func (s *Shelf) heldText(id mapreduce.DocumentID) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.texts[id]
}

// hold keeps a text at hand, and lets go of those that were held longest.
func (s *Shelf) hold(id mapreduce.DocumentID, text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.texts[id] != nil {
		return
	}

	if s.texts == nil {
		s.texts = make(map[mapreduce.DocumentID][]byte)
	}
	s.texts[id], s.recent, s.held = text, append(s.recent, id), s.held+len(text)

	// The last text stays, however large it is.
	for s.held > maxHeld && len(s.recent) > 1 {
		s.held -= len(s.texts[s.recent[0]])
		delete(s.texts, s.recent[0])
		s.recent = s.recent[1:]
	}
}
