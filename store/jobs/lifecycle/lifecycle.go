// Package lifecycle is a job from when it is visible to its removal. Levels plans the
// levels of a job step by step, and says how far a level is; Store changes what a job is
// to do: it is paused, fails, is cancelled, deleted or resumed. How it became visible is in
// package staging beside, which it must not import.
package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/jobs/batches"
	"github.com/coditect/mapreduce/store/jobs/causes"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// writer reads and writes what a change of a job takes inside a transaction of its caller.
type writer struct{ *records.Records }

// A Store pauses, fails, cancels, deletes and resumes jobs.
type Store struct {
	db      *records.DB
	causes  *causes.Store
	batches *batches.Store
	writer
}

// New returns the operations on the records of db.
func New(db *records.DB) *Store {
	return &Store{db, causes.New(db), batches.New(db), writer{db.Records()}}
}

// Pause stops a running job's claims, if it is still at epoch, which may be
// AnyEpoch: a node that saw it out of budget must not pause it once it was
// resumed with more. A job that is paused stays so.
func (st *Store) Pause(ctx context.Context, id mapreduce.JobID, epoch int64, why string) error {
	return st.db.ChangeControl(ctx, failpoint.Pause, id, func(_ store.Tx, ctl *storagev1.Ctl) (string, bool, error) {
		state := mapreduce.JobState(ctl.State)
		if state == mapreduce.JobPaused || isSuperseded(ctl, epoch) {
			return "", false, nil
		}

		if !state.Running() {
			return "", false, records.WrongState("pause", id, state)
		}

		ctl.State, ctl.Error = uint32(mapreduce.JobPaused), records.ClipText(why)
		return ctl.Error, true, nil
	})
}

func isSuperseded(ctl *storagev1.Ctl, epoch int64) bool {
	return epoch != records.AnyEpoch && ctl.Epoch != epoch
}

// Fail ends a running job, if it is still at epoch, which may be AnyEpoch. A job
// that does not run stays as it is.
func (st *Store) Fail(ctx context.Context, id mapreduce.JobID, epoch int64, why string) error {
	return st.db.ChangeControl(ctx, failpoint.Fail, id, func(_ store.Tx, ctl *storagev1.Ctl) (string, bool, error) {
		if !mapreduce.JobState(ctl.State).Running() || isSuperseded(ctl, epoch) {
			return "", false, nil
		}
		ctl.State, ctl.Error = uint32(mapreduce.JobFailed), records.ClipText(why)
		return ctl.Error, true, nil
	})
}

// Cancel ends a job that has not ended: from here on its finishes are refused.
// Its units are swept by SweepCancelled.
func (st *Store) Cancel(ctx context.Context, id mapreduce.JobID) error {
	return st.db.ChangeControl(ctx, failpoint.Cancel, id, func(_ store.Tx, ctl *storagev1.Ctl) (string, bool, error) {
		state := mapreduce.JobState(ctl.State)
		if state == mapreduce.JobCancelled {
			return "", false, nil
		}

		if !state.CanBecome(mapreduce.JobCancelled) {
			return "", false, records.WrongState("cancel", id, state)
		}

		ctl.State, ctl.Sweeping, ctl.Resuming = uint32(mapreduce.JobCancelled), true, false
		return "cancelled", true, nil
	})
}

