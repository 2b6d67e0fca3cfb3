package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
)

var _ agent.EvidenceKeeper = (*unit)(nil)

// An evidenceShelf is the evidence of a unit, as one attempt has it.
type evidenceShelf struct {
	putting chan struct{} // full while an item is put: items are numbered

	mu     sync.Mutex // guards the variables below
	items  []mapreduce.Evidence
	bytes  int64 // of all texts
	texts  map[mapreduce.DocumentID][]byte
	recent []mapreduce.DocumentID // of texts, the latest last
	held   int                    // bytes of texts
}

// maxHeldEvidence is how many bytes of texts of evidence an attempt holds, beside the last:
// a worker may run a thousand agents. Others are fetched when they are asked for.
const maxHeldEvidence = 256 << 10

// openEvidence makes ready what earlier attempts have kept, whose list was fetched. What
// the unit of another job has, which this one repeats, becomes the unit's own.
func (u *unit) openEvidence() error {
	u.evidence.putting = make(chan struct{}, 1)
	if len(u.evidenceList) == 0 {
		return nil
	}
	var all []mapreduce.Evidence
	if err := json.Unmarshal(u.evidenceList, &all); err != nil {
		return err
	}
	u.evidenceList = nil
	own := u.task.EvidenceItems
	if own > len(all) {
		return errs.New(errs.DataLoss, "the list has %d items, of which %d are the unit's own", len(all), own)
	}
	for _, e := range all[len(all)-own:] {
		u.evidence.addItem(e)
	}
	for _, e := range all[:len(all)-own] {
		if u.evidence.find(e.Document) != nil {
			continue
		}
		text, err := u.fetchEvidence(u.ctx, &e)
		if err != nil {
			return err
		}
		if _, err := u.KeepEvidence(u.ctx, e, text); err != nil {
			return err
		}
	}
	return nil
}

// KeepEvidence implements agent.EvidenceKeeper. A put goes on after ctx has ended, as long
// as the attempt does: the next item has the next number.
func (u *unit) KeepEvidence(ctx context.Context, e mapreduce.Evidence, text []byte) (mapreduce.DocumentID, error) {
	if !utf8.Valid(text) {
		return "", errs.Field("evidence", "the text of %s is not UTF-8", e.URI)
	}
	e.Retrieved = e.Retrieved.UTC().Truncate(time.Microsecond) // as it is stored
	e.DescribeText(text)
	if err := e.Check(); err != nil {
		return "", err
	}
	s := &u.evidence
	if s.find(e.Document) != nil {
		return e.Document, nil
	}
	if err := enterRoom(ctx, s.putting); err != nil {
		return "", err
	}
	defer func() { <-s.putting }()
	n, full := s.room(&e)
	switch {
	case s.find(e.Document) != nil: // by another call meanwhile
		return e.Document, nil
	case full:
		return "", fmt.Errorf("%w: it has %d items, and %d bytes more would be too many", agent.ErrNoRoom, n, e.Bytes)
	}
	b := mapreduce.Blob{Kind: mapreduce.BlobEvidence, FirstEntry: n, SHA256: e.SHA256, Evidence: &e}
	if err := u.session.transfers.put(u.ctx, u.attemptHeld(), b, text, 0); err != nil {
		return "", fmt.Errorf("storing evidence from %s: %w", e.URI, err)
	}
	s.addItem(e)
	s.hold(e.Document, slices.Clone(text))
	return e.Document, nil
}

// Evidence implements agent.EvidenceKeeper.
func (u *unit) Evidence() []mapreduce.Evidence {
	u.evidence.mu.Lock()
	defer u.evidence.mu.Unlock()
	return slices.Clone(u.evidence.items)
}

// EvidenceText implements agent.EvidenceKeeper.
func (u *unit) EvidenceText(ctx context.Context, id mapreduce.DocumentID) ([]byte, error) {
	e := u.evidence.find(id)
	if e == nil {
		return nil, errs.New(errs.NotFound, "the unit has no evidence %s", id)
	}
	if text := u.evidence.heldText(id); text != nil {
		return text, nil
	}
	ctx, stop := u.attemptContext(ctx)
	defer stop()
	text, err := u.fetchEvidence(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("text of %s: %w", id, err)
	}
	u.evidence.hold(id, text)
	return text, nil
}

// fetchEvidence gets the text of evidence.
func (u *unit) fetchEvidence(ctx context.Context, e *mapreduce.Evidence) ([]byte, error) {
	return u.collectBlob(ctx, mapreduce.Blob{
		Kind: mapreduce.BlobEvidence, SHA256: e.SHA256, Length: e.Bytes, Evidence: &mapreduce.Evidence{Document: e.Document},
	})
}

// addItem adds an item that is stored.
func (s *evidenceShelf) addItem(e mapreduce.Evidence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items = append(s.items, e)
	s.bytes += e.Bytes
}

// find returns an item, or nil.
func (s *evidenceShelf) find(id mapreduce.DocumentID) *mapreduce.Evidence {
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
func (s *evidenceShelf) room(e *mapreduce.Evidence) (n int, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.items), len(s.items) >= mapreduce.MaxEvidenceItems || s.bytes+e.Bytes > mapreduce.MaxEvidenceBytes
}

// heldText returns a text that is held, or nil.
func (s *evidenceShelf) heldText(id mapreduce.DocumentID) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.texts[id]
}

// hold keeps a text at hand, and lets go of those that were held longest.
func (s *evidenceShelf) hold(id mapreduce.DocumentID, text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.texts[id] != nil {
		return
	}
	if s.texts == nil {
		s.texts = make(map[mapreduce.DocumentID][]byte)
	}
	s.texts[id], s.recent, s.held = text, append(s.recent, id), s.held+len(text)
	for s.held > maxHeldEvidence && len(s.recent) > 1 {
		s.held -= len(s.texts[s.recent[0]])
		delete(s.texts, s.recent[0])
		s.recent = s.recent[1:]
	}
}
