// Package staging is a job before it is one: a submission is stored part by part, which nobody
// sees, and becomes a job at once when it is whole, or is given up with all that it has staged.
//
// What always holds: a job is visible whole or not at all; each request of a tenant becomes one job at
// most; and what a submission uses of its tenant's quotas is counted in the transaction that stores it,
// and given back in the one that removes it. It must not import what is done with jobs: those are
// in the packages beside.
package staging

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/plural"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// A Store stores submissions, and makes each a job when it is whole.
type Store struct {
	db *records.DB
	writer
}

// New returns the operations on the records of db.
func New(db *records.DB) *Store { return &Store{db, writer{db.Records()}} }

// writer reads and writes what a submission takes inside a transaction of its caller.
type writer struct{ *records.Records }

// Begin opens a submission under an id that no job has; if one has it, Begin
// fails with errs.Exists and the caller draws again. A tenant without a place for one more job,
// or the tokens of its budget, is refused; the job takes both when it is published, so that a
// submission whose client says no more keeps no other job from them.
func (st *Store) Begin(ctx context.Context, id mapreduce.JobID, spec *mapreduce.JobSpec) error {
	at := st.NowMicros()
	return st.db.Update(ctx, failpoint.Begin, func(tx store.Tx) error {
		values, err := tx.GetAll(ctx, [][]byte{st.Keys.Job(id).Ctl(), st.Keys.Job(id).Ingest()})
		if err != nil {
			return err
		}

		in := &storagev1.Ingest{
			Node: string(st.Node), CreatedAtMicros: at, RequestId: string(spec.RequestID), Tenant: string(spec.Tenant), Use: &storagev1.Use{Ended: true},
		}

		if values[1] != nil {
			var other storagev1.Ingest
			if err := records.Decode(st.Keys.Job(id).Ingest(), values[1], &other); err != nil {
				return err
			}
			other.Use = in.Use
			if proto.Equal(&other, in) {
				return nil // an earlier run committed
			}
		}

		if values[0] != nil || values[1] != nil {
			return errs.New(errs.Exists, "job id %s is taken", id)
		}

		// Both are only looked for: the job takes them when it is published.
		for _, what := range placesOfJobs() {
			if err := st.Tenants.CheckUse(ctx, tx, spec.Tenant, what, 0, 1); err != nil {
				return err
			}
		}
		if err := st.Tenants.CheckUse(ctx, tx, spec.Tenant, keys.UsedTokens, st.Tenants.Today(), spec.TokenBudget()); err != nil {
			return err
		}

		tx.Set(st.Keys.Job(id).Ingest(), records.Encode(in))
		return nil
	})
}

// placesOfJobs are what a tenant uses one of for each job.
func placesOfJobs() []keys.Used { return []keys.Used{keys.UsedJobs, keys.UsedUnended} }

// takePlaces takes what Begin has only looked for. A submission that has no places yet is
// marked as ended in what it uses; one that an earlier version began has its places.
func (rec writer) takePlaces(ctx context.Context, tx store.Tx, t mapreduce.TenantID, in *storagev1.Ingest, budget int64) error {
	if !in.Use.GetEnded() {
		return nil
	}
	in.Use.Ended = false
	for _, what := range placesOfJobs() {
		if err := rec.Tenants.TakeUse(ctx, tx, t, what, 0, 1); err != nil {
			return err
		}
	}
	return rec.Tenants.TakeTokens(ctx, tx, t, in.Use, budget)
}

// Stage stores a part of a submission. Nobody sees it before Publish. A unit whose
// id another document's unit has is refused with errs.Exists, and more than the quotas of
// the tenant allow with errs.Exhausted. The parts of a submission are staged one after the
// other.
func (st *Store) Stage(ctx context.Context, id mapreduce.JobID, b *records.Batch) error {
	units := records.StoredUnits(b.Units)
	for _, u := range units {
		u.Submitted = true
	}

	// Number of parts when the first run of the transaction looked; -1 before.
	before := int64(-1)
	return st.db.Update(ctx, failpoint.Stage, func(tx store.Tx) error {
		in, err := st.readIngest(ctx, tx, id)
		if err != nil {
			return err
		}

		if before >= 0 && in.Parts > before {
			return nil // an earlier run committed
		}
		before = in.Parts

		if err := st.checkUnique(ctx, tx, id, units); err != nil {
			return err
		}
		if err := st.chargePart(ctx, tx, id, in, b); err != nil {
			return err
		}

		for _, u := range units {
			st.Units.Insert(tx, id, u)
		}
		for _, c := range b.Blobs {
			tx.Set(st.Keys.Job(id).BlobChunk(c.SHA256, c.Index), c.Data)
		}
		for _, s := range b.Skipped {
			tx.Set(st.Keys.Job(id).Skipped(s.N), records.Encode(&storagev1.Skipped{DocumentId: string(s.Document), Reason: s.Reason}))
		}

		return nil
	})
}