// SweepCancelled marks units of a cancelled job as such, a step at a time,
// beginning with the unit ids from cursor on; it returns the next cursor and
// whether all are done.
func (st *Store) SweepCancelled(ctx context.Context, id mapreduce.JobID, cursor []byte) (next []byte, done bool, err error) {
	err = st.db.Update(ctx, failpoint.Sweep, func(tx store.Tx) error {
		next, done = nil, true
		ctl, err := st.Jobs.Control(ctx, tx, id)
		if err != nil || !ctl.Sweeping {
			return err
		}

		r := st.Keys.Job(id).Units()
		if cursor != nil {
			r.Begin = cursor
		}

		pairs, more, err := tx.GetRange(ctx, r, store.RangeOptions{Limit: records.StepUnits, Bytes: store.TargetTxSize})
		if err != nil {
			return err
		}
		if err := st.cancelUnits(ctx, tx, id, ctl, pairs); err != nil {
			return err
		}

		if more {
			next, done = store.Single(pairs[len(pairs)-1].Key).End, false
			return nil
		}

		// No unit waits any more, so all queues are dropped at once.
		tx.ClearRange(st.Keys.Queues(id).AllReady())
		tx.ClearRange(st.Keys.Queues(id).AllDelayed())
		tx.ClearRange(st.Keys.Queues(id).AllParked())
		tx.ClearRange(st.Keys.Queues(id).AllWoken())

		ctl.Sweeping = false
		tx.Clear(st.Keys.Tenant(mapreduce.TenantID(ctl.Tenant)).Run(id))
		tx.Set(st.Keys.Job(id).Ctl(), records.Encode(ctl))
		return st.Jobs.UpdateRecord(ctx, tx, id, ctl)
	})
	return next, done, err
}

func (rec writer) cancelUnits(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, pairs []store.KeyValue) error {
	changes := queue.NewChanges(rec.Records, tx, id, ctl)

	for _, kv := range pairs {
		u := new(storagev1.Unit)
		if err := records.Decode(kv.Key, kv.Value, u); err != nil {
			return err
		}
		state := mapreduce.UnitState(u.Status)
		if state.Ended() {
			continue
		}

		switch {
		case state == mapreduce.Processing:
			changes.Add(keys.Running, u.Level, -1) // its session stays named: a late report still settles what it spent
		case records.IsParked(u):
			changes.Add(keys.UnitsParked, u.Level, -1)
		}

		u.Queue = nil
		if err := changes.WithdrawLine(ctx, u); err != nil {
			return err
		}
		changes.CancelUnit(u)
		tx.Set(kv.Key, records.Encode(u))
	}

	changes.Record()
	return nil
}

// Delete removes a job that does not run with everything it holds. The log of its tenant
// says that it was there, and whose call has deleted it.
func (st *Store) Delete(ctx context.Context, id mapreduce.JobID) error {
	return st.deleteJob(ctx, id)
}

// deleteJob removes a job that does not run.
func (st *Store) deleteJob(ctx context.Context, id mapreduce.JobID) error {
	begun := false // it was there, so what finds it gone is this delete
	return st.db.Update(ctx, failpoint.Delete, func(tx store.Tx) error {
		ctl, err := st.Jobs.Control(ctx, tx, id)
		if err != nil {
			if begun && errs.KindOf(err) == errs.NotFound {
				return nil
			}
			return err
		}

		begun = true
		return st.removeJob(ctx, tx, id, ctl, "")
	})
}

// removeJob removes a job that does not run, with everything it holds, by a rule or by a call.
func (rec writer) removeJob(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, rule string) error {
	removed, err := rec.settleRemoval(ctx, tx, id, ctl, rule)
	if err != nil {
		return err
	}
	rec.clearJob(tx, removed)
	return nil
}

// leaveBatches leaves the batches of a job behind that their vendors may have: without a record nobody
// would cancel them, and they would be paid for. A call, which names no rule, is refused while a worker
// sees to one: what that comes to belongs to the job.
func (rec writer) leaveBatches(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, job *storagev1.Job, rule string) error {
	pairs, _, err := tx.GetRange(ctx, rec.Keys.Batches(id).All(), store.RangeOptions{})
	if err != nil {
		return err
	}

	for _, kv := range pairs {
		b, holder := new(storagev1.Batch), new(storagev1.Session)
		if err := records.Decode(kv.Key, kv.Value, b); err != nil {
			return err
		}
		if protocol.BatchState(b.State) == protocol.BatchPlanned {
			continue
		}
		if b.Holder != "" {
			if _, err := records.Read(ctx, tx, rec.Keys.Nodes().Session(mapreduce.SessionID(b.Holder)), holder); err != nil {
				return err
			}
		}
		if holder.Node != "" && rule == "" {
			err := errs.New(errs.Unavailable, "batch %s of job %s is open at %s: cancel the job, and delete it once the batch has ended", b.Id, id, b.Provider)
			err.RetryAfter = time.Minute
			return err
		}
		tx.Set(rec.Keys.Batches(id).Orphan(b.Number), records.Encode(orphanOf(b, ctl, job)))
	}
	return nil
}

