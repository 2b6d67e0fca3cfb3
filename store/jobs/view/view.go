// Package view reads jobs, units and events as they are. Audit also chains the
// checkpoints of a job by hashes, and verifies the chain.
package view

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/label"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/causes"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// reader reads jobs, and reads and writes seals, inside a transaction of its caller.
type reader struct{ *records.Records }

// A Store reads jobs and units.
type Store struct {
	db *records.DB
	reader
	levels lifecycle.LevelRecords
	queues queue.Records
}

// New returns the operations on the records of db.
func New(db *records.DB) *Store {
	return &Store{db, reader{db.Records()}, lifecycle.LevelRecords{Records: db.Records()}, queue.Records{Records: db.Records()}}
}

// Job returns a job with its counters.
func (st *Store) Job(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	var job *mapreduce.Job
	err := st.db.View(ctx, func(tx store.Tx) (err error) {
		if job, _, err = st.readJob(ctx, tx.Snapshot(), id); err != nil {
			return err
		}
		return st.addCauses(ctx, tx.Snapshot(), job)
	})
	return job, err
}

// JobWithLevels is Job with what became of the units of each level of the job's
// stages, of the same moment.
func (st *Store) JobWithLevels(ctx context.Context, id mapreduce.JobID) (job *mapreduce.Job, levels []records.LevelProgress, err error) {
	err = st.db.View(ctx, func(tx store.Tx) (err error) {
		if job, levels, err = st.readJob(ctx, tx.Snapshot(), id); err != nil {
			return err
		}
		return st.addCauses(ctx, tx.Snapshot(), job)
	})
	return job, levels, err
}

// addCauses adds to a job what was said of causes of its failed units.
func (rec reader) addCauses(ctx context.Context, r store.Reader, job *mapreduce.Job) error {
	marks, err := causes.Records{Records: rec.Records}.Marks(ctx, r, job.ID)
	for _, m := range marks {
		job.Causes = append(job.Causes, causes.MarkOf(m))
	}
	return err
}

func (rec reader) readJob(ctx context.Context, r store.Reader, id mapreduce.JobID) (*mapreduce.Job, []records.LevelProgress, error) {
	ctl, err := rec.Jobs.Control(ctx, r, id)
	if err != nil {
		return nil, nil, err
	}
	record := new(storagev1.Job)
	if _, err := records.Read(ctx, r, rec.Keys.Job(id).Record(), record); err != nil {
		return nil, nil, err
	}
	c, err := rec.Jobs.Counters(ctx, r, id)
	if err != nil {
		return nil, nil, err
	}
	seal, err := rec.Jobs.LastSeal(ctx, r, id)
	if err != nil {
		return nil, nil, err
	}

	job := &mapreduce.Job{
		ID: id, Spec: records.SpecOf(record.Config), State: mapreduce.JobState(ctl.State), Phase: mapreduce.JobState(ctl.Phase),
		Level: int(min(ctl.Level, records.CountStageLevels(ctl)-1)), Epoch: ctl.Epoch, Error: ctl.Error,
		Created: time.UnixMicro(record.CreatedAtMicros).UTC(), Updated: time.UnixMicro(ctl.UpdatedAtMicros).UTC(),
		TotalUnits: records.TotalUnits(ctl) + c.MappedEarly(ctl), CompletedUnits: c.SumUnits(ctl, keys.Completed), FailedUnits: c.SumUnits(ctl, keys.Failed),
		RunningUnits: c.SumUnits(ctl, keys.Running), ParkedUnits: c.SumLevels(keys.UnitsParked), CostMicros: c.SumLevels(keys.Cost),
		TotalTokens: mapreduce.Tokens{In: c.SumLevels(keys.TokensIn), Out: c.SumLevels(keys.TokensOut)},
		Savings:     c.TotalSavings(),
		AuditHead:   hex.EncodeToString(seal.Hash),
	}

	// Units end without a change of the control record.
	if job.State.Running() {
		if job.Updated, err = rec.lastChange(ctx, r, id, job.Updated); err != nil {
			return nil, nil, err
		}
	}

	rec.noteEnd(job, ctl)
	for _, w := range record.Warnings {
		job.Warnings = append(job.Warnings, w.Text)
	}
	for _, s := range record.Superseded {
		job.Superseded = append(job.Superseded, records.SpentOf(s))
	}

	if job.Plan = records.PlanOf(record.Plan); job.Plan != nil {
		job.Calls = c.SumLevels(keys.Calls)
	}
	job.Coverage = JobCoverage(record, c)
	if job.State == mapreduce.JobComplete {
		job.Phase = mapreduce.JobComplete
	}

	return job, c.ByLevel(ctl), nil
}

