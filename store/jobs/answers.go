package jobs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
)

// What models answered is kept for other jobs of the same tenant, under the hash
// of all that decides an answer. Each answer carries a hash of its own, over its
// key and its bytes: what does not agree with it is none. They are worth no more
// than the calls that they save, so nothing but TrimAnswers and ClearAnswers
// removes them, and nothing depends on their being there.

// Answer returns what a model answered, nil if that is not known, or if it was
// kept before a time. An answer that is damaged is removed.
func (j *AnswersPart) Answer(ctx context.Context, t mapreduce.TenantID, key []byte, since time.Time) ([]byte, error) {
	var data []byte
	err := j.db.view(ctx, func(tx store.Tx) error {
		data = nil
		a := new(storagev1.Answer)
		found, err := read(ctx, tx, j.keys.Answer(t, key), a)
		if err != nil || !found || a.KeptMicros < since.UnixMicro() {
			return err
		}
		data, err = j.answerBytes(ctx, tx, t, key, a)
		return err
	})
	if errors.Is(err, store.ErrCorrupt) {
		return nil, j.removeAnswer(ctx, t, key)
	}
	return data, err
}

// answerBytes reads the chunks of an answer. The error wraps store.ErrCorrupt if
// they are not what was kept under that key.
func (j answerWriter) answerBytes(ctx context.Context, r store.Reader, t mapreduce.TenantID, key []byte, a *storagev1.Answer) ([]byte, error) {
	pairs, _, err := r.GetRange(ctx, j.keys.AnswerChunks(t, key), store.RangeOptions{})
	if err != nil {
		return nil, err
	}
	var data []byte
	for _, kv := range pairs {
		data = append(data, kv.Value...)
	}
	if sum := answerSum(key, data); int64(len(data)) != a.Length || string(sum[:]) != string(a.Sha256) {
		return nil, corruptError(j.keys.Answer(t, key), "the answer of %d bytes is not that which was kept", a.Length)
	}
	return data, nil
}

// answerSum is the hash of an answer under its key.
func answerSum(key, data []byte) [sha256.Size]byte {
	return sha256.Sum256(append(append(make([]byte, 0, len(key)+len(data)), key...), data...))
}

// KeepAnswer keeps what a model answered. An answer to the same that was kept
// since a time stays: two that asked at once are given the same from then on.
func (j *AnswersPart) KeepAnswer(ctx context.Context, t mapreduce.TenantID, key, data []byte, since time.Time) error {
	if len(key) != sha256.Size || len(data) == 0 || len(data) > mapreduce.MaxAnswer {
		return fmt.Errorf("answer of %d bytes under a key of %d: %w", len(data), len(key), errors.ErrUnsupported)
	}
	now, sum := j.nowMicros(), answerSum(key, data)
	return j.db.updateQuietly(ctx, func(tx store.Tx) error {
		old := new(storagev1.Answer)
		found, err := read(ctx, tx, j.keys.Answer(t, key), old)
		if err != nil || found && old.KeptMicros >= since.UnixMicro() {
			return err
		}
		if found {
			j.clearAnswer(tx, t, key, old)
		}
		tx.Set(j.keys.Answer(t, key), encode(&storagev1.Answer{KeptMicros: now, Length: int64(len(data)), Sha256: sum[:]}))
		for i := 0; i*store.ChunkSize < len(data); i++ {
			tx.Set(j.keys.AnswerChunk(t, key, int64(i)), data[i*store.ChunkSize:min((i+1)*store.ChunkSize, len(data))])
		}
		tx.Set(j.keys.Aged(t, now, key), nil)
		tx.Add(j.keys.Kept(t, keys.KeptAnswers), 1)
		tx.Add(j.keys.Kept(t, keys.KeptBytes), int64(len(data)))
		return nil
	})
}

// clearAnswer removes an answer that was read in the same transaction.
func (j answerWriter) clearAnswer(tx store.Tx, t mapreduce.TenantID, key []byte, a *storagev1.Answer) {
	tx.Clear(j.keys.Answer(t, key))
	tx.ClearRange(j.keys.AnswerChunks(t, key))
	tx.Clear(j.keys.Aged(t, a.KeptMicros, key))
	tx.Add(j.keys.Kept(t, keys.KeptAnswers), -1)
	tx.Add(j.keys.Kept(t, keys.KeptBytes), -a.Length)
}

func (j *AnswersPart) removeAnswer(ctx context.Context, t mapreduce.TenantID, key []byte) error {
	return j.db.updateQuietly(ctx, func(tx store.Tx) error {
		a := new(storagev1.Answer)
		found, err := read(ctx, tx, j.keys.Answer(t, key), a)
		if err == nil && found {
			j.clearAnswer(tx, t, key, a)
		}
		return err
	})
}