// orphanOf returns what is kept of a batch whose job is removed.
func orphanOf(b *storagev1.Batch, ctl *storagev1.Ctl, job *storagev1.Job) *storagev1.Orphan {
	o := &storagev1.Orphan{Batch: b, Tenant: ctl.Tenant, Own: b.Provider == job.Config.GetProvider(), Vars: make(map[string]string)}
	for _, name := range protocol.BatchVars() {
		if value, given := job.Config.GetVars()[name]; given {
			o.Vars[name] = value
		}
	}
	return o
}

// A removal is a job that is about to be removed.
type removal struct {
	id  mapreduce.JobID
	ctl *storagev1.Ctl
	job *storagev1.Job
}

// settleRemoval does all of a removal but to clear the job's keys: its tenant's log says that
// the job was there, and the tenant gets back what it used.
func (rec writer) settleRemoval(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, rule string) (removal, error) {
	if state := mapreduce.JobState(ctl.State); !state.Ended() && state != mapreduce.JobPaused {
		return removal{}, records.WrongState("delete", id, state)
	}
	job := new(storagev1.Job)
	if _, err := records.Read(ctx, tx, rec.Keys.Job(id).Record(), job); err != nil {
		return removal{}, err
	}
	if err := rec.leaveBatches(ctx, tx, id, ctl, job, rule); err != nil {
		return removal{}, err
	}

	// The log keeps the head of the audit, which is removed with the job.
	seal, err := rec.Jobs.LastSeal(ctx, tx, id)
	if err != nil {
		return removal{}, err
	}

	err = rec.Tenants.AppendLog(ctx, tx, mapreduce.TenantID(ctl.Tenant), &storagev1.Checkpoint{
		Kind: uint32(mapreduce.EventDeleted), State: ctl.State, Message: "deleted",
		Deleted: &storagev1.Deleted{
			Job: string(id), State: ctl.State, CreatedMicros: job.CreatedAtMicros, EndedMicros: ctl.EndedMicros,
			Retention: rule, AuditNumber: seal.Number, AuditHead: seal.Hash,
		},
	})
	if err != nil {
		return removal{}, err
	}
	if err := rec.Tenants.KeepCosts(ctx, tx, id, ctl); err != nil {
		return removal{}, err
	}
	err = rec.Tenants.ReturnUse(ctx, tx, id, mapreduce.TenantID(ctl.Tenant), ctl.Use)
	return removal{id, ctl, job}, err
}

// clearJob clears all keys of a job.
func (rec writer) clearJob(tx store.Tx, r removal) {
	rec.Jobs.UnlistEnd(tx, r.id, r.ctl)
	for _, owned := range rec.Keys.Job(r.id).Owned() {
		tx.ClearRange(owned)
	}

	created, tenant := r.job.CreatedAtMicros, rec.Keys.Tenant(mapreduce.TenantID(r.ctl.Tenant))
	tx.Clear(rec.Keys.Job(r.id).Ctl())
	tx.Clear(rec.Keys.Job(r.id).Record())
	tx.Clear(rec.Keys.Recent(created, r.id))
	tx.Clear(tenant.Job(created, r.id))
	tx.Clear(tenant.Run(r.id))
	if request := r.job.Config.GetRequestId(); request != "" {
		tx.Clear(tenant.Request(mapreduce.RequestID(request)))
	}
}