// noteEnd notes when a job ended, and when it is to be deleted.
func (rec reader) noteEnd(job *mapreduce.Job, ctl *storagev1.Ctl) {
	if ctl.EndedMicros == 0 {
		return
	}
	job.Ended = time.UnixMicro(ctl.EndedMicros).UTC()
	for _, keep := range []time.Duration{rec.Tenants.RuleOf(mapreduce.TenantID(ctl.Tenant)).Keep, job.Spec.Keep} {
		if at := job.Ended.Add(keep); keep > 0 && (job.DeleteAfter.IsZero() || at.Before(job.DeleteAfter)) {
			job.DeleteAfter = at
		}
	}
}

// lastChange returns the time of the last checkpoint of a job, or since if that is later.
func (rec reader) lastChange(ctx context.Context, r store.Reader, id mapreduce.JobID, since time.Time) (time.Time, error) {
	pairs, _, err := r.GetRange(ctx, rec.Keys.Job(id).Checkpoints(), store.RangeOptions{Limit: 1, Reverse: true})
	if err != nil || len(pairs) == 0 {
		return since, err
	}

	last := new(storagev1.Checkpoint)
	if err := records.Decode(pairs[0].Key, pairs[0].Value, last); err != nil {
		return since, err
	}

	if at := time.UnixMicro(last.TimestampMicros).UTC(); at.After(since) {
		return at, nil
	}
	return since, nil
}

// JobCoverage returns what became of a job's documents and characters.
func JobCoverage(rec *storagev1.Job, c records.Counters) mapreduce.Coverage {
	unread := mapreduce.Ledger{Failed: c.SumLevels(keys.BytesFailed), Skipped: rec.SkippedBytes + c.SumLevels(keys.BytesSkipped)}
	unread.Total = unread.Failed + unread.Skipped

	return mapreduce.Coverage{
		Unread: unread,
		Documents: mapreduce.Ledger{
			Total: rec.Documents, Mapped: c.SumLevels(keys.DocumentsMapped), Failed: c.SumLevels(keys.DocumentsFailed),
			Skipped: rec.SkippedDocuments + c.SumLevels(keys.DocumentsSkipped),
		},
		Characters: mapreduce.Ledger{
			Total: rec.Characters + c.SumLevels(keys.CharactersParsed), Mapped: c.SumLevels(keys.CharactersMapped), Failed: c.SumLevels(keys.CharactersFailed),
		},
	}
}

// Control returns a job's control record as it is now.
func (st *Store) Control(ctx context.Context, id mapreduce.JobID) (*records.Control, error) {
	var control *records.Control
	err := st.db.View(ctx, func(tx store.Tx) error {
		ctl, err := st.Jobs.Control(ctx, tx.Snapshot(), id)
		if err == nil {
			control = records.ControlOf(ctl)
		}
		return err
	})
	return control, err
}

// maxSleepers is how many units of either kind are read with a job.
const maxSleepers = 1000

// Standing returns how a job stands.
func (st *Store) Standing(ctx context.Context, id mapreduce.JobID) (*records.Standing, error) {
	var standing *records.Standing
	err := st.db.View(ctx, func(tx store.Tx) error {
		var ctl storagev1.Ctl
		var job storagev1.Job
		ks := [][]byte{st.Keys.Job(id).Ctl(), st.Keys.Job(id).Record()}
		values, err := tx.Snapshot().GetAll(ctx, ks)
		if err != nil {
			return err
		}

		if values[0] == nil || values[1] == nil {
			return records.NotFound(id)
		}
		if err := errors.Join(records.Decode(ks[0], values[0], &ctl), records.Decode(ks[1], values[1], &job)); err != nil {
			return err
		}

		standing = &records.Standing{Control: records.ControlOf(&ctl), Job: records.JobOf(&job)}
		standing.Sleepers, standing.NextParked, err = st.queues.ListSleepers(ctx, tx.Snapshot(), id, "", maxSleepers)
		return err
	})
	return standing, err
}

