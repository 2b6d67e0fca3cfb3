// Package content stores and reads what is kept in chunks: outputs, journals of units,
// and texts; and what models answered, for other jobs of the same tenant.
package content

import (
	"bytes"
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A Put is a large output that is stored under its attempt before the report that
// publishes it. Only the session that holds the attempt may store it.
type Put struct {
	protocol.Held
	Session mapreduce.SessionID
	Length  int64  // bytes of the whole output
	SHA256  []byte // of the whole output
}

// MaxPutBytes is how much of an output one transaction stores, in bytes.
const MaxPutBytes = 8 * store.ChunkSize

// Stored returns how many of the first bytes of an output are stored. It returns
// errs.Precondition if the session does not hold the attempt.
func (st *Store) Stored(ctx context.Context, p *Put) (n int64, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		u, err := st.heldUnit(ctx, tx.Snapshot(), p.Held, p.Session)
		if err == nil && p.samePut(u.Put) {
			n = u.Put.Stored
		}
		return err
	})
	return n, err
}

// StorePut stores the bytes of an output that begin at start, which follows on what is
// stored and is a multiple of store.ChunkSize: at most MaxPutBytes, and whole chunks unless
// they are the last. The caller has checked the hash of the whole before it stores the last
// of them. Bytes may be stored twice. An output that is stored whole is the attempt's for
// good: what is checked is what is published.
func (st *Store) StorePut(ctx context.Context, p *Put, start int64, data []byte) error {
	end := start + int64(len(data))
	return st.db.Update(ctx, failpoint.Chunk, func(tx store.Tx) error {
		u, err := st.heldUnit(ctx, tx, p.Held, p.Session)
		if err != nil {
			return err
		}

		if u.Put != nil && u.Put.Stored == u.Put.Length && !p.samePut(u.Put) { // its report may be being checked
			return errs.New(errs.Precondition, "attempt %d of unit %s has stored another output whole: it cannot change", p.Attempt, p.Unit)
		}
		if !p.samePut(u.Put) { // another output of the same attempt, or none, was being stored
			tx.ClearRange(st.Keys.Outputs(p.Job).Result(p.Unit, u.Attempt))
			u.Put = &storagev1.Put{Length: p.Length, Sha256: p.SHA256}
		}

		switch {
		case u.Put.Stored >= end:
			return nil // by an earlier run of this transaction
		case u.Put.Stored != start:
			return errs.New(errs.Aborted, "the output of unit %s is stored up to byte %d, and is put from byte %d on: go on from the former", p.Unit, u.Put.Stored, start)
		}

		st.Units.SetOutput(tx, p.Job, p.Unit, u.Attempt, start, data)
		u.Put.Stored = end
		st.Units.Set(tx, p.Job, u)
		return nil
	})
}

// AppendPut stores the next bytes of an output that is put while it is made, so that its
// length and hash are not known before: from byte start on, which follows on what is stored
// and is a multiple of store.ChunkSize, at most MaxPutBytes, and whole chunks unless they
// are the last. With the last, p has the length and the hash of the whole; a report that
// names these publishes it. Bytes may be stored twice.
func (st *Store) AppendPut(ctx context.Context, p *Put, start int64, data []byte) error {
	end := start + int64(len(data))
	return st.db.Update(ctx, failpoint.Assemble, func(tx store.Tx) error {
		u, err := st.heldUnit(ctx, tx, p.Held, p.Session)
		switch {
		case err != nil:
			return err
		case u.Put.GetStored() == end && bytes.Equal(u.Put.GetSha256(), p.SHA256):
			return nil // by an earlier run of this transaction
		case u.Put.GetStored() != start:
			return errs.New(errs.Internal, "the output of unit %s is stored up to byte %d, and goes on from byte %d", p.Unit, u.Put.GetStored(), start)
		}

		st.Units.SetOutput(tx, p.Job, p.Unit, u.Attempt, start, data)
		u.Put = &storagev1.Put{Length: end, Stored: end, Sha256: p.SHA256}
		st.Units.Set(tx, p.Job, u)
		return nil
	})
}

// PutParts calls visit with what is stored of an output, up to byte end.
func (st *Store) PutParts(ctx context.Context, p *Put, end int64, visit func(part []byte) error) error {
	r := store.Range{
		Begin: st.Keys.Outputs(p.Job).ResultChunk(p.Unit, int64(p.Attempt), 0),
		End:   st.Keys.Outputs(p.Job).ResultChunk(p.Unit, int64(p.Attempt), records.ChunksOf(end)),
	}
	return st.db.VisitChunks(ctx, r, visit)
}

// heldUnit returns the unit that an attempt is at which stands, and which a session
// holds. Any other is refused as errs.Precondition.
func (rec Records) heldUnit(ctx context.Context, r store.Reader, h protocol.Held, s mapreduce.SessionID) (*storagev1.Unit, error) {
	u, err := rec.Units.Read(ctx, r, h.Job, h.Unit)
	if err != nil {
		return nil, err
	}
	if !records.AttemptStands(u, h.Attempt) || u.Session != string(s) {
		return nil, errs.New(errs.Precondition, "session %s does not hold attempt %d of unit %s", s, h.Attempt, h.Unit)
	}
	return u, nil
}

// samePut reports whether what is stored is of p.
func (p *Put) samePut(stored *storagev1.Put) bool {
	return stored != nil && stored.Length == p.Length && bytes.Equal(stored.Sha256, p.SHA256)
}