// Resume makes a job that does not run go on: failed units get fresh attempts,
// what was made from the levels above them is dropped, to be planned again, and
// the job runs. It goes in steps, and a resume that was interrupted is taken up
// by the next. A running job is left as it is.
func (st *Store) Resume(ctx context.Context, id mapreduce.JobID, r mapreduce.Resume) error {
	t, err := st.newRetrial(ctx, id, r)
	if err != nil {
		return err
	}
	if r.Cause != "" && t.lowest == noneFailed {
		return st.noneCaused(ctx, id)
	}

	for {
		step, err := st.resumeStep(ctx, id, t)
		switch {
		case err != nil || step.done:
			return err
		case step.carried != nil:
			t.carried = *step.carried
			continue
		case step.uncounted != nil:
			// What has failed is read whole, so that is done last, and once.
			if t.counts, err = st.causes.Count(ctx, id, step.uncounted); err != nil {
				return err
			}
			continue
		case step.linesAbove:
			if err := st.batches.Withdraw(ctx, id, firstAbove(step.level)); err != nil {
				return err
			}
			t.withdrawn = true
			continue
		case step.changed: // so what is tried again is read anew
		default:
			if err := st.retryFailed(ctx, id, step.level, t.pick); err != nil {
				return err
			}
		}

		if t, err = st.newRetrial(ctx, id, r); err != nil {
			return err
		}
	}
}

// noneCaused is what a resume comes to whose cause no failed unit has: a job that runs is left as
// it is, as by any resume.
func (st *Store) noneCaused(ctx context.Context, id mapreduce.JobID) error {
	return st.db.View(ctx, func(tx store.Tx) error {
		ctl, err := st.Jobs.Control(ctx, tx, id)
		if err != nil || mapreduce.JobState(ctl.State).Running() {
			return err
		}
		return errs.New(errs.Precondition, "no unit of job %s has failed for this cause", id)
	})
}

// A retrial is which failed units a resume tries again, and how far it is with them.
type retrial struct {
	mapreduce.Resume
	pick    causes.Pick      // nil: all of them
	lowest  int64            // level of those, or noneFailed; if not all are tried again
	carried carrying         // how far levels were carried that are to be dropped
	counts  map[string]int64 // how many units failed for each cause that is marked, once they are counted

	withdrawn bool // lines above the level were taken back that no vendor has
}

// newRetrial returns what a resume tries again of a job as it stands.
func (st *Store) newRetrial(ctx context.Context, id mapreduce.JobID, r mapreduce.Resume) (*retrial, error) {
	t := &retrial{Resume: r, lowest: noneFailed}
	var err error
	if r.Cause != "" {
		t.pick = causes.Only(r.Cause)
	} else if t.pick, err = st.causes.NotIgnored(ctx, id); err != nil {
		return nil, err
	}

	if t.pick == nil {
		return t, nil
	}
	level, found, err := st.causes.Lowest(ctx, id, t.pick)
	if found {
		t.lowest = level
	}
	return t, err
}

// A resuming is the result of one step of a resume.
type resuming struct {
	done      bool            // the job goes on
	changed   bool            // another has changed the job since units were picked
	carried   *carrying       // not nil: so far, before levels can be dropped
	uncounted map[string]bool // not nil: causes whose units are to be counted before the job goes on
	level     int64           // else: whose failed units are to be tried again

	linesAbove bool // before that, lines of the levels above it are to be taken back
}

// resumeStep is one step of a resume.
func (st *Store) resumeStep(ctx context.Context, id mapreduce.JobID, t *retrial) (step resuming, err error) {
	err = st.db.Update(ctx, failpoint.Resume, func(tx store.Tx) error {
		step = resuming{done: true}
		ctl, err := st.Jobs.Control(ctx, tx, id)
		if err != nil {
			return err
		}

		if t.carried.epoch != 0 && t.carried.epoch != ctl.Epoch {
			step = resuming{changed: true}
			return nil
		}

		state := mapreduce.JobState(ctl.State)
		failed, err := st.lowestFailed(ctx, tx, id)
		if err != nil {
			return err
		}

		if t.pick != nil {
			failed = t.lowest // all others stay as they are
		}
		if err := checkResumable(id, state, failed != noneFailed, ctl.Resuming); err != nil {
			return err
		}

		if err := checkCurrency(id, ctl, t.Resume); err != nil {
			return err
		}
		if err := st.checkDeadline(ctx, tx, id, t.Resume); err != nil {
			return err
		}
		if t.Budget > 0 {
			ctl.Budget = t.Budget
		}

		// A job that runs only gets its budget and its deadline.
		if state.Running() {
			return st.change(ctx, tx, id, ctl, t.Resume)
		}

		if failed != noneFailed {
			step = resuming{level: failed}
			if !t.withdrawn {
				step.linesAbove, err = st.haveLinesAbove(ctx, tx, id, failed)
			}
			if err != nil || step.linesAbove {
				return err
			}

			if err := st.causes.Retry(ctx, tx, id, t.Cause); err != nil {
				return err
			}
			step.carried, err = st.dropAbove(ctx, tx, id, ctl, failed, t.carried)
			return err
		}

		uncounted, err := st.causes.Recount(ctx, tx, id, t.counts)
		if err != nil {
			return err
		}
		if uncounted != nil {
			step = resuming{uncounted: uncounted}
			return nil
		}
		return st.finishResume(ctx, tx, id, ctl, t.Resume)
	})
	return step, err
}

