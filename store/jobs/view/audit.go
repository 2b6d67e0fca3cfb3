package view

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Audit chains the checkpoints of jobs by hashes, and lists and verifies them.
type Audit struct {
	db *records.DB
	reader
}

// NewAudit returns the operations on the records of db.
func NewAudit(db *records.DB) *Audit { return &Audit{db, reader{db.Records()}} }

// sealLimit bounds the checkpoints that one seal covers.
const sealLimit = 2000

// Seal chains the checkpoints since the last seal, and returns how many it
// covered. Checkpoints are only ever added behind those that can be read, so
// what is read by snapshot is all there is up to its last one.
func (st *Audit) Seal(ctx context.Context, id mapreduce.JobID) (covered int, err error) {
	err = st.db.Update(ctx, failpoint.Seal, func(tx store.Tx) error {
		covered = 0
		ctl, err := st.Jobs.Control(ctx, tx.Snapshot(), id)
		if err != nil {
			return err
		}

		// The last seal is read serializably: of two that seal at once, one runs again.
		head, err := st.Jobs.LastSeal(ctx, tx, id)
		if err != nil {
			return err
		}

		pairs, _, err := tx.Snapshot().GetRange(ctx, st.Jobs.CheckpointsAfter(id, head.Last), store.RangeOptions{Limit: sealLimit, Bytes: 4 * store.TargetTxSize})
		if err != nil || len(pairs) == 0 {
			return err
		}

		var origin []byte
		if head.Number == 0 {
			if origin, err = st.originOf(ctx, tx, id); err != nil {
				return err
			}
		}

		next := linkSeal(head, origin, pairs, len(st.Keys.Job(id).Checkpoints().Begin)-1, ctl.CheckpointInterval)
		tx.Set(st.Keys.Job(id).Seal(next.Number), records.Encode(next))
		covered = len(pairs)

		if mapreduce.JobState(ctl.State).Running() {
			return nil
		}
		return st.recordHead(ctx, tx, id, next)
	})
	return covered, err
}

// recordHead notes the head of the chain in the record of a job that has come to rest:
// else nothing would show that the end of the chain was cut off. A record that is damaged,
// or gone, is found by itself.
func (rec reader) recordHead(ctx context.Context, tx store.Tx, id mapreduce.JobID, head *storagev1.Seal) error {
	job := new(storagev1.Job)
	found, err := records.Read(ctx, tx, rec.Keys.Job(id).Record(), job)
	if errors.Is(err, store.ErrCorrupt) || err == nil && !found {
		return nil
	}
	if err != nil {
		return err
	}

	job.AuditNumber, job.AuditHead = head.Number, head.Hash
	tx.Set(rec.Keys.Job(id).Record(), records.Encode(job))
	return nil
}

// ChainOrigin is what the chain of a job begins with, so that the chain of one job never
// passes as that of another. Chains that earlier versions began lack it.
func ChainOrigin(id mapreduce.JobID, tenant mapreduce.TenantID, created time.Time) []byte {
	return fmt.Appendf(nil, "audit chain 2: job %q, tenant %q, submitted %d\n", id, tenant, created.UnixMicro())
}

// originOf returns the origin of a job's chain, or nil if the record of the job is damaged or
// gone, which is found by itself.
func (rec reader) originOf(ctx context.Context, r store.Reader, id mapreduce.JobID) ([]byte, error) {
	job := new(storagev1.Job)
	found, err := records.Read(ctx, r, rec.Keys.Job(id).Record(), job)
	switch {
	case errors.Is(err, store.ErrCorrupt), err == nil && !found:
		return nil, nil
	case err != nil:
		return nil, err
	}
	return ChainOrigin(id, mapreduce.TenantID(job.Config.GetTenant()), time.UnixMicro(job.CreatedAtMicros)), nil
}

