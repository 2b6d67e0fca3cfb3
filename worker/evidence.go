package worker

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/evidence"
)

// openEvidence makes ready what earlier attempts have kept, whose list was fetched.
func (a *attempt) openEvidence() (err error) {
	a.calls.Shelf, err = evidence.Open(a.ctx, a.evidence, a.task.EvidenceItems, evidenceStore{a.calls})
	a.evidence = nil
	return err
}

// An evidenceStore stores evidence of an attempt by the session's transfers.
type evidenceStore struct{ calls *calls }

// Put implements evidence.Store.
func (s evidenceStore) Put(number int, e *mapreduce.Evidence, text []byte) error {
	b := protocol.Blob{Kind: protocol.BlobEvidence, FirstEntry: number, SHA256: e.SHA256, Evidence: e}
	return s.calls.session.transfers.Put(s.calls.ctx, s.calls.held, b, text, 0)
}

// Get implements evidence.Store.
func (s evidenceStore) Get(ctx context.Context, e *mapreduce.Evidence) ([]byte, error) {
	ctx, stop := s.calls.attemptContext(ctx)
	defer stop()
	return s.calls.session.transfers.Collect(ctx, s.calls.held, protocol.Blob{
		Kind: protocol.BlobEvidence, SHA256: e.SHA256, Length: e.Bytes, Evidence: &mapreduce.Evidence{Document: e.Document},
	})
}
