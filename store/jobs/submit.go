package jobs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/keys"
)

// A Batch is a part of a submission: what one transaction stages. It should
// hold at most 500 units and store.TargetTxSize bytes.
type Batch struct {
	Units   []*storagev1.Unit
	Blobs   []BlobChunk
	Skipped []SkippedAt
	Counted bool // the characters of its units were, when they were submitted
}

// A BlobChunk is chunk Index of the text with the given hash; all but the last
// hold store.ChunkSize bytes.
type BlobChunk struct {
	SHA256 []byte
	Index  int64
	Data   []byte
}

// SkippedAt is the n-th document left out of a submission.
type SkippedAt struct {
	N int64
	mapreduce.SkippedDocument
}

// Begin opens a submission under an id that no job has; if one has it, Begin
// fails with errs.Exists and the caller draws again.
func (j *IngestPart) Begin(ctx context.Context, id mapreduce.JobID, spec *storagev1.Spec) error {
	mark := encode(&storagev1.Ingest{
		Node: string(j.node), CreatedAtMicros: j.nowMicros(), RequestId: spec.RequestId, Tenant: spec.Tenant,
	})
	return j.db.update(ctx, failpoint.Begin, func(tx store.Tx) error {
		values, err := tx.GetAll(ctx, [][]byte{j.keys.Ctl(id), j.keys.Ingest(id)})
		if err != nil {
			return err
		}
		if values[0] != nil || (values[1] != nil && !bytes.Equal(values[1], mark)) {
			return errs.New(errs.Exists, "job id %s is taken", id)
		}
		tx.Set(j.keys.Ingest(id), mark)
		return nil
	})
}

// Stage stores a part of a submission. Nobody sees it before Flip. A unit whose
// id another document's unit has is refused with errs.Exists.
func (j *IngestPart) Stage(ctx context.Context, id mapreduce.JobID, b *Batch) error {
	return j.db.update(ctx, failpoint.Stage, func(tx store.Tx) error {
		if err := j.checkIngesting(ctx, tx, id); err != nil {
			return err
		}
		if err := j.checkUnique(ctx, tx, id, b.Units); err != nil {
			return err
		}
		for _, u := range b.Units {
			j.insertNew(tx, id, u)
		}
		for _, c := range b.Blobs {
			tx.Set(j.keys.BlobChunk(id, c.SHA256, c.Index), c.Data)
		}
		for _, s := range b.Skipped {
			tx.Set(j.keys.Skipped(id, s.N), encode(&storagev1.Skipped{DocumentId: string(s.Document), Reason: s.Reason}))
		}
		return nil
	})
}

// insertNew writes a new unit with its place in the queue and in the order.
func (j *Records) insertNew(tx store.Tx, id mapreduce.JobID, u *storagev1.Unit) {
	j.enqueueUnit(tx, id, u, keys.ClassNew)
	j.setUnit(tx, id, u)
	if u.Level <= 0 {
		tx.Set(j.keys.Order(id, u.Level, u.Index), []byte(u.UnitId))
	}
}

func (j ingestWriter) checkIngesting(ctx context.Context, tx store.Tx, id mapreduce.JobID) error {
	v, err := tx.Get(ctx, j.keys.Ingest(id))
	if err != nil {
		return err
	}
	if v == nil {
		return errs.New(errs.Aborted, "submission %s was given up; submit again", id)
	}
	return nil
}

// checkUnique refuses units whose id is another's, and documents whose id is. A unit
// of the same index is this batch's own, of an earlier run.
func (j ingestWriter) checkUnique(ctx context.Context, tx store.Tx, id mapreduce.JobID, units []*storagev1.Unit) error {
	stored, err := j.readNamesakes(ctx, tx, id, units)
	if err != nil {
		return err
	}
	inBatch := make(map[mapreduce.UnitID]*storagev1.Unit, len(units))
	for _, u := range units {
		for _, name := range firstNames(u) {
			old := cmp.Or(inBatch[name], stored[name])
			if old != nil && idsClash(old, u) {
				return errs.Field("documents", "documents %d and %d have the same id %q; give each its own",
					old.Index>>20+1, u.Index>>20+1, u.DocumentId)
			}
		}
		inBatch[mapreduce.UnitID(u.UnitId)] = u
	}
	return nil
}

// readNamesakes returns the units that are stored under the first names of units.
func (j ingestWriter) readNamesakes(ctx context.Context, tx store.Tx, id mapreduce.JobID, units []*storagev1.Unit) (map[mapreduce.UnitID]*storagev1.Unit, error) {
	var mapped, parsed [][]byte // apart, for each lies close together
	prefix := j.keys.ParseUnits(id)
	for _, u := range units {
		for _, name := range firstNames(u) {
			key := j.keys.Unit(id, name)
			if bytes.Compare(key, prefix.Begin) >= 0 && bytes.Compare(key, prefix.End) < 0 {
				parsed = append(parsed, key)
			} else {
				mapped = append(mapped, key)
			}
		}
	}
	found := make(map[mapreduce.UnitID]*storagev1.Unit)
	for _, ks := range [][][]byte{mapped, parsed} {
		values, err := readPresent(ctx, tx, ks)
		if err != nil {
			return nil, err
		}
		for i, v := range values {
			if v == nil {
				continue
			}
			u := new(storagev1.Unit)
			if err := decode(ks[i], v, u); err != nil {
				return nil, err
			}
			found[mapreduce.UnitID(u.UnitId)] = u
		}
	}
	return found, nil
}