// linkSeal makes the seal over pairs that follows head: SHA-256 over the previous hash, or the
// origin of the chain, and, of each checkpoint, its stamp and the hash of its value. skip is
// the length of the keys before the stamp, so that the chain does not depend on the
// installation's prefix. A checkpoint at which the completions of the job reach another
// interval is marked. The chain alone has all checkpoints of a job in one order, whichever
// orchestrators wrote them: each interval is marked once.
func linkSeal(head *storagev1.Seal, origin []byte, pairs []store.KeyValue, skip int, interval int64) *storagev1.Seal {
	next := &storagev1.Seal{Number: head.Number + 1, Count: int64(len(pairs)), Interval: interval}
	sum := &storagev1.Mark{
		Completed: head.Progress.GetCompleted(), TokensIn: head.Progress.GetTokensIn(), TokensOut: head.Progress.GetTokensOut(),
	}

	h := sha256.New()
	h.Write(origin)
	h.Write(head.Hash)
	for _, kv := range pairs {
		value := sha256.Sum256(kv.Value)
		h.Write(kv.Key[skip:])
		h.Write(value[:])

		before := sum.Completed
		addProgress(sum, kv.Value)
		if interval > 0 && before/interval < sum.Completed/interval {
			next.Marks = append(next.Marks, &storagev1.Mark{
				Checkpoint: stampOf(kv.Key), Completed: sum.Completed, TokensIn: sum.TokensIn, TokensOut: sum.TokensOut,
			})
		}
	}

	next.Last, next.Hash, next.Progress = stampOf(pairs[len(pairs)-1].Key), h.Sum(nil), sum
	return next
}

// addProgress adds what a checkpoint records. One that cannot be read adds nothing:
// its hash shows that it was changed.
func addProgress(sum *storagev1.Mark, checkpoint []byte) {
	var c storagev1.Checkpoint
	if proto.Unmarshal(checkpoint, &c) != nil {
		return
	}

	for _, o := range c.CompletedUnits {
		// The unit that assembles the result is no progress.
		if o.Unit != string(mapreduce.ResultUnit) {
			sum.Completed++
		}
	}

	for _, ended := range [][]*storagev1.Outcome{c.CompletedUnits, c.FailedUnits} {
		for _, o := range ended {
			sum.TokensIn += o.TokensIn
			sum.TokensOut += o.TokensOut
		}
	}
}

// stampOf returns the versionstamp at the end of a checkpoint's key, without
// the two bytes of the client's own order.
func stampOf(key []byte) []byte {
	end := len(key) - 2
	return bytes.Clone(key[end-len(store.Versionstamp{}) : end])
}

// List returns a page of checkpoints, oldest first, and the seals over
// them. With Verify it fails with errs.DataLoss at the first broken link.
func (st *Audit) List(ctx context.Context, q mapreduce.ListEventsQuery) (*mapreduce.EventPage, error) {
	if q.Job == "" {
		return st.Log(ctx, q)
	}

	from, seal, err := decodePageToken(q.PageToken)
	if err != nil {
		return nil, err
	}

	var page *mapreduce.EventPage
	err = st.db.View(ctx, func(tx store.Tx) error {
		page = &mapreduce.EventPage{}
		s := tx.Snapshot()
		if _, err := st.Jobs.Control(ctx, s, q.Job); err != nil {
			return err
		}

		pairs, more, err := s.GetRange(ctx, st.Jobs.CheckpointsAfter(q.Job, from), store.RangeOptions{Limit: q.PageSize, Bytes: 4 * store.TargetTxSize})
		if err != nil {
			return err
		}

		decode := decodeCheckpoint
		if q.Counts {
			decode = decodeCounts
		}
		for _, kv := range pairs {
			c, err := decode(kv)
			if err != nil {
				return err
			}

			if q.Proofs {
				c.Proof = mapreduce.Proof{Key: kv.Key[len(st.Keys.Job(q.Job).Checkpoints().Begin)-1:], Record: kv.Value}
			}
			page.Checkpoints = append(page.Checkpoints, c)
		}

		next := seal
		if !q.Counts {
			next, err = st.sealsOf(ctx, s, q.Job, seal, page)
		}
		if more && err == nil {
			page.NextPageToken = hex.EncodeToString(binary.BigEndian.AppendUint64(stampOf(pairs[len(pairs)-1].Key), uint64(next)))
		}
		return err
	})

	// The chain is verified once, with the first page.
	if err == nil && q.Verify && q.PageToken == "" {
		err = st.Verify(ctx, q.Job)
	}
	return page, err
}

// decodePageToken returns the stamp of the last checkpoint before a page, and the number of
// the first seal that can end behind it: a job of days has very many, which each page of
// its list must not read anew.
func decodePageToken(token string) (stamp []byte, seal int64, err error) {
	data, err := hex.DecodeString(token)
	const n = len(store.Versionstamp{})
	switch {
	case err == nil && len(data) == 0:
		return nil, 0, nil
	case err != nil || len(data) != n+8:
		return nil, 0, errs.Field("page_token", "is not one that a list returned")
	}
	return data[:n], int64(binary.BigEndian.Uint64(data[n:])), nil
}

