package content

import (
	"bytes"
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// An EvidencePut adds an item to the evidence of a unit. Only the session that holds the
// attempt may do so.
type EvidencePut struct {
	protocol.Held
	Session mapreduce.SessionID
	Number  int                // of the item
	Item    mapreduce.Evidence // which was checked, and describes the text
}

// PutEvidence stores an item with its text: in parts, the last of them with the item, so
// that an item is there whole or not at all. These things might happen:
//  1. nil: it is stored, now or by an earlier put of the same item;
//  2. errs.Precondition: the session does not hold the attempt, another item has the
//     number, or one before it is missing;
//  3. errs.Invalid: the unit would have too many items, or bytes.
func (st *Store) PutEvidence(ctx context.Context, p *EvidencePut, text []byte) error {
	for stored := int64(0); stored < int64(len(text)); {
		err := st.db.Update(ctx, failpoint.Evidence, func(tx store.Tx) (err error) {
			stored, err = st.putEvidencePart(ctx, tx, p, text)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// putEvidencePart stores the part of a text that follows on what is stored of it, and
// returns how much of it is stored then.
func (st *Store) putEvidencePart(ctx context.Context, tx store.Tx, p *EvidencePut, text []byte) (stored int64, err error) {
	u, err := st.heldUnit(ctx, tx, p.Held, p.Session)
	if err != nil {
		return 0, err
	}
	if u.Evidence == nil {
		u.Evidence = new(storagev1.EvidenceSum)
	}

	sum, n := u.Evidence, int64(p.Number)
	switch {
	case n < sum.Items:
		return int64(len(text)), st.compareEvidence(ctx, tx, p)
	case n > sum.Items:
		return 0, errs.New(errs.Precondition, "unit %s has %d items of evidence, and %d is the next that is put", p.Unit, sum.Items, n)
	case n >= mapreduce.MaxEvidenceItems:
		return 0, errs.New(errs.Invalid, "unit %s has %d items of evidence: no more are kept", p.Unit, n)
	case sum.Bytes+p.Item.Bytes > mapreduce.MaxEvidenceBytes:
		return 0, errs.New(errs.Invalid, "the evidence of unit %s would have %d bytes; at most %d are kept", p.Unit, sum.Bytes+p.Item.Bytes, mapreduce.MaxEvidenceBytes)
	}

	if next := sum.Next; next == nil || next.Length != p.Item.Bytes || !bytes.Equal(next.Sha256, p.Item.SHA256) {
		tx.ClearRange(st.Keys.Outputs(p.Job).EvidenceFrom(p.Unit, n)) // another was being stored, or none
		sum.Next = &storagev1.Put{Length: p.Item.Bytes, Sha256: p.Item.SHA256}
	}

	start := sum.Next.Stored
	end := min(start+MaxPutBytes, int64(len(text)))
	for at := start; at < end; at += store.ChunkSize {
		tx.Set(st.Keys.Outputs(p.Job).EvidenceChunk(p.Unit, n, at/store.ChunkSize), bytes.Clone(text[at:min(at+store.ChunkSize, end)]))
	}

	sum.Next.Stored = end
	if end == int64(len(text)) {
		item := records.Encode(records.StoredEvidence(&p.Item))
		tx.Set(st.Keys.Outputs(p.Job).Evidence(p.Unit, n), item)
		sum.Items, sum.Bytes, sum.Sha256, sum.Next = n+1, sum.Bytes+end, chainEntry(sum.Sha256, item), nil
	}

	st.Units.Set(tx, p.Job, u)
	return end, nil
}

// compareEvidence refuses an item whose number another one has.
func (st *Store) compareEvidence(ctx context.Context, tx store.Tx, p *EvidencePut) error {
	had := new(storagev1.Evidence)
	if _, err := records.Read(ctx, tx, st.Keys.Outputs(p.Job).Evidence(p.Unit, int64(p.Number)), had); err != nil {
		return err
	}
	if !proto.Equal(had, records.StoredEvidence(&p.Item)) {
		return errs.New(errs.Precondition, "item %d of the evidence of unit %s is there, and is another: no item is changed", p.Number, p.Unit)
	}
	return nil
}

// Evidence returns the evidence of a unit, in order, as far as its record u counts it.
func (st *Store) Evidence(ctx context.Context, id mapreduce.JobID, u *records.Unit) ([]mapreduce.Evidence, error) {
	if u == nil || u.Evidence == nil {
		return nil, nil
	}
	items, err := st.ReadEvidence(ctx, id, u)
	if err != nil {
		return nil, err
	}

	if !WholeEvidence(u.Evidence, items) {
		return nil, records.CorruptError(st.Keys.Outputs(id).Evidence(u.ID, 0), "the evidence of unit %s is not the %d items that were stored", u.ID, u.Evidence.Items)
	}

	all := make([]mapreduce.Evidence, len(items))
	for i, raw := range items {
		item := new(storagev1.Evidence)
		if err := records.Decode(st.Keys.Outputs(id).Evidence(u.ID, int64(i)), raw, item); err != nil {
			return nil, err
		}
		all[i] = records.EvidenceFrom(item)
	}

	return all, nil
}

// WholeEvidence reports whether items, as they are stored, are those that a record counts.
func WholeEvidence(sum *records.EvidenceSum, items [][]byte) bool {
	return isChain(items, sum.Items, sum.SHA256)
}

// evidencePage is how many items are read at once: none has more than some 10 KiB.
const evidencePage = 64

// ReadEvidence reads the items of the evidence of a unit, of which u is the record, as they
// are stored. One that is missing is empty.
func (st *Store) ReadEvidence(ctx context.Context, id mapreduce.JobID, u *records.Unit) (items [][]byte, err error) {
	n := u.Evidence.Items
	if n < 0 || n > mapreduce.MaxEvidenceItems {
		return nil, records.CorruptError(st.Keys.Job(id).Unit(u.ID), "unit %s has %d items of evidence", u.ID, n)
	}

	for at := int64(0); at < n; at += evidencePage {
		var ks [][]byte
		for i := at; i < min(at+evidencePage, n); i++ {
			ks = append(ks, st.Keys.Outputs(id).Evidence(u.ID, i))
		}

		err := st.db.View(ctx, func(tx store.Tx) error {
			values, err := tx.Snapshot().GetAll(ctx, ks)
			// An earlier run of the transaction may have read these.
			items = append(items[:at:at], values...)
			return err
		})
		if err != nil {
			return nil, err
		}
	}

	return items, nil
}

// EvidenceText calls visit with the text of item n of the evidence of a unit, which is
// given, part after part. It may find out only after the last part that the text is
// damaged.
func (st *Store) EvidenceText(ctx context.Context, id mapreduce.JobID, unit mapreduce.UnitID, n int, e *mapreduce.Evidence, visit func(part []byte) error) error {
	r := st.Keys.Outputs(id).EvidenceText(unit, int64(n))
	return st.hashedParts(ctx, r, e.Bytes, e.SHA256, visit, func() string {
		return fmt.Sprintf("evidence %s of unit %s of job %s", e.Document, unit, id)
	})
}
