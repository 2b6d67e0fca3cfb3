package scripted

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent"
)

var _ agent.EvidenceKeeper = (*Keeper)(nil)

// A Keeper keeps evidence in memory, within the bounds that a worker's has. Its zero value
// is empty. It is safe for concurrent use.
type Keeper struct {
	mu    sync.Mutex // guards the variables below
	kept  []mapreduce.Evidence
	texts map[mapreduce.DocumentID][]byte
	bytes int64
}

// KeepEvidence implements agent.EvidenceKeeper.
func (k *Keeper) KeepEvidence(ctx context.Context, e mapreduce.Evidence, text []byte) (mapreduce.DocumentID, error) {
	e.DescribeText(text)
	if err := errors.Join(e.CheckText(text), e.Check()); err != nil {
		return "", err
	}

	k.mu.Lock()
	defer k.mu.Unlock()

	_, known := k.texts[e.Document]
	switch {
	case known:
		return e.Document, nil
	case len(k.kept) == mapreduce.MaxEvidenceItems || k.bytes+e.Bytes > mapreduce.MaxEvidenceBytes:
		return "", agent.ErrNoRoom
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case k.texts == nil:
		k.texts = make(map[mapreduce.DocumentID][]byte)
	}

	k.kept, k.bytes = append(k.kept, e), k.bytes+e.Bytes
	k.texts[e.Document] = slices.Clone(text)
	return e.Document, nil
}

// Evidence implements agent.EvidenceKeeper.
func (k *Keeper) Evidence() []mapreduce.Evidence {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.kept)
}

// EvidenceText implements agent.EvidenceKeeper.
func (k *Keeper) EvidenceText(_ context.Context, id mapreduce.DocumentID) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	text, ok := k.texts[id]
	if !ok {
		return nil, errs.New(errs.NotFound, "the unit has no evidence %s", id)
	}
	return text, nil
}