// chargePart counts a part of a submission as used by its tenant.
func (rec writer) chargePart(ctx context.Context, tx store.Tx, id mapreduce.JobID, in *storagev1.Ingest, b *records.Batch) error {
	tenant, units, size := mapreduce.TenantID(in.Tenant), int64(len(b.Units)), int64(0)
	for _, c := range b.Blobs {
		size += int64(len(c.Data))
	}

	if err := rec.Tenants.TakeUse(ctx, tx, tenant, keys.UsedUnits, 0, units); err != nil {
		return err
	}
	if err := rec.Tenants.TakeUse(ctx, tx, tenant, keys.UsedBytes, 0, size); err != nil {
		return err
	}

	if units > 0 {
		tx.Add(rec.Keys.Job(id).Counter(keys.UnitsWaiting, 0, rec.Node), units)
	}

	if in.Use == nil {
		in.Use = new(storagev1.Use)
	}
	in.Use.Units += units
	in.Use.Bytes += size
	in.Parts++
	tx.Set(rec.Keys.Job(id).Ingest(), records.Encode(in))
	return nil
}

// readIngest returns the record of a submission under way.
func (rec writer) readIngest(ctx context.Context, tx store.Tx, id mapreduce.JobID) (*storagev1.Ingest, error) {
	in := new(storagev1.Ingest)
	found, err := records.Read(ctx, tx, rec.Keys.Job(id).Ingest(), in)
	if err == nil && !found {
		err = errs.New(errs.Aborted, "submission %s was given up; submit again", id)
	}
	return in, err
}

// checkUnique refuses units whose id is another's, and documents whose id is. A unit
// of the same index is this batch's own, of an earlier run.
func (rec writer) checkUnique(ctx context.Context, tx store.Tx, id mapreduce.JobID, units []*storagev1.Unit) error {
	stored, err := rec.readNamesakes(ctx, tx, id, units)
	if err != nil {
		return err
	}

	inBatch := make(map[mapreduce.UnitID]*storagev1.Unit, len(units))
	for _, u := range units {
		for _, name := range firstNames(u) {
			old := cmp.Or(inBatch[name], stored[name])
			if old != nil && idsClash(old, u) {
				// The upper bits of an index number the document, from 0 on.
				return errs.Field("documents", "documents %d and %d have the same id %q; give each its own",
					old.Index>>20+1, u.Index>>20+1, u.DocumentId)
			}
		}
		inBatch[mapreduce.UnitID(u.UnitId)] = u
	}

	return nil
}

// readNamesakes returns the units that are stored under the first names of units.
func (rec writer) readNamesakes(ctx context.Context, tx store.Tx, id mapreduce.JobID, units []*storagev1.Unit) (map[mapreduce.UnitID]*storagev1.Unit, error) {
	var mapped, parsed [][]byte // apart, for each lies close together

	prefix := rec.Keys.Job(id).ParseUnits()
	for _, u := range units {
		for _, name := range firstNames(u) {
			key := rec.Keys.Job(id).Unit(name)
			if bytes.Compare(key, prefix.Begin) >= 0 && bytes.Compare(key, prefix.End) < 0 {
				parsed = append(parsed, key)
			} else {
				mapped = append(mapped, key)
			}
		}
	}

	found := make(map[mapreduce.UnitID]*storagev1.Unit)
	for _, ks := range [][][]byte{mapped, parsed} {
		values, err := records.ReadPresent(ctx, tx, ks)
		if err != nil {
			return nil, err
		}

		for i, v := range values {
			if v == nil {
				continue
			}
			u := new(storagev1.Unit)
			if err := records.Decode(ks[i], v, u); err != nil {
				return nil, err
			}
			found[mapreduce.UnitID(u.UnitId)] = u
		}
	}

	return found, nil
}