// Record returns what was submitted as a job.
func (st *Store) Record(ctx context.Context, id mapreduce.JobID) (*records.Job, error) {
	var job *records.Job
	err := st.db.View(ctx, func(tx store.Tx) error {
		var stored storagev1.Job
		found, err := records.Read(ctx, tx.Snapshot(), st.Keys.Job(id).Record(), &stored)
		if err == nil && !found {
			return records.NotFound(id)
		}

		job = records.JobOf(&stored)
		return err
	})
	return job, err
}

// List returns a page of jobs, newest first.
func (st *Store) List(ctx context.Context, q mapreduce.ListJobsQuery) (*mapreduce.JobPage, error) {
	page := &mapreduce.JobPage{}
	r := st.Keys.RecentJobs()
	if q.Tenant != "" {
		r = st.Keys.Tenant(q.Tenant).Jobs()
	}

	// The list is read backwards; a token is the key before which it goes on.
	if q.PageToken != "" {
		end, err := base64.RawURLEncoding.DecodeString(q.PageToken)
		if err != nil || bytes.Compare(end, r.Begin) < 0 || bytes.Compare(end, r.End) > 0 {
			return nil, errs.Field("page_token", "is not one that a list returned")
		}
		r.End = end
	}

	for len(page.Jobs) < q.PageSize {
		next, more, err := st.listSome(ctx, r, q, page)
		if err != nil {
			return nil, err
		}
		if next != nil {
			r.End = next
		}
		if !more {
			return page, nil
		}
	}

	page.NextPageToken = base64.RawURLEncoding.EncodeToString(r.End)
	return page, nil
}

// Jobs that one transaction of a list reads, and entries of the list that it looks at if
// their states tell that most need not be read.
const (
	listedJobs    = 100
	listedEntries = 2000
)

// listSome appends jobs of one short transaction; next is where it stopped. Of a list by
// states it reads the jobs alone whose entries have one of these, or none.
func (st *Store) listSome(ctx context.Context, r store.Range, q mapreduce.ListJobsQuery, page *mapreduce.JobPage) (next []byte, more bool, err error) {
	var found []*mapreduce.Job
	err = st.db.View(ctx, func(tx store.Tx) error {
		found, next = nil, nil
		s := tx.Snapshot()
		limit := min(listedJobs, q.PageSize+1)
		if len(q.States) > 0 {
			limit = listedEntries
		}

		pairs, m, err := s.GetRange(ctx, r, store.RangeOptions{Limit: limit, Reverse: true})
		if err != nil {
			return err
		}
		more = m

		read := 0
		for _, kv := range pairs {
			if len(page.Jobs)+len(found) >= q.PageSize || read == listedJobs {
				more = true
				break
			}

			if state, known := records.ListedState(kv.Value); known && len(q.States) > 0 && !slices.Contains(q.States, state) {
				next = kv.Key
				continue
			}

			read++
			_, rest, err := st.Keys.Last(kv.Key)
			if err != nil {
				return err
			}

			if q.Tenant != "" {
				rest.Skip()
			}
			rest.Skip() // the time

			job, _, err := st.readJob(ctx, s, mapreduce.JobID(rest.Text()))
			if err != nil {
				return err
			}

			next = kv.Key
			if matchesQuery(q, job) {
				found = append(found, job)
			}
		}
		return nil
	})

	page.Jobs = append(page.Jobs, found...)
	return next, more, err
}

func matchesQuery(q mapreduce.ListJobsQuery, job *mapreduce.Job) bool {
	wanted := len(q.States) == 0 || slices.Contains(q.States, job.State)
	return wanted && label.Match(q.Labels, job.Spec.Labels)
}

// Runs returns the jobs that may run.
func (st *Store) Runs(ctx context.Context) (refs []records.RunRef, err error) {
	err = st.db.View(ctx, func(tx store.Tx) (err error) {
		refs, _, err = st.Jobs.Runs(ctx, tx, 0)
		return err
	})
	return refs, err
}

// Unit returns the record of a unit, or nil.
func (st *Store) Unit(ctx context.Context, id mapreduce.JobID, name mapreduce.UnitID) (u *records.Unit, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		stored, err := st.Units.Read(ctx, tx.Snapshot(), id, name)
		u = records.UnitFrom(stored)
		return err
	})
	return u, err
}

