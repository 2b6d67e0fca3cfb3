package content

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// maxAhead bounds the memory that is set aside before anything is read, in bytes: the
// length that a record states may be wrong.
const maxAhead = 64 << 20

// newBuffer returns a buffer for data whose record states this length. A damaged record
// may state any length.
func newBuffer(length int64) []byte { return make([]byte, 0, min(max(length, 0), maxAhead)) }

// Output returns the published output of a unit.
func (st *Store) Output(ctx context.Context, id mapreduce.JobID, u *records.Unit) ([]byte, error) {
	res := u.Result
	if res == nil {
		return nil, nil
	}
	if res.Chunks == 0 {
		return res.Inline, nil
	}

	data := newBuffer(res.Length)
	err := st.OutputParts(ctx, id, u, func(part []byte) error {
		data = append(data, part...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// OutputRange returns bytes [from, to) of the published output of a unit, and reads no
// more than the chunks that have them. It checks no hash.
func (st *Store) OutputRange(ctx context.Context, id mapreduce.JobID, u *records.Unit, from, to int64) ([]byte, error) {
	res := u.Published()
	switch {
	case from < 0 || from > to || res.Chunks == 0 && to > int64(len(res.Inline)):
		return nil, errs.New(errs.DataLoss, "bytes %d to %d are asked of the output of unit %s of job %s, which has not as many", from, to, u.ID, id)
	case from == to:
		return nil, nil
	case res.Chunks == 0:
		return res.Inline[from:to], nil
	}

	first := from / store.ChunkSize
	r := store.Range{
		Begin: st.Keys.Outputs(id).ResultChunk(u.ID, res.Attempt, first),
		End:   st.Keys.Outputs(id).ResultChunk(u.ID, res.Attempt, records.ChunksOf(to)),
	}

	data := newBuffer(to - from)
	at := first * store.ChunkSize
	err := st.db.VisitChunks(ctx, r, func(part []byte) error {
		begin, end := max(from-at, 0), min(to-at, int64(len(part)))
		if at += int64(len(part)); begin < end {
			data = append(data, part[begin:end]...)
		}
		return nil
	})

	if err == nil && int64(len(data)) != to-from {
		err = errs.New(errs.DataLoss, "the output of unit %s of job %s, stored from key %x on, is cut short: %w", u.ID, id, r.Begin, store.ErrCorrupt)
	}
	return data, err
}

// OutputParts calls visit with the published output of a unit, part after part, and holds
// no more than some chunks of it at a time. It may find out only after the last part that
// the whole is damaged.
func (st *Store) OutputParts(ctx context.Context, id mapreduce.JobID, u *records.Unit, visit func(part []byte) error) error {
	res := u.Result
	if res == nil {
		return visit(nil)
	}
	if res.Chunks == 0 {
		return visit(res.Inline)
	}

	r := st.Keys.Outputs(id).Result(u.ID, res.Attempt)
	tooLong := res.Length > protocol.MaxOutput && u.Kind != mapreduce.KindResult // which is never held as a whole
	if res.Length <= 0 || tooLong || res.Chunks != records.ChunksOf(res.Length) {
		return records.CorruptError(r.Begin, "result of unit %s of job %s, attempt %d: %d bytes in %d chunks", u.ID, id, res.Attempt, res.Length, res.Chunks)
	}

	return st.hashedParts(ctx, r, res.Length, res.SHA256, visit, func() string {
		return fmt.Sprintf("the output of unit %s of job %s, attempt %d", u.ID, id, res.Attempt)
	})
}

// hashedParts visits chunks that together have a length and a hash. It visits no
// more than these bytes, whatever is there.
func (st *Store) hashedParts(ctx context.Context, r store.Range, length int64, sha []byte, visit func([]byte) error, what func() string) error {
	sum, got := sha256.New(), int64(0)
	damaged := func(how string) error {
		return errs.New(errs.DataLoss, "%s, stored from key %x on, is damaged: %s; submit the document again: %w", what(), r.Begin, how, store.ErrCorrupt)
	}

	err := st.db.VisitChunks(ctx, r, func(part []byte) error {
		sum.Write(part)
		// The sum is checked first: no more bytes than the record has are handed on.
		if got += int64(len(part)); got > length {
			return damaged(fmt.Sprintf("there are more than its %d bytes", length))
		}
		return visit(part)
	})

	switch {
	case err != nil:
		return err
	case got != length:
		return damaged(fmt.Sprintf("%d of its %d bytes are there", got, length))
	case !bytes.Equal(sum.Sum(nil), sha):
		return damaged("its hash differs")
	}
	return nil
}

// Reported returns the output that a report names, as far as it is stored, of an attempt
// that has published nothing yet.
func (st *Store) Reported(ctx context.Context, r *protocol.Report) ([]byte, error) {
	return st.Output(ctx, r.Job, &records.Unit{ID: r.Unit, Result: &records.Result{
		Attempt: int64(r.Attempt), Inline: r.Output, Chunks: records.ChunksOf(r.Length), Length: r.Length, SHA256: r.SHA256,
	}})
}
