package content

import (
	"bytes"
	"context"
	"crypto/sha256"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A JournalAppend adds entries to the journal of a unit. Only the session that holds
// the attempt may do so.
type JournalAppend struct {
	protocol.Held
	Session mapreduce.SessionID
	First   int      // number of the first of Entries
	Entries [][]byte // encoded, of protocol.MaxJournalAppend bytes together at most
	Kept    bool     // the journal stays when the unit is complete
}

// AppendJournal stores the entries of a. These things might happen:
//  1. nil: they are stored, now or by an earlier run of the same append;
//  2. errs.Precondition: the session does not hold the attempt, or other entries have
//     these numbers, or one before them is missing;
//  3. errs.Invalid: the journal would have too many entries, or bytes.
func (st *Store) AppendJournal(ctx context.Context, a *JournalAppend) error {
	return st.db.Update(ctx, failpoint.Journal, func(tx store.Tx) error {
		u, err := st.heldUnit(ctx, tx, a.Held, a.Session)
		if err != nil {
			return err
		}

		if u.Journal == nil {
			u.Journal = new(storagev1.Journal)
		}
		if int64(a.First) > u.Journal.Entries {
			return errs.New(errs.Precondition, "the journal of unit %s has %d entries, and %d is the next that is put", a.Unit, u.Journal.Entries, a.First)
		}

		known := u.Journal.Entries
		for i, entry := range a.Entries {
			n := int64(a.First + i)
			if n < known {
				err = st.compareEntry(ctx, tx, a, n, entry)
			} else {
				err = st.appendEntry(tx, a, u.Journal, entry)
			}
			if err != nil {
				return err
			}
		}

		if u.Journal.Entries == known {
			return nil // by an earlier run of this transaction
		}

		u.Journal.Kept = a.Kept
		st.Units.Set(tx, a.Job, u)
		return nil
	})
}

// appendEntry writes the next entry of a journal.
func (st *Store) appendEntry(tx store.Tx, a *JournalAppend, to *storagev1.Journal, entry []byte) error {
	switch {
	case to.Entries >= protocol.MaxJournalEntries:
		return errs.New(errs.Invalid, "the journal of unit %s has %d entries: no more are kept", a.Unit, to.Entries)
	case to.Bytes+int64(len(entry)) > protocol.MaxJournalBytes:
		return errs.New(errs.Invalid, "the journal of unit %s would have %d bytes; at most %d are kept",
			a.Unit, to.Bytes+int64(len(entry)), protocol.MaxJournalBytes)
	case len(entry) == 0:
		return errs.New(errs.Invalid, "an entry of the journal of unit %s is empty", a.Unit)
	}

	for i := 0; i < len(entry); i += store.ChunkSize {
		chunk := entry[i:min(i+store.ChunkSize, len(entry))]
		tx.Set(st.Keys.Outputs(a.Job).JournalChunk(a.Unit, to.Entries, int64(i/store.ChunkSize)), bytes.Clone(chunk))
	}

	to.Entries++
	to.Bytes += int64(len(entry))
	to.Sha256 = chainEntry(to.Sha256, entry)
	return nil
}

// chainEntry returns the chain over the entries of a journal with one more.
func chainEntry(chain, entry []byte) []byte {
	h := sha256.New()
	h.Write(chain)
	h.Write(entry)
	return h.Sum(nil)
}

// compareEntry refuses an entry whose number another one has.
func (st *Store) compareEntry(ctx context.Context, tx store.Tx, a *JournalAppend, n int64, entry []byte) error {
	pairs, _, err := tx.GetRange(ctx, st.Keys.Outputs(a.Job).JournalEntries(a.Unit, n, n+1), store.RangeOptions{})
	if err != nil {
		return err
	}

	var had []byte
	for _, kv := range pairs {
		had = append(had, kv.Value...)
	}

	if !bytes.Equal(had, entry) {
		return errs.New(errs.Precondition, "entry %d of the journal of unit %s is there, and is another: no entry is changed", n, a.Unit)
	}
	return nil
}

// Journal returns the entries of a unit's journal, encoded, as far as the unit's
// record u counts them.
func (st *Store) Journal(ctx context.Context, id mapreduce.JobID, u *records.Unit) ([][]byte, error) {
	if u == nil || u.Journal == nil {
		return nil, nil
	}
	entries, err := st.ReadJournal(ctx, id, u)
	if err == nil && !WholeJournal(u.Journal, entries) {
		err = records.CorruptError(st.Keys.Outputs(id).JournalChunk(u.ID, 0, 0),
			"the entries of the journal of unit %s are not the %d that were stored", u.ID, u.Journal.Entries)
	}
	return entries, err
}

// WholeJournal reports whether entries are those that a record counts.
func WholeJournal(u *records.Journal, entries [][]byte) bool {
	return isChain(entries, u.Entries, u.SHA256)
}

// isChain reports whether there are so many entries, and their chain ends in sum.
func isChain(entries [][]byte, count int64, sum []byte) bool {
	var chain []byte
	for _, e := range entries {
		chain = chainEntry(chain, e)
	}
	return int64(len(entries)) == count && bytes.Equal(chain, sum)
}

// ReadJournal reads what is there of a journal, of which u is the unit's record. An
// entry that is missing is empty.
func (st *Store) ReadJournal(ctx context.Context, id mapreduce.JobID, u *records.Unit) (entries [][]byte, err error) {
	r := st.Keys.Outputs(id).JournalEntries(u.ID, 0, u.Journal.Entries)
	if n := u.Journal.Entries; n < 0 || n > protocol.MaxJournalEntries {
		return nil, records.CorruptError(r.Begin, "unit %s has a journal of %d entries", u.ID, n)
	}

	for more := true; more; {
		var pairs []store.KeyValue
		err := st.db.View(ctx, func(tx store.Tx) (err error) {
			pairs, more, err = tx.Snapshot().GetRange(ctx, r, store.RangeOptions{Bytes: journalBytes})
			return err
		})
		if err != nil {
			return nil, err
		}

		for _, kv := range pairs {
			n, err := st.entryOfKey(kv.Key)
			if err != nil {
				return nil, err
			}

			// An entry that is missing stays empty.
			for int64(len(entries)) <= n && n < u.Journal.Entries {
				entries = append(entries, nil)
			}
			entries[n] = append(entries[n], kv.Value...)
		}

		if more {
			r.Begin = store.Single(pairs[len(pairs)-1].Key).End
		}
	}

	return entries, nil
}

// journalBytes is how much of a journal is read at a time.
const journalBytes = 512 << 10

// entryOfKey returns the number of the entry that a key holds a chunk of.
func (st *Store) entryOfKey(key []byte) (int64, error) {
	_, rest, err := st.Keys.Last(key)
	if err != nil {
		return 0, err
	}
	rest.Skip() // the job
	rest.Skip() // the unit
	n := rest.Int()
	return n, rest.Err()
}
