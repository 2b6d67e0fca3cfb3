package jobs

import (
	"bytes"
	"context"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
)

// A Put is a large output that is stored under its attempt before the report that
// publishes it. Only the session that holds the attempt may store it.
type Put struct {
	mapreduce.Held
	Session mapreduce.SessionID
	Length  int64  // bytes of the whole output
	SHA256  []byte // of the whole output
}

// MaxPutBytes is how much of an output one transaction stores, in bytes.
const MaxPutBytes = 8 * store.ChunkSize

// Stored returns how many of the first bytes of an output are stored. It returns
// errs.Precondition if the session does not hold the attempt.
func (j *ContentPart) Stored(ctx context.Context, p *Put) (n int64, err error) {
	err = j.db.view(ctx, func(tx store.Tx) error {
		u, err := j.unitOfPut(ctx, tx.Snapshot(), p)
		if err == nil && p.samePut(u.Put) {
			n = u.Put.Stored
		}
		return err
	})
	return n, err
}

// StorePut stores the bytes of an output that begin at start, which follows on what
// is stored and is a multiple of store.ChunkSize: at most MaxPutBytes, and whole
// chunks unless they are the last. Who stores the last has found the hash of the
// whole right. Stored twice they are stored once. An output that is stored whole is
// the attempt's for good: what is checked is what is published.
func (j *ContentPart) StorePut(ctx context.Context, p *Put, start int64, data []byte) error {
	end := start + int64(len(data))
	return j.db.update(ctx, failpoint.Chunk, func(tx store.Tx) error {
		u, err := j.unitOfPut(ctx, tx, p)
		if err != nil {
			return err
		}
		if u.Put != nil && u.Put.Stored == u.Put.Length && !p.samePut(u.Put) { // its report may be being checked
			return errs.New(errs.Precondition, "attempt %d of unit %s has stored another output whole: it cannot change", p.Attempt, p.Unit)
		}
		if !p.samePut(u.Put) { // another output of the same attempt, or none, was being stored
			tx.ClearRange(j.keys.Result(p.Job, p.Unit, u.Attempt))
			u.Put = &storagev1.Put{Length: p.Length, Sha256: p.SHA256}
		}
		switch {
		case u.Put.Stored >= end:
			return nil // by an earlier run of this transaction
		case u.Put.Stored != start:
			return errs.New(errs.Aborted, "the output of unit %s is stored up to byte %d, and is put from byte %d on: go on from the former", p.Unit, u.Put.Stored, start)
		}
		for i := 0; i < len(data); i += store.ChunkSize {
			chunk := data[i:min(i+store.ChunkSize, len(data))]
			tx.Set(j.keys.ResultChunk(p.Job, p.Unit, u.Attempt, (start+int64(i))/store.ChunkSize), bytes.Clone(chunk))
		}
		u.Put.Stored = end
		j.setUnit(tx, p.Job, u)
		return nil
	})
}

// PutParts calls visit with what is stored of an output, up to byte end.
func (j *ContentPart) PutParts(ctx context.Context, p *Put, end int64, visit func(part []byte) error) error {
	r := store.Range{
		Begin: j.keys.ResultChunk(p.Job, p.Unit, int64(p.Attempt), 0),
		End:   j.keys.ResultChunk(p.Job, p.Unit, int64(p.Attempt), chunksOf(end)),
	}
	return j.db.visitChunks(ctx, r, visit)
}

// unitOfPut returns the unit whose attempt a session holds.
func (j contentReader) unitOfPut(ctx context.Context, r store.Reader, p *Put) (*storagev1.Unit, error) {
	u, err := j.readUnit(ctx, r, p.Job, p.Unit)
	if err != nil {
		return nil, err
	}
	if !attemptStands(u, p.Attempt) || u.Session != string(p.Session) {
		return nil, errs.New(errs.Precondition, "session %s does not hold attempt %d of unit %s", p.Session, p.Attempt, p.Unit)
	}
	return u, nil
}

// samePut reports whether what is stored is of p.
func (p *Put) samePut(stored *storagev1.Put) bool {
	return stored != nil && stored.Length == p.Length && bytes.Equal(stored.Sha256, p.SHA256)
}

// Whole reports whether the output that a report names is stored; stored is the
// unit's.
func Whole(stored *storagev1.Put, r *mapreduce.Report) bool {
	return stored != nil && stored.Length == r.Length && stored.Stored == r.Length && bytes.Equal(stored.Sha256, r.SHA256)
}

// chunksOf returns how many chunks so many bytes take.
func chunksOf(length int64) int64 { return (length + store.ChunkSize - 1) / store.ChunkSize }