func decodeCheckpoint(kv store.KeyValue) (*mapreduce.Checkpoint, error) {
	out, err := DecodeCheckpoint(kv.Value)
	if err != nil {
		return nil, records.CorruptError(kv.Key, "%v", err)
	}
	out.ID = hex.EncodeToString(stampOf(kv.Key))
	return out, nil
}

// decodeCounts returns when a checkpoint was written, how many units it ended, and what these spent.
func decodeCounts(kv store.KeyValue) (*mapreduce.Checkpoint, error) {
	var c storagev1.CheckpointCounts
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(kv.Value, &c); err != nil {
		return nil, records.CorruptError(kv.Key, "%v", err)
	}

	out := &mapreduce.Checkpoint{
		ID: hex.EncodeToString(stampOf(kv.Key)), Time: time.UnixMicro(c.TimestampMicros).UTC(),
		CompletedCount: int64(len(c.CompletedUnits)), FailedCount: int64(len(c.FailedUnits)),
	}
	for _, ended := range [][]*storagev1.OutcomeTokens{c.CompletedUnits, c.FailedUnits} {
		for _, o := range ended {
			out.Tokens = out.Tokens.Add(mapreduce.Tokens{In: o.TokensIn, Out: o.TokensOut})
		}
	}
	return out, nil
}

// DecodeCheckpoint returns what a stored checkpoint says, but for its id and its progress.
func DecodeCheckpoint(data []byte) (*mapreduce.Checkpoint, error) {
	var c storagev1.Checkpoint
	if err := proto.Unmarshal(data, &c); err != nil {
		return nil, err
	}

	out := &mapreduce.Checkpoint{
		Time: time.UnixMicro(c.TimestampMicros).UTC(),
		Kind: mapreduce.EventKind(c.Kind), Node: mapreduce.NodeID(c.Node), State: mapreduce.JobState(c.State), Message: c.Message,
		Principal: c.Principal, Tenant: mapreduce.TenantID(c.Tenant),
	}

	if d := c.Deleted; d != nil {
		out.Deleted = &mapreduce.DeletedJob{
			Job: mapreduce.JobID(d.Job), State: mapreduce.JobState(d.State), Created: time.UnixMicro(d.CreatedMicros).UTC(),
			Rule: d.Retention, Seals: d.AuditNumber, Head: d.AuditHead,
		}
		if d.EndedMicros > 0 {
			out.Deleted.Ended = time.UnixMicro(d.EndedMicros).UTC()
		}
	}

	for _, o := range c.CompletedUnits {
		out.Completed = append(out.Completed, unitRef(o, &out.Tokens))
	}
	for _, o := range c.FailedUnits {
		out.Failed = append(out.Failed, unitRef(o, &out.Tokens))
	}

	return out, nil
}

func unitRef(o *storagev1.Outcome, sum *mapreduce.Tokens) mapreduce.UnitRef {
	spent := mapreduce.Tokens{In: o.TokensIn, Out: o.TokensOut}
	*sum = sum.Add(spent)
	return mapreduce.UnitRef{Unit: mapreduce.UnitID(o.Unit), Attempt: int(o.Attempt), SHA256: o.Sha256, Tokens: spent}
}

// sealsAtOnce bounds the seals that are read at once.
const sealsAtOnce = 1000

// sealsOf adds to page the seals that end within it, and the marks of its checkpoints. It
// looks from the seal with a number on, and returns the number of the last one that it read,
// from which the next page is to look on.
func (rec reader) sealsOf(ctx context.Context, r store.Reader, id mapreduce.JobID, number int64, page *mapreduce.EventPage) (next int64, err error) {
	if len(page.Checkpoints) == 0 {
		return number, nil
	}

	first, last := page.Checkpoints[0].ID, page.Checkpoints[len(page.Checkpoints)-1].ID
	marks := make(map[string]*storagev1.Mark)
	span := rec.Keys.Job(id).Seals()
	if number > 0 {
		span.Begin = rec.Keys.Job(id).Seal(number)
	}

	for more, behind := true, false; more && !behind; {
		var pairs []store.KeyValue
		pairs, more, err = r.GetRange(ctx, span, store.RangeOptions{Limit: sealsAtOnce})
		if err != nil {
			return 0, err
		}
		for _, kv := range pairs {
			var s storagev1.Seal
			if err := records.Decode(kv.Key, kv.Value, &s); err != nil {
				return 0, err
			}

			end := hex.EncodeToString(s.Last)
			if end >= first && end <= last {
				page.Seals = append(page.Seals, &mapreduce.Seal{Number: s.Number, Count: int(s.Count), Last: end, Hash: s.Hash})
			}
			for _, m := range s.Marks {
				marks[hex.EncodeToString(m.Checkpoint)] = m
			}

			number, span.Begin = s.Number, store.Single(kv.Key).End
			// Stamps in hexadecimal digits have the order of time.
			if behind = end >= last; behind {
				break
			}
		}
	}

	for _, c := range page.Checkpoints {
		if m := marks[c.ID]; m != nil {
			c.Progress = &mapreduce.ProgressMark{Completed: m.Completed, Tokens: mapreduce.Tokens{In: m.TokensIn, Out: m.TokensOut}}
		}
	}

	return number, nil
}