// trimmed bounds the answers that one transaction removes.
const trimmed = 100

// TrimAnswers removes a tenant's answers that were kept before a time, and the
// oldest of those that are more than so many bytes together.
func (j *AnswersPart) TrimAnswers(ctx context.Context, t mapreduce.TenantID, most int64, since time.Time) error {
	for more := true; more; {
		err := j.db.updateQuietly(ctx, func(tx store.Tx) (err error) {
			more, err = j.trimAnswers(ctx, tx, t, most, since.UnixMicro())
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// trimAnswers removes some answers, and reports whether there are more to remove.
func (j answerWriter) trimAnswers(ctx context.Context, tx store.Tx, t mapreduce.TenantID, most, since int64) (more bool, err error) {
	size, err := tx.Snapshot().Get(ctx, j.keys.Kept(t, keys.KeptBytes))
	if err != nil {
		return false, err
	}
	oldest, _, err := tx.Snapshot().GetRange(ctx, j.keys.AgedAll(t), store.RangeOptions{Limit: trimmed})
	if err != nil {
		return false, err
	}
	over := decodeCount(size) - most
	for _, kv := range oldest {
		micros, key, err := j.agedKey(kv.Key)
		if err != nil {
			return false, err
		}
		if micros >= since && over <= 0 {
			return false, nil
		}
		a := new(storagev1.Answer)
		found, err := read(ctx, tx, j.keys.Answer(t, key), a)
		if err != nil {
			return false, err
		}
		if !found || a.KeptMicros != micros {
			tx.Clear(kv.Key) // it leads nowhere
			continue
		}
		j.clearAnswer(tx, t, key, a)
		over -= a.Length
	}
	return len(oldest) == trimmed, nil
}

// agedKey reads a key of the list by age.
func (j answerWriter) agedKey(k []byte) (micros int64, key []byte, err error) {
	_, rest, err := j.keys.Last(k)
	if err != nil {
		return 0, nil, err
	}
	rest.Skip()
	micros, key = rest.Int(), rest.Bytes()
	return micros, key, rest.Err()
}

// AnswerTenants returns the tenants that have answers, or had.
func (j *AnswersPart) AnswerTenants(ctx context.Context) ([]mapreduce.TenantID, error) {
	var tenants []mapreduce.TenantID
	err := j.db.view(ctx, func(tx store.Tx) error {
		tenants = nil
		pairs, _, err := tx.Snapshot().GetRange(ctx, j.keys.KeptAll(), store.RangeOptions{})
		if err != nil {
			return err
		}
		for _, kv := range pairs {
			_, rest, err := j.keys.Last(kv.Key)
			if err != nil {
				return err
			}
			if t := mapreduce.TenantID(rest.Text()); len(tenants) == 0 || tenants[len(tenants)-1] != t {
				tenants = append(tenants, t)
			}
		}
		return nil
	})
	return tenants, err
}

// AnswerCache says what answers a tenant has.
func (j *AnswersPart) AnswerCache(ctx context.Context, t mapreduce.TenantID) (c mapreduce.AnswerCache, err error) {
	err = j.db.view(ctx, func(tx store.Tx) error {
		r := tx.Snapshot()
		values, err := r.GetAll(ctx, [][]byte{j.keys.Kept(t, keys.KeptAnswers), j.keys.Kept(t, keys.KeptBytes)})
		if err != nil {
			return err
		}
		c = mapreduce.AnswerCache{Answers: decodeCount(values[0]), Bytes: decodeCount(values[1])}
		oldest, _, err := r.GetRange(ctx, j.keys.AgedAll(t), store.RangeOptions{Limit: 1})
		if err != nil || len(oldest) == 0 {
			return err
		}
		micros, _, err := j.agedKey(oldest[0].Key)
		c.Oldest = time.UnixMicro(micros).UTC()
		return err
	})
	return c, err
}

// ClearAnswers removes all answers of a tenant.
func (j *AnswersPart) ClearAnswers(ctx context.Context, t mapreduce.TenantID) error {
	return j.db.updateQuietly(ctx, func(tx store.Tx) error {
		tx.ClearRange(j.keys.Answers(t))
		tx.ClearRange(j.keys.AgedAll(t))
		tx.Clear(j.keys.Kept(t, keys.KeptAnswers))
		tx.Clear(j.keys.Kept(t, keys.KeptBytes))
		return nil
	})
}