// UnitsFrom returns up to limit units of a level with indexes from from on, in
// order. There may be fewer, but only at the end there are none. Parse units are
// level -1, map units level 0.
func (st *Store) UnitsFrom(ctx context.Context, id mapreduce.JobID, level, from int64, limit int) ([]*records.Unit, error) {
	units, err := st.db.OrderPage(ctx, id, level, from, limit)
	return records.UnitsOfStored(units), err
}

// UnitStandings is UnitsFrom for how the units stand alone, which costs a fraction of it.
func (st *Store) UnitStandings(ctx context.Context, id mapreduce.JobID, level, from int64, limit int) (all []records.UnitStanding, err error) {
	failed := 0
	err = st.db.View(ctx, func(tx store.Tx) (err error) {
		all, err = st.Units.Standings(ctx, tx.Snapshot(), id, level, from, records.ShrinkLimit(limit, records.LeastPage, failed))
		failed++ // should it run again
		return err
	})
	return all, err
}

// UnitsNamed returns units, as far as they are there.
func (st *Store) UnitsNamed(ctx context.Context, id mapreduce.JobID, names []mapreduce.UnitID) ([]*records.Unit, error) {
	var units []*storagev1.Unit
	err := st.db.View(ctx, func(tx store.Tx) (err error) {
		units, err = st.Units.Named(ctx, tx.Snapshot(), id, names)
		return err
	})
	return records.UnitsOfStored(units), err
}

// Inputs returns up to limit of the units whose outputs a unit takes, with indexes from
// from on, in order. There may be fewer, but only at the end there are none.
func (st *Store) Inputs(ctx context.Context, id mapreduce.JobID, reduce *records.Unit, from int64, limit int) ([]*records.Unit, error) {
	in := reduce.Inputs
	if in == nil {
		in = new(records.Inputs)
	}

	units, err := st.db.ReadFitting(ctx, limit, func(r store.Reader, most int) ([]*storagev1.Unit, error) {
		if in.Picked > 0 {
			return st.levels.ReadPicked(ctx, r, id, reduce, from, most)
		}
		return st.Units.In(ctx, r, id, in.Level, from, in.End, most)
	})
	return records.UnitsOfStored(units), err
}

// FirstFailed returns a unit that failed, of the lowest level, or nil.
func (st *Store) FirstFailed(ctx context.Context, id mapreduce.JobID) (u *records.Unit, err error) {
	err = st.db.View(ctx, func(tx store.Tx) error {
		u = nil
		s := tx.Snapshot()
		pairs, _, err := s.GetRange(ctx, st.Keys.Queues(id).AllFailed(), store.RangeOptions{Limit: 1})
		if err != nil || len(pairs) == 0 {
			return err
		}

		_, rest, err := st.Keys.Last(pairs[0].Key)
		if err != nil {
			return err
		}

		// The job and the level stand before the unit.
		rest.Skip()
		rest.Skip()

		stored, err := st.Units.Read(ctx, s, id, mapreduce.UnitID(rest.Text()))
		u = records.UnitFrom(stored)
		return err
	})
	return u, err
}

// Skipped returns documents of a job that were left out, from the n-th on, at
// most limit.
func (st *Store) Skipped(ctx context.Context, id mapreduce.JobID, n int64, limit int) ([]records.SkippedAt, error) {
	var skipped []records.SkippedAt
	err := st.db.View(ctx, func(tx store.Tx) error {
		skipped = nil
		r := st.Keys.Job(id).SkippedDocuments()
		r.Begin = st.Keys.Job(id).Skipped(n)
		pairs, _, err := tx.Snapshot().GetRange(ctx, r, store.RangeOptions{Limit: limit})
		if err != nil {
			return err
		}

		for _, kv := range pairs {
			var s storagev1.Skipped
			if err := records.Decode(kv.Key, kv.Value, &s); err != nil {
				return err
			}
			_, rest, err := st.Keys.Last(kv.Key)
			if err != nil {
				return err
			}

			rest.Skip()
			doc := mapreduce.SkippedDocument{Document: mapreduce.DocumentID(s.DocumentId), Reason: s.Reason}
			skipped = append(skipped, records.SkippedAt{N: rest.Int(), SkippedDocument: doc})
		}
		return nil
	})
	return skipped, err
}
