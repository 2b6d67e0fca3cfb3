package content

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// Answers keeps what models answered, for other jobs of the same tenant.
type Answers struct {
	db *records.DB
	Records
}

// NewAnswers returns the operations on the records of db.
func NewAnswers(db *records.DB) *Answers { return &Answers{db, Records{db.Records()}} }

// Answers of models are kept for other jobs of the same tenant, under the hash
// of all that decides an answer. Each answer carries a hash of its own, over its
// key and its bytes: what does not agree with it is none. They are worth no more
// than the calls that they save, so nothing but Trim and Clear
// removes them, and nothing depends on their being there.

// Get returns what a model answered, nil if that is not known, or if it was
// kept before a time. An answer that is damaged is removed.
func (st *Answers) Get(ctx context.Context, t mapreduce.TenantID, key []byte, since time.Time) ([]byte, error) {
	var data []byte
	err := st.db.View(ctx, func(tx store.Tx) error {
		data = nil
		a := new(storagev1.Answer)
		found, err := records.Read(ctx, tx, st.Keys.Tenant(t).Answer(key), a)
		if err != nil || !found || a.KeptMicros < since.UnixMicro() {
			return err
		}
		data, err = st.AnswerBytes(ctx, tx, t, key, a)
		return err
	})

	if errors.Is(err, store.ErrCorrupt) {
		return nil, st.removeAnswer(ctx, t, key)
	}
	return data, err
}

// AnswerBytes reads the chunks of an answer. The error wraps store.ErrCorrupt if
// they are not what was kept under that key.
func (rec Records) AnswerBytes(ctx context.Context, r store.Reader, t mapreduce.TenantID, key []byte, a *storagev1.Answer) ([]byte, error) {
	pairs, _, err := r.GetRange(ctx, rec.Keys.Tenant(t).AnswerChunks(key), store.RangeOptions{})
	if err != nil {
		return nil, err
	}

	var data []byte
	for _, kv := range pairs {
		data = append(data, kv.Value...)
	}

	if sum := answerSum(key, data); int64(len(data)) != a.Length || string(sum[:]) != string(a.Sha256) {
		return nil, records.CorruptError(rec.Keys.Tenant(t).Answer(key), "the answer of %d bytes is not that which was kept", a.Length)
	}
	return data, nil
}

// answerSum is the hash of an answer under its key.
func answerSum(key, data []byte) [sha256.Size]byte {
	return sha256.Sum256(append(append(make([]byte, 0, len(key)+len(data)), key...), data...))
}

// Keep keeps what a model answered. An answer to the same that was kept
// since a time stays: two that asked at once are given the same from then on.
func (st *Answers) Keep(ctx context.Context, t mapreduce.TenantID, key, data []byte, since time.Time) error {
	if len(key) != sha256.Size || len(data) == 0 || len(data) > protocol.MaxAnswer {
		return fmt.Errorf("answer of %d bytes under a key of %d: %w", len(data), len(key), errors.ErrUnsupported)
	}

	// They are the same in each run of the transaction.
	now, sum := st.NowMicros(), answerSum(key, data)
	return st.db.UpdateQuietly(ctx, func(tx store.Tx) error {
		old := new(storagev1.Answer)
		found, err := records.Read(ctx, tx, st.Keys.Tenant(t).Answer(key), old)
		if err != nil || found && old.KeptMicros >= since.UnixMicro() {
			return err
		}

		if found {
			st.clearAnswer(tx, t, key, old)
		}

		tx.Set(st.Keys.Tenant(t).Answer(key), records.Encode(&storagev1.Answer{KeptMicros: now, Length: int64(len(data)), Sha256: sum[:]}))
		for i := 0; i*store.ChunkSize < len(data); i++ {
			tx.Set(st.Keys.Tenant(t).AnswerChunk(key, int64(i)), data[i*store.ChunkSize:min((i+1)*store.ChunkSize, len(data))])
		}

		tx.Set(st.Keys.Tenant(t).Aged(now, key), nil)
		tx.Add(st.Keys.Tenant(t).Kept(keys.KeptAnswers), 1)
		tx.Add(st.Keys.Tenant(t).Kept(keys.KeptBytes), int64(len(data)))
		return nil
	})
}

// clearAnswer removes an answer that was read in the same transaction.
func (rec Records) clearAnswer(tx store.Tx, t mapreduce.TenantID, key []byte, a *storagev1.Answer) {
	tx.Clear(rec.Keys.Tenant(t).Answer(key))
	tx.ClearRange(rec.Keys.Tenant(t).AnswerChunks(key))
	tx.Clear(rec.Keys.Tenant(t).Aged(a.KeptMicros, key))
	tx.Add(rec.Keys.Tenant(t).Kept(keys.KeptAnswers), -1)
	tx.Add(rec.Keys.Tenant(t).Kept(keys.KeptBytes), -a.Length)
}

