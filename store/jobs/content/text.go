package content

import (
	"context"
	"fmt"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
)

// Text returns bytes [start, end) of a document's text.
func (st *Store) Text(ctx context.Context, id mapreduce.JobID, sha []byte, start, end int64) ([]byte, error) {
	if start >= end {
		return nil, nil
	}

	data := newBuffer(end - start)
	err := st.TextParts(ctx, id, TextRange{SHA256: sha, Start: start, End: end}, func(part []byte) error {
		data = append(data, part...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// A TextRange is bytes [Start, End) of the text with a hash.
type TextRange struct {
	SHA256     []byte
	Start, End int64
	Length     int64 // of the whole text; if the range is all of it, its hash is checked. 0 if not known
}

// TextParts calls visit with bytes of a text, part after part, and holds no more than some
// chunks of it at a time. It may find out only after the last part that the whole is
// damaged.
func (st *Store) TextParts(ctx context.Context, id mapreduce.JobID, t TextRange, visit func(part []byte) error) error {
	if t.Start >= t.End {
		return nil
	}

	what := func() string { return fmt.Sprintf("text %x of job %s", t.SHA256, id) }
	from := t.Start / store.ChunkSize
	r := st.Keys.Job(id).Blob(t.SHA256, from, (t.End+store.ChunkSize-1)/store.ChunkSize)

	// Only a whole text can be compared with its hash.
	if t.Start == 0 && t.End == t.Length {
		return st.hashedParts(ctx, r, t.Length, t.SHA256, visit, what)
	}

	at := from * store.ChunkSize
	err := st.db.VisitChunks(ctx, r, func(chunk []byte) error {
		begin, end := max(t.Start-at, 0), min(t.End-at, int64(len(chunk)))
		at += int64(len(chunk))
		if begin >= end {
			return nil
		}
		return visit(chunk[begin:end:end])
	})

	if err == nil && at < t.End {
		err = errs.New(errs.DataLoss, "%s, stored from key %x on, is cut short: byte %d to %d are missing; submit the document again: %w", what(), r.Begin, at, t.End, store.ErrCorrupt)
	}
	return err
}

// MaxTexts is how many texts Texts reads at once, of which each may be of one
// chunk: 4 MiB.
const MaxTexts = 64

// Texts returns short ranges of texts, all read together. A range that spreads
// over chunks, or for which there was no room, is nil: read it by Text.
func (st *Store) Texts(ctx context.Context, id mapreduce.JobID, spans []TextRange) ([][]byte, error) {
	texts := make([][]byte, len(spans))
	var ks [][]byte
	var at []int
	for i, s := range spans {
		chunk := s.Start / store.ChunkSize
		if s.Start >= s.End || (s.End-1)/store.ChunkSize != chunk || len(ks) == MaxTexts {
			continue
		}
		ks = append(ks, st.Keys.Job(id).BlobChunk(s.SHA256, chunk))
		at = append(at, i)
	}

	if len(ks) == 0 {
		return texts, nil
	}

	err := st.db.View(ctx, func(tx store.Tx) error {
		values, err := tx.Snapshot().GetAll(ctx, ks)
		if err != nil {
			return err
		}

		for n, v := range values {
			s := spans[at[n]]
			from := s.Start % store.ChunkSize
			// A chunk that is too short is left to Text, which says what is missing.
			if end := from + s.End - s.Start; end <= int64(len(v)) {
				texts[at[n]] = v[from:end:end]
			}
		}
		return nil
	})

	return texts, err
}