// noneFailed is what lowestFailed returns when no unit failed.
const noneFailed = -2

func (rec writer) lowestFailed(ctx context.Context, tx store.Tx, id mapreduce.JobID) (int64, error) {
	pairs, _, err := tx.GetRange(ctx, rec.Keys.Queues(id).AllFailed(), store.RangeOptions{Limit: 1})
	if err != nil || len(pairs) == 0 {
		return noneFailed, err
	}
	_, rest, err := rec.Keys.Last(pairs[0].Key)
	rest.Skip()
	return rest.Int(), err
}

func checkResumable(id mapreduce.JobID, s mapreduce.JobState, failures, resuming bool) error {
	switch {
	case s == mapreduce.JobCancelled:
		return records.WrongState("resume", id, s)
	case s == mapreduce.JobComplete && !failures && !resuming:
		return &errs.Error{
			Kind: errs.Precondition, Reason: errs.JobComplete,
			Message: fmt.Sprintf("cannot resume job %s: it is complete, and no unit of it failed whose cause is not ignored", id),
		}
	}
	return nil
}

// checkCurrency refuses a budget in another currency than the job's: what its units have reserved, and
// what was granted of it, is in that.
func checkCurrency(id mapreduce.JobID, ctl *storagev1.Ctl, r mapreduce.Resume) error {
	in := records.CurrencyOf(ctl)
	if r.Budget == 0 || r.BudgetIn == in {
		return nil
	}
	if ctl.Budget == 0 {
		return errs.New(errs.Precondition, "job %s was submitted without %s: give %s, or submit it anew", id, r.BudgetIn.Flag(), in.Flag())
	}
	return errs.New(errs.Precondition, "the budget of job %s is %s: give %s", id, in.Text(ctl.Budget), in.Flag())
}

// checkDeadline refuses a deadline of a job that has none: its units were made ready without one.
func (rec writer) checkDeadline(ctx context.Context, tx store.Tx, id mapreduce.JobID, r mapreduce.Resume) error {
	if r.Deadline.IsZero() {
		return nil
	}

	job := new(storagev1.Job)
	if _, err := records.Read(ctx, tx.Snapshot(), rec.Keys.Job(id).Record(), job); err != nil {
		return err
	}
	if job.GetConfig().GetDeadlineMicros() == 0 {
		return errs.New(errs.Precondition, "job %s was submitted without a deadline: leave it out, or submit the job anew", id)
	}
	return nil
}

// change gives a job that runs what a resume changes of it.
func (rec writer) change(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, r mapreduce.Resume) error {
	var said []string
	if r.Budget > 0 {
		said = append(said, "budget set to "+r.BudgetIn.Text(r.Budget))
	}
	if !r.Deadline.IsZero() {
		said = append(said, "deadline set to "+r.Deadline.UTC().Format(time.RFC3339))
	}
	if len(said) == 0 {
		return nil
	}

	if err := rec.setSpec(ctx, tx, id, r); err != nil {
		return err
	}
	return rec.Jobs.WriteControl(ctx, tx, id, ctl, strings.Join(said, ", "))
}

