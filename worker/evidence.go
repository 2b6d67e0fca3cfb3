package worker

import (
	"context"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/evidence"
)

// openEvidence makes ready what earlier attempts have kept, whose list was fetched.
func (u *unit) openEvidence() (err error) {
	u.Shelf, err = evidence.Open(u.ctx, u.evidenceList, u.task.EvidenceItems, evidenceStore{u})
	u.evidenceList = nil
	return err
}

// An evidenceStore stores evidence of an attempt by the session's transfers.
type evidenceStore struct{ u *unit }

// Put implements evidence.Store.
func (s evidenceStore) Put(number int, e *mapreduce.Evidence, text []byte) error {
	b := mapreduce.Blob{Kind: mapreduce.BlobEvidence, FirstEntry: number, SHA256: e.SHA256, Evidence: e}
	return s.u.session.transfers.Put(s.u.ctx, s.u.attemptHeld(), b, text, 0)
}

// Get implements evidence.Store.
func (s evidenceStore) Get(ctx context.Context, e *mapreduce.Evidence) ([]byte, error) {
	ctx, stop := s.u.attemptContext(ctx)
	defer stop()
	return s.u.session.transfers.Collect(ctx, s.u.attemptHeld(), mapreduce.Blob{
		Kind: mapreduce.BlobEvidence, SHA256: e.SHA256, Length: e.Bytes, Evidence: &mapreduce.Evidence{Document: e.Document},
	})
}