// firstNames returns the id of u, and if u is the first unit of its document the
// ids that such a unit may have: every document has exactly one of them.
func firstNames(u *storagev1.Unit) []mapreduce.UnitID {
	names := []mapreduce.UnitID{mapreduce.UnitID(u.UnitId)}
	if u.Source.GetChunkIndex() > 0 {
		return names
	}
	if u.Source.GetDocuments() > 0 {
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

// A Publication makes a submission a job.
type Publication struct {
	Spec         *mapreduce.JobSpec
	Shards       int64
	Parse        int64 // units that parse documents
	Map          int64 // units staged so far
	Documents    int64 // processed and skipped
	Characters   int64
	Skipped      int64
	SkippedBytes int64              // of the documents that are skipped
	Slots        int64              // granted to this node at once; nobody can have any yet
	Tree         bool               // a tree of reduces is planned before anything is mapped
	MapEarly     bool               // of documents that are parsed each may be mapped before the others are text
	Level        records.Level      // level 0, but for the number of its units
	Warnings     []string           // for the job's owner
	Plan         *mapreduce.JobPlan // what the job is expected to take; nil if that is not known
}

// Publish makes the job visible, whole, and returns its id; if an earlier
// submission had the same request id, it returns that job's, and nothing of
// this one becomes visible.
func (st *Store) Publish(ctx context.Context, id mapreduce.JobID, p *Publication) (mapreduce.JobID, error) {
	winner := id
	err := st.db.Update(ctx, failpoint.Publish, func(tx store.Tx) error {
		winner = id

		done, err := tx.Get(ctx, st.Keys.Job(id).Ctl())
		if err != nil || done != nil { // done: an earlier run committed
			return err
		}

		in, err := st.readIngest(ctx, tx, id)
		if err != nil {
			return err
		}

		// An earlier submission of the same request has won.
		if p.Spec.RequestID != "" {
			key := st.Keys.Tenant(p.Spec.Tenant).Request(p.Spec.RequestID)
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

		if err := st.takePlaces(ctx, tx, p.Spec.Tenant, in, p.Spec.TokenBudget()); err != nil {
			return err
		}
		st.publishJob(ctx, tx, id, p, in)
		return nil
	})

	return winner, err
}

// Standing returns how the job stands once it is visible.
func (p *Publication) Standing(id mapreduce.JobID) *records.Standing {
	ctl, job := p.toStored(id, 0)
	return &records.Standing{Control: records.ControlOf(ctl), Job: records.JobOf(job)}
}

// toStored returns the control record and the record of the job.
func (p *Publication) toStored(id mapreduce.JobID, now int64) (*storagev1.Ctl, *storagev1.Job) {
	state, level := p.Level.Phase, int64(0)
	if p.Parse > 0 || p.Tree {
		// Nothing is mapped until documents are parsed, or the tree is planned.
		state, level = mapreduce.Decomposition, -1
	}

	first, spec := p.Level, records.StoredSpec(p.Spec)
	first.Units = p.Map

	ctl := &storagev1.Ctl{
		State: uint32(state), Phase: uint32(state), Epoch: 1, Level: level, Levels: []*storagev1.Level{first.ToStored()},
		UpdatedAtMicros: now, MaxAttempts: spec.MaxAttempts, Budget: spec.Budget, BudgetIn: spec.BudgetIn,
		FailFast: spec.OnError == uint32(mapreduce.FailFast), ParseUnits: p.Parse, Shards: p.Shards, StagedUnits: p.Map,
		Tenant: spec.Tenant, Priority: spec.Priority, ReduceShare: spec.ReduceShare,
		CheckpointInterval: spec.CheckpointInterval, MapEarly: p.MapEarly && p.Parse > 0, KeepMicros: spec.KeepMicros,
	}

	job := &storagev1.Job{
		JobId: string(id), Status: uint32(state), CreatedAtMicros: now, UpdatedAtMicros: now, Config: spec,
		TotalUnits: p.Map + p.Parse, Shards: p.Shards, Documents: p.Documents, Characters: p.Characters,
		SkippedDocuments: p.Skipped, SkippedBytes: p.SkippedBytes, Carried: true, Plan: records.StoredPlan(p.Plan),
	}

	for _, text := range p.Warnings {
		job.Warnings = append(job.Warnings, &storagev1.Warning{Text: records.ClipText(text)})
	}

	return ctl, job
}

func (rec writer) publishJob(ctx context.Context, tx store.Tx, id mapreduce.JobID, p *Publication, in *storagev1.Ingest) {
	now := rec.NowMicros()
	ctl, job := p.toStored(id, now)
	ctl.Use = in.Use
	rec.Tenants.SetLabels(tx, ctl, p.Spec.Labels)

	tx.Set(rec.Keys.Job(id).Ctl(), records.Encode(ctl))
	tx.Set(rec.Keys.Job(id).Record(), records.Encode(job))
	rec.Jobs.List(tx, id, ctl, now)
	rec.Jobs.SetRun(tx, id, ctl)

	// No other node can have slots of a job that was not visible.
	if p.Slots > 0 {
		tx.Set(rec.Keys.Nodes().Grant(mapreduce.JobScope(id), rec.Node), records.Encode(&storagev1.Grant{Slots: p.Slots}))
	}

	tx.Clear(rec.Keys.Job(id).Ingest())
	rec.Jobs.AddCalled(ctx, tx, id, &storagev1.Checkpoint{
		Kind: uint32(mapreduce.EventSubmitted), State: ctl.State, Epoch: ctl.Epoch, Level: ctl.Level, Submitted: records.SubmittedSum(job),
		Message: records.ClipText(plural.Count(p.Documents, "document") + ", " + plural.Count(p.Map+p.Parse, "unit") + records.WarningSuffix(p.Warnings)),
	})

	rec.Jobs.WakeOthers(tx)
}

// Requested returns the job that a tenant's request submitted, or "".
func (st *Store) Requested(ctx context.Context, t mapreduce.TenantID, r mapreduce.RequestID) (mapreduce.JobID, error) {
	var id []byte
	err := st.db.View(ctx, func(tx store.Tx) (err error) {
		id, err = tx.Get(ctx, st.Keys.Tenant(t).Request(r))
		return err
	})
	return mapreduce.JobID(id), err
}

// abandonedAtOnce is how many submissions one transaction removes.
const abandonedAtOnce = 100

// Abandon removes what submissions staged. Of those that became jobs after all nothing
// is removed.
func (st *Store) Abandon(ctx context.Context, ids ...mapreduce.JobID) error {
	for some := range slices.Chunk(ids, abandonedAtOnce) {
		if err := st.abandonSome(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

func (st *Store) abandonSome(ctx context.Context, ids []mapreduce.JobID) error {
	marks := make([][]byte, len(ids))
	for i, id := range ids {
		marks[i] = st.Keys.Job(id).Ingest()
	}

	return st.db.Update(ctx, failpoint.Abandon, func(tx store.Tx) error {
		values, err := tx.GetAll(ctx, marks)
		if err != nil {
			return err
		}

		for i, id := range ids {
			if values[i] == nil {
				continue
			}
			var in storagev1.Ingest
			if records.Decode(marks[i], values[i], &in) == nil { // of one that is damaged nobody knows what it uses
				if in.Use.GetEnded() { // it had no places, which are given back with the rest
					in.Use.Ended = false
					for _, what := range placesOfJobs() {
						st.Tenants.AddUse(tx, mapreduce.TenantID(in.Tenant), what, 0, 1)
					}
				}
				if err := st.Tenants.ReturnUse(ctx, tx, id, mapreduce.TenantID(in.Tenant), in.Use); err != nil {
					return err
				}
			}

			for _, r := range st.Keys.Job(id).Owned() {
				tx.ClearRange(r)
			}
			tx.Clear(marks[i])
		}

		return nil
	})
}

// An Unfinished is a submission under way, and the node that takes it.
type Unfinished struct {
	Job  mapreduce.JobID
	Node mapreduce.NodeID
}

// Ingests returns the submissions under way behind one, in the order of their ids, the
// first thousand of them; "" is before all.
func (st *Store) Ingests(ctx context.Context, after mapreduce.JobID) ([]Unfinished, error) {
	var refs []Unfinished
	err := st.db.View(ctx, func(tx store.Tx) error {
		refs = nil

		all := st.Keys.Ingests()
		if after != "" {
			all.Begin = append(st.Keys.Job(after).Ingest(), 0)
		}

		pairs, _, err := tx.Snapshot().GetRange(ctx, all, store.RangeOptions{Limit: 1000})
		if err != nil {
			return err
		}

		for _, kv := range pairs {
			var in storagev1.Ingest
			if err := records.Decode(kv.Key, kv.Value, &in); err != nil {
				return err
			}
			_, rest, err := st.Keys.Last(kv.Key)
			if err != nil {
				return err
			}
			refs = append(refs, Unfinished{mapreduce.JobID(rest.Text()), mapreduce.NodeID(in.Node)})
		}

		return nil
	})
	return refs, err
}