// setSpec stores what a resume changes of the spec of a job.
func (rec writer) setSpec(ctx context.Context, tx store.Tx, id mapreduce.JobID, r mapreduce.Resume) error {
	if r.Budget == 0 && r.Deadline.IsZero() {
		return nil
	}
	job := new(storagev1.Job)
	if _, err := records.Read(ctx, tx, rec.Keys.Job(id).Record(), job); err != nil {
		return err
	}

	if r.Budget > 0 {
		job.Config.Budget = r.Budget
	}
	if !r.Deadline.IsZero() {
		job.Config.DeadlineMicros = r.Deadline.UnixMicro()
	}
	tx.Set(rec.Keys.Job(id).Record(), records.Encode(job))
	return nil
}

// interruptLevel begins a resume from a level.
func (rec writer) interruptLevel(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, level int64) error {
	ctl.Level = min(ctl.Level, level)
	if ctl.Resuming {
		tx.Set(rec.Keys.Job(id).Ctl(), records.Encode(ctl))
		return nil
	}

	// The earlier result is invalid from now on, and must not be shown.
	ctl.Resuming = true
	ctl.State, ctl.Error = uint32(mapreduce.JobPaused), "failed units are being put back, to be tried again; if their number does not fall, that was interrupted: resume again"
	return rec.Jobs.WriteControl(ctx, tx, id, ctl, "resuming")
}

// firstAbove returns the lowest level whose units may have read what the failed units of a level return: map units read
// documents that others parse, each its own.
func firstAbove(failed int64) int64 { return max(failed, 0) + 1 }

// haveLinesAbove reports whether lines of units are open that may have read what the failed units of a level return.
func (rec writer) haveLinesAbove(ctx context.Context, tx store.Tx, id mapreduce.JobID, failed int64) (bool, error) {
	// Whether none is left is read once more, by level, when the levels are dropped.
	all, err := rec.Jobs.Counters(ctx, tx.Snapshot(), id)
	for at, n := range all {
		if at.Name == keys.LinesOpen && at.Level >= firstAbove(failed) && n > 0 {
			return true, nil
		}
	}
	return false, err
}

// LastKept returns the last level that a resume keeps which tries the failed units of
// a level again: that level, or the whole of a tree that was planned at once,
// whose units wait for their inputs again. Of a job that parses documents again,
// the units of the others are kept.
func LastKept(ctl *storagev1.Ctl, failed int64) int64 {
	if failed >= 0 && failed <= ctl.TreeTop {
		return ctl.TreeTop
	}
	return max(failed, 0)
}

// dropAbove removes the levels above those that are kept when the failed units of
// a level are tried again: what they were made of changes. What their units have
// spent is carried before, from at on: if that takes more than this step, it
// returns how far it came.
func (rec writer) dropAbove(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, level int64, at carrying) (*carrying, error) {
	begun, err := rec.levelsBegun(ctx, tx, id, ctl)
	if err != nil {
		return nil, err
	}

	first := LastKept(ctl, level) + 1
	for l := first; l < int64(len(begun)); l++ {
		if err := rec.checkNoneRuns(ctx, tx, id, l); err != nil {
			return nil, err
		}
	}

	next, err := rec.carrySpent(ctx, tx, id, ctl, at, first, begun)
	if err != nil {
		return nil, err
	}

	if next != nil {
		err := rec.interruptLevel(ctx, tx, id, ctl, ctl.Level) // the levels are there yet
		next.epoch = ctl.Epoch
		return next, err
	}

	for l := first; l < int64(len(begun)); l++ {
		rec.Units.DropLevel(tx, id, l, begun[l], ctl.Shards)
	}
	return nil, rec.returnToLevel(ctx, tx, id, ctl, level)
}

