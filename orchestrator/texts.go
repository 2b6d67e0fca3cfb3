package orchestrator

import (
	"context"
	"fmt"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
)

// textPieceBytes is how much of a text one answer carries. A worker asks for the
// next piece when it has this one, so no more of it waits to be sent.
const textPieceBytes = 512 << 10

// handOut answers requests for the texts of documents that units are chunks of.
// The stream waits for that: its back-pressure is ours.
func (o *Orchestrator) handOut(ctx context.Context, s *session, asked []mapreduce.TextRequest) error {
	for _, q := range asked {
		var p mapreduce.TextPiece
		err := o.lasting(ctx, "reading a text", func() (err error) {
			p, err = o.textPiece(ctx, s, q)
			return err
		})
		if err != nil {
			return err
		}
		s.out.put(&mapreduce.ToWorker{Texts: []mapreduce.TextPiece{p}})
	}
	return nil
}

// textPiece reads a piece of the document of a unit that the session holds, and
// of no other. The error is that of the store; what the worker did wrong is in
// the piece.
func (o *Orchestrator) textPiece(ctx context.Context, s *session, q mapreduce.TextRequest) (mapreduce.TextPiece, error) {
	p := mapreduce.TextPiece{Held: q.Held, Start: q.Start}
	if !o.board.holdsAttempt(s, q.Held) {
		p.Error = "this worker does not hold the unit"
		return p, nil
	}
	u, err := o.jobs.Unit(ctx, q.Job, q.Unit)
	if err != nil {
		return p, err
	}
	if p.Error = refusedText(u, q.Start); p.Error != "" {
		return p, nil
	}
	p.Data, err = o.jobs.Text(ctx, q.Job, u.Source.Sha256, q.Start, min(q.Start+textPieceBytes, u.Source.Length))
	if err != nil && damaged(err) {
		p.Error = err.Error()
		return p, nil
	}
	return p, err
}

// refusedText says why no text of a unit's document is handed out from start on,
// or "".
func refusedText(u *storagev1.Unit, start int64) string {
	src := u.GetSource()
	switch {
	case src == nil || mapreduce.UnitKind(u.Kind) != mapreduce.KindMap:
		return "the unit is no chunk of a document"
	case src.Length > mapreduce.MaxWholeText:
		return fmt.Sprintf("the text has %d bytes; at most %d are handed out", src.Length, mapreduce.MaxWholeText)
	case start < 0 || start >= src.Length:
		return fmt.Sprintf("the text has %d bytes, and none at %d", src.Length, start)
	}
	return ""
}

// holdsAttempt reports whether s was given an attempt and has not lost it.
func (b *board) holdsAttempt(s *session, h mapreduce.Held) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	held := s.held[unitKey{h.Job, h.Unit}]
	return held != nil && held.attempt == h.Attempt
}