// readPresent returns the values of keys, or nothing if none has one. Documents mostly
// come in the order of their names, so one look usually tells that nothing lies
// between the first key and the last, which costs less than to look for each; and
// what was stored there before, by a run whose outcome was unknown, are neighbours.
func readPresent(ctx context.Context, tx store.Tx, ks [][]byte) ([][]byte, error) {
	if len(ks) == 0 {
		return nil, nil
	}
	all := store.Range{Begin: slices.MinFunc(ks, bytes.Compare), End: store.Single(slices.MaxFunc(ks, bytes.Compare)).End}
	pairs, _, err := tx.GetRange(ctx, all, store.RangeOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(pairs) == 0 {
		return nil, nil
	}
	return readNear(ctx, tx, ks)
}

// readNear reads keys that are likely to be neighbours, serializably.
func readNear(ctx context.Context, tx store.Tx, ks [][]byte) ([][]byte, error) {
	values, err := store.GetNear(ctx, tx.Snapshot(), ks)
	if err != nil {
		return nil, err
	}
	for _, k := range ks {
		tx.AddReadConflict(store.Single(k))
	}
	return values, nil
}

// firstNames returns the id of u, and if u is the first unit of its document the
// ids that such a unit may have: every document has exactly one of them.
func firstNames(u *storagev1.Unit) []mapreduce.UnitID {
	names := []mapreduce.UnitID{mapreduce.UnitID(u.UnitId)}
	if u.Source.GetChunkIndex() > 0 {
		return names
	}
	if mapreduce.UnitKind(u.Kind) == mapreduce.KindDirect {
		return names
	}
	d := mapreduce.DocumentID(u.DocumentId)
	for _, name := range []mapreduce.UnitID{mapreduce.MapUnit(d), mapreduce.ChunkUnit(d, 0), mapreduce.ParseUnit(d)} {
		if name != names[0] {
			names = append(names, name)
		}
	}
	return names
}

// idsClash reports whether two units cannot be of one job: they have one id, or
// are of two documents with one.
func idsClash(a, b *storagev1.Unit) bool {
	if a.UnitId == b.UnitId {
		return a.Index != b.Index || a.Level != b.Level
	}
	return a.DocumentId == b.DocumentId && a.Index>>20 != b.Index>>20
}

// A Flip makes a submission a job.
type Flip struct {
	Spec       *storagev1.Spec
	Shards     int64
	Parse      int64 // units that parse documents
	Map        int64 // units staged so far
	Documents  int64 // processed and skipped
	Characters int64
	Skipped    int64
	Slots      int64    // granted to this node at once; nobody can have any yet
	Tree       bool     // a tree of reduces is planned before anything is mapped
	Level      Level    // level 0, but for the number of its units
	Warnings   []string // for the job's owner
}

// Flip makes the job visible, whole, and returns its id; if an earlier
// submission had the same request id, it returns that job's, and nothing of
// this one becomes visible.
func (j *IngestPart) Flip(ctx context.Context, id mapreduce.JobID, f *Flip) (mapreduce.JobID, error) {
	winner := id
	err := j.db.update(ctx, failpoint.Flip, func(tx store.Tx) error {
		winner = id
		done, err := tx.Get(ctx, j.keys.Ctl(id))
		if err != nil || done != nil { // done: an earlier run committed
			return err
		}
		if err := j.checkIngesting(ctx, tx, id); err != nil {
			return err
		}
		if f.Spec.RequestId != "" {
			key := j.keys.Idem(mapreduce.TenantID(f.Spec.Tenant), mapreduce.RequestID(f.Spec.RequestId))
			earlier, err := tx.Get(ctx, key)
			if err != nil {
				return err
			}
			if earlier != nil {
				winner = mapreduce.JobID(earlier)
				return nil
			}
			tx.Set(key, []byte(id))
		}
		j.publishJob(tx, id, f)
		return nil
	})
	return winner, err
}

// Standing returns how the job stands once it is visible.
func (f *Flip) Standing(id mapreduce.JobID, now int64) *Standing {
	state, level := f.Level.Phase, int64(0)
	if f.Parse > 0 || f.Tree {
		state, level = mapreduce.Decomposition, -1
	}
	first := f.Level
	first.Units = f.Map
	ctl := &storagev1.Ctl{
		State: uint32(state), Phase: uint32(state), Epoch: 1, Level: level, Levels: []*storagev1.Level{first.toStored()},
		UpdatedAtMicros: now, MaxAttempts: f.Spec.MaxAttempts, Budget: f.Spec.Budget,
		FailFast: f.Spec.OnError == uint32(mapreduce.FailFast), ParseUnits: f.Parse, Shards: f.Shards, StagedUnits: f.Map,
		Tenant: f.Spec.Tenant, Priority: f.Spec.Priority, ReduceShare: f.Spec.ReduceShare,
		CheckpointInterval: f.Spec.CheckpointInterval,
	}
	st := &Standing{Ctl: ctl, Record: &storagev1.Job{
		JobId: string(id), Status: uint32(state), CreatedAtMicros: now, UpdatedAtMicros: now, Config: f.Spec,
		TotalUnits: f.Map + f.Parse, Shards: f.Shards, Documents: f.Documents, Characters: f.Characters,
		SkippedDocuments: f.Skipped, Carried: true,
	}}
	for _, text := range f.Warnings {
		st.Record.Warnings = append(st.Record.Warnings, &storagev1.Warning{Text: clipText(text)})
	}
	return st
}

func (j ingestWriter) publishJob(tx store.Tx, id mapreduce.JobID, f *Flip) {
	now := j.nowMicros()
	st := f.Standing(id, now)
	ctl := st.Ctl
	tx.Set(j.keys.Ctl(id), encode(ctl))
	tx.Set(j.keys.Job(id), encode(st.Record))
	tx.Set(j.keys.Recent(now, id), nil)
	j.setRun(tx, id, ctl)
	if f.Slots > 0 {
		tx.Set(j.keys.Grant(id, j.node), encode(&storagev1.Grant{Slots: f.Slots}))
	}
	tx.Clear(j.keys.Ingest(id))
	j.addCheckpoint(tx, id, &storagev1.Checkpoint{
		Kind: uint32(mapreduce.EventSubmitted), State: ctl.State, Epoch: ctl.Epoch, Level: ctl.Level,
		Message: clipText(fmt.Sprintf("%d documents, %d units", f.Documents, f.Map+f.Parse) + warningSuffix(f.Warnings)),
	})
	j.wakeOthers(tx)
}

// setRun lists a job to run.
func (j *Records) setRun(tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl) {
	tx.Set(j.keys.Run(mapreduce.TenantID(ctl.Tenant), id), runValue(ctl))
}

// runValue is what an orchestrator has to know to see whether a job that may run
// has changed.
func runValue(ctl *storagev1.Ctl) []byte { return fmt.Appendf(nil, "%d %d", ctl.Priority, ctl.Epoch) }

// parseRun returns what a value of the list of jobs that run says.
func parseRun(value []byte) (priority int, epoch int64, err error) {
	p, e, _ := strings.Cut(string(value), " ")
	if priority, err = strconv.Atoi(p); err != nil {
		return 0, 0, err
	}
	epoch, err = strconv.ParseInt(e, 10, 64)
	return priority, epoch, err
}

// Requested returns the job that a tenant's request submitted, or "".
func (j *IngestPart) Requested(ctx context.Context, t mapreduce.TenantID, r mapreduce.RequestID) (mapreduce.JobID, error) {
	var id []byte
	err := j.db.view(ctx, func(tx store.Tx) (err error) {
		id, err = tx.Get(ctx, j.keys.Idem(t, r))
		return err
	})
	return mapreduce.JobID(id), err
}

// Abandon removes what a submission staged. If it became a job after all,
// nothing happens.
func (j *IngestPart) Abandon(ctx context.Context, id mapreduce.JobID) error {
	return j.db.update(ctx, failpoint.Abandon, func(tx store.Tx) error {
		v, err := tx.Get(ctx, j.keys.Ingest(id))
		if err != nil || v == nil {
			return err
		}
		for _, r := range j.keys.Owned(id) {
			tx.ClearRange(r)
		}
		tx.Clear(j.keys.Ingest(id))
		return nil
	})
}

// An IngestRef is a submission under way.
type IngestRef struct {
	Job  mapreduce.JobID
	Node mapreduce.NodeID
}

// Ingests returns the submissions under way.
func (j *IngestPart) Ingests(ctx context.Context) ([]IngestRef, error) {
	var refs []IngestRef
	err := j.db.view(ctx, func(tx store.Tx) error {
		refs = nil
		pairs, _, err := tx.Snapshot().GetRange(ctx, j.keys.Ingests(), store.RangeOptions{Limit: 1000})
		if err != nil {
			return err
		}
		for _, kv := range pairs {
			var in storagev1.Ingest
			if err := decode(kv.Key, kv.Value, &in); err != nil {
				return err
			}
			_, rest, err := j.keys.Last(kv.Key)
			if err != nil {
				return err
			}
			refs = append(refs, IngestRef{mapreduce.JobID(rest.Text()), mapreduce.NodeID(in.Node)})
		}
		return nil
	})
	return refs, err
}