// levelsBegun returns the levels of a job that may have units: those that are
// planned, and those that are planned in part.
func (rec writer) levelsBegun(ctx context.Context, r store.Reader, id mapreduce.JobID, ctl *storagev1.Ctl) ([]*storagev1.Level, error) {
	all := slices.Clone(ctl.Levels)
	cursor := new(storagev1.Plan)
	found, err := records.Read(ctx, r, rec.Keys.Plans(id).Cursor(max(1, records.CountLevels(ctl))), cursor)
	if err != nil || !found {
		return all, err
	}

	all = append(all, cursor.Levels...)
	if cursor.Plan != nil {
		all = append(all, cursor.Plan)
	}
	return all, nil
}

// returnToLevel turns a job back to a level whose failed units are tried again. The
// levels above those that are kept are dropped.
func (rec writer) returnToLevel(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, level int64) error {
	last := LastKept(ctl, level)
	if err := rec.Jobs.RecordWarnings(ctx, tx, id, last+1, nil); err != nil {
		return err
	}
	ctl.Levels = ctl.Levels[:min(records.CountLevels(ctl), last+1)]
	if last < ctl.TreeTop {
		ctl.TreeTop = 0
	}
	return rec.interruptLevel(ctx, tx, id, ctl, level)
}

// checkNoneRuns fails while a unit of the level runs: what the unit spends has to be
// counted
// before the level is dropped.
func (rec writer) checkNoneRuns(ctx context.Context, tx store.Tx, id mapreduce.JobID, level int64) error {
	running, err := rec.Jobs.Counter(ctx, tx, id, keys.Running, level)
	if err != nil {
		return err
	}

	if running > 0 {
		return &errs.Error{
			Kind: errs.Unavailable, Reason: records.UnitsRunning, RetryAfter: time.Second,
			Message: fmt.Sprintf("%d units of level %d of job %s still run", running, level, id),
		}
	}

	// What a batch answers is settled with the unit that asked. Lines that no vendor has were taken back before.
	open, err := rec.Jobs.Counter(ctx, tx, id, keys.LinesOpen, level)
	if err == nil && open > 0 {
		err = errs.New(errs.Precondition, "%d units of level %d of job %s wait for batches at the vendor of their model, and what they read is to be made anew; resume it once these have ended", open, level, id)
	}
	return err
}

// finishResume is the last step of a resume.
func (rec writer) finishResume(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, r mapreduce.Resume) error {
	if err := rec.setSpec(ctx, tx, id, r); err != nil {
		return err
	}

	state := uint32(mapreduce.Decomposition)
	if ctl.Level >= 0 {
		state = records.LevelAt(ctl, ctl.Level).GetPhase()
	}

	ctl.State, ctl.Error, ctl.Resuming = state, "", false
	return rec.Jobs.WriteControl(ctx, tx, id, ctl, records.Resumed)
}

// retryFailed puts a level's failed units back into their queue, in steps: those that are picked.
func (st *Store) retryFailed(ctx context.Context, id mapreduce.JobID, level int64, pick causes.Pick) error {
	left := st.Keys.Queues(id).FailedLevel(level)
	for done := false; !done; {
		tried := 0
		var next store.Range // what is left behind this step
		err := st.db.Update(ctx, failpoint.Retry, func(tx store.Tx) error {
			// Each run that fails asks for fewer units.
			room := records.StepRoom(tried)
			tried++

			ctl, err := st.Jobs.Control(ctx, tx, id)
			if err != nil {
				return err
			}

			if !ctl.Resuming || mapreduce.JobState(ctl.State).Running() {
				return errs.New(errs.Aborted, "job %s is being changed by another request; try again", id)
			}

			pairs, more, err := tx.GetRange(ctx, left, store.RangeOptions{Limit: room})
			if err != nil {
				return err
			}

			// Units that are not picked are passed over, once all others before them are back.
			next = left
			if pick != nil && len(pairs) > 0 {
				next.Begin = store.Single(pairs[len(pairs)-1].Key).End
				if pairs, err = st.causes.Picked(ctx, tx, id, pairs, pick); err != nil {
					return err
				}
			}

			rest, err := queue.NewChanges(st.db.Records(), tx, id, ctl).RetryUnits(ctx, pairs)
			done = !more && !rest
			if rest {
				next = left
			}
			return err
		})
		if err != nil {
			return err
		}
		left = next
	}

	return nil
}
