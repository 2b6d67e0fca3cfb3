package check

import (
	"context"
	"crypto/sha256"

	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/check/walk"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/tuple"
)

// A dataCheck checks what the units of a job have stored beside their records: texts,
// results, journals and evidence.
type dataCheck struct{ *jobCheck }

// checkData checks the hash of every text and every result, one document and one
// unit after the other.
func (k *dataCheck) checkData(ctx context.Context) error {
	var page []*storagev1.Unit
	return k.WalkRange(ctx, k.id, k.Keys.Job(k.id).Units(), walk.PageOptions(), func(_ *walk.Look, pairs []store.KeyValue) error {
		page = page[:0]
		for _, kv := range pairs {
			u := new(storagev1.Unit)
			if records.Decode(kv.Key, kv.Value, u) == nil { // else it was found before
				page = append(page, u)
			}
		}

		return nil
	}, func() error {
		for _, u := range page {
			if err := k.ReportDamage(k.id, "text, result, journal or evidence of unit "+u.UnitId, k.dataOf(ctx, u)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (k *dataCheck) dataOf(ctx context.Context, u *storagev1.Unit) error {
	if err := k.checkJournal(ctx, u); err != nil {
		return err
	}
	if err := k.checkEvidence(ctx, u); err != nil {
		return err
	}

	// The text of a document is looked at once, with its first chunk.
	if s := u.Source; s != nil && s.ChunkIndex == 0 {
		err := k.checkHash(ctx, u, k.Keys.Job(k.id).Blob(s.Sha256, 0, keys.MaxChunks), s.Length, s.Sha256, "text")
		if err != nil {
			return err
		}
		k.sums.texts++
		k.sums.textBytes += s.Length
	}

	r := u.Result
	if mapreduce.UnitState(u.Status) != mapreduce.UnitComplete || r == nil {
		return nil
	}

	k.sums.results++
	k.sums.resultBytes += r.Length
	if r.Chunks == 0 {
		sum := sha256.Sum256(r.Inline)
		whole := string(sum[:]) == string(r.Sha256) && r.Length == int64(len(r.Inline))
		if whole {
			return k.verifyOutput(ctx, u)
		}
		return k.Look(ctx, k.id, func(l *walk.Look) error {
			l.Find(k.Keys.Job(k.id).Unit(mapreduce.UnitID(u.UnitId)), "the result of unit %s is not the one that was published: its hash differs", u.UnitId)
			return nil
		})
	}

	// Only an output that is whole is worth looking into.
	wrongs := k.Wrongs
	err := k.checkHash(ctx, u, k.Keys.Outputs(k.id).Result(mapreduce.UnitID(u.UnitId), r.Attempt), r.Length, r.Sha256, "result")
	if err != nil || k.Wrongs > wrongs {
		return err
	}
	return k.verifyOutput(ctx, u)
}

// verifyOutput checks the content of a unit's published output.
func (k *dataCheck) verifyOutput(ctx context.Context, u *storagev1.Unit) error {
	if k.verify == nil || mapreduce.UnitKind(u.Kind) == mapreduce.KindResult { // the ledger has the hash of a result
		return nil
	}

	unit := records.UnitFrom(u)
	data, err := k.content.Output(ctx, k.id, unit)
	if err != nil {
		return k.unlessMoved(ctx, u, err)
	}

	why, err := k.verify(ctx, k.id, unit, data)
	if err != nil {
		return k.unlessMoved(ctx, u, err)
	}
	if why == nil {
		return nil
	}

	return k.viewUnchanged(ctx, u, func(l *walk.Look) error {
		l.Find(k.Keys.Job(k.id).Unit(mapreduce.UnitID(u.UnitId)), "the output of unit %s, attempt %d, is not one that a unit can have: %v; "+
			"delete the job and submit it again", u.UnitId, u.Attempt, why)
		return nil
	})
}

// unlessMoved returns err, unless u has changed meanwhile.
func (k *dataCheck) unlessMoved(ctx context.Context, u *storagev1.Unit, err error) error {
	moved := true
	if e := k.viewUnchanged(ctx, u, func(*walk.Look) error { moved = false; return nil }); e != nil || moved {
		return e
	}
	return err
}

// viewUnchanged looks at the store if u is there as it was.
func (k *dataCheck) viewUnchanged(ctx context.Context, u *storagev1.Unit, do func(*walk.Look) error) error {
	return k.Look(ctx, k.id, func(l *walk.Look) error {
		now, err := k.Units.Read(ctx, l, k.id, mapreduce.UnitID(u.UnitId))
		if err != nil || now == nil || now.Attempt != u.Attempt || now.Status != u.Status {
			return err
		}
		return do(l)
	})
}

// checkJournals finds entries of journals whose units have none.
func (k *dataCheck) checkJournals(ctx context.Context) error {
	return k.checkOwners(ctx, k.Keys.Outputs(k.id).AllJournals(), "the entry is of the journal", func(u *storagev1.Unit) bool { return u.GetJournal() != nil })
}

// checkEvidences finds evidence of units that have none.
func (k *dataCheck) checkEvidences(ctx context.Context) error {
	return k.checkOwners(ctx, k.Keys.Outputs(k.id).AllEvidence(), "the evidence is", func(u *storagev1.Unit) bool { return u.GetEvidence() != nil })
}

// checkOwners finds entries of a range, each below the name of its unit, whose units do
// not have them by their records.
func (k *dataCheck) checkOwners(ctx context.Context, r store.Range, entry string, has func(*storagev1.Unit) bool) error {
	return k.visitHeads(ctx, r, 1, func(l *walk.Look, key []byte, rest tuple.Reader) error {
		name := mapreduce.UnitID(rest.Text())
		u, err := k.Units.Read(ctx, l, k.id, name)
		if err == nil && !has(u) {
			l.Find(key, "%s of unit %q, which is not there, or has none; "+deleteRemoves, entry, name)
		}
		return err
	})
}

// checkHash checks the chunks of r, and reports a fault unless u has changed meanwhile.
func (k *dataCheck) checkHash(ctx context.Context, u *storagev1.Unit, r store.Range, length int64, want []byte, what string) error {
	h := sha256.New()
	got, next, broken := int64(0), int64(0), false

	for more := true; more; {
		var page []store.KeyValue
		err := k.Look(ctx, k.id, func(l *walk.Look) (err error) {
			page, more, err = l.GetRange(ctx, r, store.RangeOptions{Limit: 16})
			return err
		})
		if err != nil {
			return err
		}

		for _, kv := range page {
			// Every chunk but the last is full.
			broken = broken || lastIndex(kv.Key, k.Keys) != next || (got%store.ChunkSize != 0)
			next++
			got += int64(len(kv.Value))
			h.Write(kv.Value)
		}

		if more = more && len(page) > 0; more {
			r.Begin = store.Single(page[len(page)-1].Key).End
		}
	}

	chunks := u.Result.GetChunks()
	if what == "text" {
		chunks = (length + store.ChunkSize - 1) / store.ChunkSize
	}

	if !broken && got == length && next == chunks && string(h.Sum(nil)) == string(want) {
		return nil
	}

	return k.viewUnchanged(ctx, u, func(l *walk.Look) error {
		l.Find(r.Begin, "the %s of unit %s is not what was stored: %d of %d bytes in %d of %d chunks, or its hash differs; "+
			"submit the document again", what, u.UnitId, got, length, next, chunks)
		return nil
	})
}

// lastIndex returns the last element of the key of a chunk, or -1.
func lastIndex(key []byte, space *keys.Space) int64 {
	name, rest, err := space.Last(key)
	if err != nil {
		return -1
	}

	// Skips what stands before the index in the keys of each kind.
	for range map[string]int{"result": 3, "blob": 2, "evidence": 3}[name] {
		rest.Skip()
	}

	i := rest.Int()
	if rest.Done() != nil {
		return -1
	}
	return i
}