// Verify computes the chain of a job anew, and fails with errs.DataLoss at the
// first link that is not as it was sealed, or if the chain does not lead to the head that
// the job's record has of it.
func (st *Audit) Verify(ctx context.Context, id mapreduce.JobID) error {
	job := new(storagev1.Job)
	err := st.db.View(ctx, func(tx store.Tx) error {
		job.Reset()
		_, err := records.Read(ctx, tx.Snapshot(), st.Keys.Job(id).Record(), job)
		return err
	})
	if err != nil && !errors.Is(err, store.ErrCorrupt) { // which is found by itself
		return err
	}

	head := new(storagev1.Seal)
	for {
		// The record has the head of when the job last came to rest; the chain may have
		// grown since.
		if head.Number > 0 && head.Number == job.AuditNumber && !bytes.Equal(head.Hash, job.AuditHead) {
			return brokenChain("the record of job %s has %x as seal %d of its audit chain, and the chain has %x there", id, job.AuditHead, job.AuditNumber, head.Hash)
		}

		next, err := st.verifyNext(ctx, id, head)
		if err != nil {
			return err
		}
		if next == nil {
			break
		}
		head = next
	}

	if head.Number < job.AuditNumber {
		return brokenChain("the audit chain of job %s ends with seal %d, and had %d: its end, %x, is gone", id, head.Number, job.AuditNumber, job.AuditHead)
	}
	return nil
}

// brokenChain returns the error of a chain that is not as it was.
func brokenChain(format string, args ...any) error {
	return &errs.Error{Kind: errs.DataLoss, Reason: "AUDIT_CHAIN_BROKEN", Message: fmt.Sprintf(format, args...)}
}

// verifyNext checks the seal after head, and returns it, or nil at the end. The first may lack
// the origin of the chain.
func (st *Audit) verifyNext(ctx context.Context, id mapreduce.JobID, head *storagev1.Seal) (*storagev1.Seal, error) {
	stored, wants := new(storagev1.Seal), []*storagev1.Seal(nil)
	found := false
	err := st.db.View(ctx, func(tx store.Tx) (err error) {
		s := tx.Snapshot()
		stored.Reset()
		wants = nil
		if found, err = records.Read(ctx, s, st.Keys.Job(id).Seal(head.Number+1), stored); err != nil {
			return err
		}
		if !found { // the end of the chain, unless seals behind it are left
			stored, err = st.Jobs.LastSeal(ctx, s, id)
			found = stored.Number != head.Number
			return err
		}

		pairs, _, err := s.GetRange(ctx, st.Jobs.CheckpointsAfter(id, head.Last), store.RangeOptions{Limit: int(stored.Count)})
		if err != nil {
			return err
		}
		if len(pairs) == 0 {
			return nil
		}

		origins := [][]byte{nil}
		if head.Number == 0 {
			origin, err := st.originOf(ctx, s, id)
			if err != nil {
				return err
			}
			origins = append(origins, origin)
			if origin == nil { // nobody can tell, and the record is found by itself
				wants = append(wants, proto.CloneOf(stored))
			}
		}

		for _, origin := range origins {
			wants = append(wants, linkSeal(head, origin, pairs, len(st.Keys.Job(id).Checkpoints().Begin)-1, stored.Interval))
		}
		return nil
	})

	if err != nil || !found {
		return nil, err
	}

	same := func(want *storagev1.Seal) bool { return proto.Equal(want, stored) }
	if !slices.ContainsFunc(wants, same) || head.Number > 0 && head.Interval != stored.Interval {
		return nil, brokenChain("seal %d of job %s: the checkpoints up to %x are not those that were sealed", stored.Number, id, stored.Last)
	}
	return stored, nil
}