func (st *Answers) removeAnswer(ctx context.Context, t mapreduce.TenantID, key []byte) error {
	return st.db.UpdateQuietly(ctx, func(tx store.Tx) error {
		a := new(storagev1.Answer)
		found, err := records.Read(ctx, tx, st.Keys.Tenant(t).Answer(key), a)
		if err == nil && found {
			st.clearAnswer(tx, t, key, a)
		}
		return err
	})
}

// trimmed bounds the answers that one transaction removes.
const trimmed = 100

// Trim removes a tenant's answers that were kept before a time, and the
// oldest of those that are more than so many bytes together.
func (st *Answers) Trim(ctx context.Context, t mapreduce.TenantID, most int64, since time.Time) error {
	for more := true; more; {
		err := st.db.UpdateQuietly(ctx, func(tx store.Tx) (err error) {
			more, err = st.trimAnswers(ctx, tx, t, most, since.UnixMicro())
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// trimAnswers removes some answers, and reports whether there are more to remove.
func (rec Records) trimAnswers(ctx context.Context, tx store.Tx, t mapreduce.TenantID, most, since int64) (more bool, err error) {
	size, err := tx.Snapshot().Get(ctx, rec.Keys.Tenant(t).Kept(keys.KeptBytes))
	if err != nil {
		return false, err
	}
	oldest, _, err := tx.Snapshot().GetRange(ctx, rec.Keys.Tenant(t).AllAged(), store.RangeOptions{Limit: trimmed})
	if err != nil {
		return false, err
	}
	over := records.DecodeCount(size) - most

	for _, kv := range oldest {
		micros, key, err := rec.agedKey(kv.Key)
		if err != nil {
			return false, err
		}
		if micros >= since && over <= 0 {
			return false, nil
		}

		a := new(storagev1.Answer)
		found, err := records.Read(ctx, tx, rec.Keys.Tenant(t).Answer(key), a)
		if err != nil {
			return false, err
		}

		if !found || a.KeptMicros != micros {
			tx.Clear(kv.Key) // it leads nowhere
			continue
		}

		rec.clearAnswer(tx, t, key, a)
		over -= a.Length
	}

	return len(oldest) == trimmed, nil
}

// agedKey reads a key of the list by age.
func (rec Records) agedKey(k []byte) (micros int64, key []byte, err error) {
	_, rest, err := rec.Keys.Last(k)
	if err != nil {
		return 0, nil, err
	}
	rest.Skip()
	micros, key = rest.Int(), rest.Bytes()
	return micros, key, rest.Err()
}

// Tenants returns the tenants that have answers, or had.
func (st *Answers) Tenants(ctx context.Context) ([]mapreduce.TenantID, error) {
	var tenants []mapreduce.TenantID
	err := st.db.View(ctx, func(tx store.Tx) error {
		tenants = nil
		pairs, _, err := tx.Snapshot().GetRange(ctx, st.Keys.AllTenants().Kept(), store.RangeOptions{})
		if err != nil {
			return err
		}

		for _, kv := range pairs {
			_, rest, err := st.Keys.Last(kv.Key)
			if err != nil {
				return err
			}

			// Keys of one tenant stand side by side.
			if t := mapreduce.TenantID(rest.Text()); len(tenants) == 0 || tenants[len(tenants)-1] != t {
				tenants = append(tenants, t)
			}
		}
		return nil
	})
	return tenants, err
}

// Stats says what answers a tenant has.
func (st *Answers) Stats(ctx context.Context, t mapreduce.TenantID) (c mapreduce.AnswerCache, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		r := tx.Snapshot()
		values, err := r.GetAll(ctx, [][]byte{st.Keys.Tenant(t).Kept(keys.KeptAnswers), st.Keys.Tenant(t).Kept(keys.KeptBytes)})
		if err != nil {
			return err
		}
		c = mapreduce.AnswerCache{Answers: records.DecodeCount(values[0]), Bytes: records.DecodeCount(values[1])}

		oldest, _, err := r.GetRange(ctx, st.Keys.Tenant(t).AllAged(), store.RangeOptions{Limit: 1})
		if err != nil || len(oldest) == 0 {
			return err
		}

		micros, _, err := st.agedKey(oldest[0].Key)
		c.Oldest = time.UnixMicro(micros).UTC()
		return err
	})
	return c, err
}

// Clear removes all answers of a tenant.
func (st *Answers) Clear(ctx context.Context, t mapreduce.TenantID) error {
	return st.db.UpdateQuietly(ctx, func(tx store.Tx) error {
		tx.ClearRange(st.Keys.Tenant(t).Answers())
		tx.ClearRange(st.Keys.Tenant(t).AllAged())
		tx.Clear(st.Keys.Tenant(t).Kept(keys.KeptAnswers))
		tx.Clear(st.Keys.Tenant(t).Kept(keys.KeptBytes))
		return nil
	})
}
