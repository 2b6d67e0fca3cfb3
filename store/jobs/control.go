package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/keys"
)

// changeControl turns the switch of a job: it runs fn on it in a transaction, and if
// fn returns true writes it with its epoch raised, the record for display, and
// the event.
func (d *DB) changeControl(ctx context.Context, s failpoint.Step, id mapreduce.JobID, fn func(tx store.Tx, ctl *storagev1.Ctl) (message string, changed bool, err error)) error {
	return d.update(ctx, s, func(tx store.Tx) error {
		ctl, err := d.records.readControl(ctx, tx, id)
		if err != nil {
			return err
		}
		message, changed, err := fn(tx, ctl)
		if err != nil || !changed {
			return err
		}
		return d.records.writeControl(ctx, tx, id, ctl, message)
	})
}

// writeControl writes a changed control record with its epoch raised, the record for
// display, the list of jobs that run, and the event with a message.
func (j *Records) writeControl(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, message string) error {
	ctl.Epoch++
	ctl.UpdatedAtMicros = j.nowMicros()
	if mapreduce.JobState(ctl.State).Running() {
		ctl.Phase = ctl.State
	}
	if isListed(ctl) { // also the job that was paused: a cancel that is not done has to be seen to
		j.setRun(tx, id, ctl)
	} else {
		tx.Clear(j.keys.Run(mapreduce.TenantID(ctl.Tenant), id))
	}
	tx.Set(j.keys.Ctl(id), encode(ctl))
	j.addCheckpoint(tx, id, &storagev1.Checkpoint{
		Kind: uint32(mapreduce.EventState), State: ctl.State, Level: ctl.Level, Epoch: ctl.Epoch, Message: message,
	})
	j.wakeOthers(tx)
	return j.updateRecord(ctx, tx, id, ctl)
}

// updateRecord brings the job's record up to date. The counters are read by
// snapshot: they are for people here.
func (j *Records) updateRecord(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl) error {
	job := new(storagev1.Job)
	if _, err := read(ctx, tx.Snapshot(), j.keys.Job(id), job); err != nil {
		return err
	}
	c, err := j.readCounters(ctx, tx.Snapshot(), id)
	if err != nil {
		return err
	}
	job.Status, job.UpdatedAtMicros, job.Error = ctl.State, ctl.UpdatedAtMicros, ctl.Error
	job.TotalUnits = totalUnits(ctl)
	job.CompletedUnits = c.sumLevels(keys.Completed)
	job.TotalTokens = c.sumLevels(keys.TokensIn) + c.sumLevels(keys.TokensOut)
	tx.Set(j.keys.Job(id), encode(job))
	return nil
}

// totalUnits returns how many units of a job are planned, the parse units counted.
func totalUnits(ctl *storagev1.Ctl) int64 {
	n := ctl.ParseUnits
	for _, l := range ctl.Levels {
		n += l.Units
	}
	return n
}

// AnyEpoch lets a change of a job be made whatever happened to the job before.
const AnyEpoch = 0

// Pause stops a running job's claims, if it is still at epoch, which may be
// AnyEpoch: a node that saw it out of budget must not pause it once it was
// resumed with more. A job that is paused stays so.
func (j *LifecyclePart) Pause(ctx context.Context, id mapreduce.JobID, epoch int64, why string) error {
	return j.db.changeControl(ctx, failpoint.Pause, id, func(_ store.Tx, ctl *storagev1.Ctl) (string, bool, error) {
		state := mapreduce.JobState(ctl.State)
		if state == mapreduce.JobPaused || isSuperseded(ctl, epoch) {
			return "", false, nil
		}
		if !state.Running() {
			return "", false, wrongState("pause", id, state)
		}
		ctl.State, ctl.Error = uint32(mapreduce.JobPaused), clipText(why)
		return ctl.Error, true, nil
	})
}

func isSuperseded(ctl *storagev1.Ctl, epoch int64) bool {
	return epoch != AnyEpoch && ctl.Epoch != epoch
}

// wrongState returns the error of a change that a job in a state does not allow.
func wrongState(verb string, id mapreduce.JobID, s mapreduce.JobState) error {
	return &errs.Error{
		Kind: errs.Precondition, Reason: "JOB_STATE",
		Message: fmt.Sprintf("cannot %s job %s: it is %s", verb, id, s),
	}
}

// Fail ends a running job, if it is still at epoch, which may be AnyEpoch. A job
// that does not run stays as it is.
func (j *LifecyclePart) Fail(ctx context.Context, id mapreduce.JobID, epoch int64, why string) error {
	return j.db.changeControl(ctx, failpoint.Fail, id, func(_ store.Tx, ctl *storagev1.Ctl) (string, bool, error) {
		if !mapreduce.JobState(ctl.State).Running() || isSuperseded(ctl, epoch) {
			return "", false, nil
		}
		ctl.State, ctl.Error = uint32(mapreduce.JobFailed), clipText(why)
		return ctl.Error, true, nil
	})
}

// Cancel ends a job that has not ended: from here on its finishes are refused.
// Its units are swept by SweepCancelled.
func (j *LifecyclePart) Cancel(ctx context.Context, id mapreduce.JobID) error {
	return j.db.changeControl(ctx, failpoint.Cancel, id, func(_ store.Tx, ctl *storagev1.Ctl) (string, bool, error) {
		state := mapreduce.JobState(ctl.State)
		if state == mapreduce.JobCancelled {
			return "", false, nil
		}
		if !state.CanBecome(mapreduce.JobCancelled) {
			return "", false, wrongState("cancel", id, state)
		}
		ctl.State, ctl.Sweeping, ctl.Resuming = uint32(mapreduce.JobCancelled), true, false
		return "cancelled", true, nil
	})
}

// SweepCancelled marks units of a cancelled job as such, a step at a time,
// beginning with the unit ids from cursor on; it returns the next cursor and
// whether all are done.
func (j *LifecyclePart) SweepCancelled(ctx context.Context, id mapreduce.JobID, cursor []byte) (next []byte, done bool, err error) {
	err = j.db.update(ctx, failpoint.Sweep, func(tx store.Tx) error {
		next, done = nil, true
		ctl, err := j.readControl(ctx, tx, id)
		if err != nil || !ctl.Sweeping {
			return err
		}
		r := j.keys.Units(id)
		if cursor != nil {
			r.Begin = cursor
		}
		pairs, more, err := tx.GetRange(ctx, r, store.RangeOptions{Limit: stepUnits, Bytes: store.TargetTxSize})
		if err != nil {
			return err
		}
		if err := j.cancelUnits(tx, id, pairs); err != nil {
			return err
		}
		if more {
			next, done = store.Single(pairs[len(pairs)-1].Key).End, false
			return nil
		}
		tx.ClearRange(j.keys.ReadyAll(id))
		tx.ClearRange(j.keys.DelayedAll(id))
		tx.ClearRange(j.keys.ParkedAll(id))
		tx.ClearRange(j.keys.WokenAll(id))
		ctl.Sweeping = false
		tx.Clear(j.keys.Run(mapreduce.TenantID(ctl.Tenant), id))
		tx.Set(j.keys.Ctl(id), encode(ctl))
		return j.updateRecord(ctx, tx, id, ctl)
	})
	return next, done, err
}

func (j lifecycleWriter) cancelUnits(tx store.Tx, id mapreduce.JobID, pairs []store.KeyValue) error {
	left := make(map[counterAt]int64)
	for _, kv := range pairs {
		u := new(storagev1.Unit)
		if err := decode(kv.Key, kv.Value, u); err != nil {
			return err
		}
		state := mapreduce.UnitState(u.Status)
		if state.Ended() {
			continue
		}
		switch {
		case state == mapreduce.Processing:
			left[counterAt{keys.Running, u.Level}]++ // its session stays named: a late report still settles what it spent
		case isParked(u):
			left[counterAt{keys.UnitsParked, u.Level}]++
		}
		u.Status, u.Queue = uint32(mapreduce.UnitCancelled), nil
		tx.Set(kv.Key, encode(u))
	}
	for at, n := range left {
		tx.Add(j.keys.Counter(id, at.name, at.level, j.node), -n)
	}
	return nil
}

// Delete removes a job that does not run with everything it holds.
func (j *LifecyclePart) Delete(ctx context.Context, id mapreduce.JobID) error {
	begun := false // it was there, so what finds it gone is this delete
	return j.db.update(ctx, failpoint.Delete, func(tx store.Tx) error {
		ctl, err := j.readControl(ctx, tx, id)
		if err != nil {
			if begun && errs.KindOf(err) == errs.NotFound {
				return nil
			}
			return err
		}
		begun = true
		if state := mapreduce.JobState(ctl.State); !state.Ended() && state != mapreduce.JobPaused {
			return wrongState("delete", id, state)
		}
		job := new(storagev1.Job)
		if _, err := read(ctx, tx, j.keys.Job(id), job); err != nil {
			return err
		}
		for _, r := range j.keys.Owned(id) {
			tx.ClearRange(r)
		}
		tx.Clear(j.keys.Ctl(id))
		tx.Clear(j.keys.Job(id))
		tx.Clear(j.keys.Recent(job.CreatedAtMicros, id))
		tx.Clear(j.keys.Run(mapreduce.TenantID(ctl.Tenant), id))
		if r := job.Config.GetRequestId(); r != "" {
			tx.Clear(j.keys.Idem(mapreduce.TenantID(ctl.Tenant), mapreduce.RequestID(r)))
		}
		return nil
	})
}

// Resume makes a job that does not run go on: failed units get fresh attempts,
// what was made from the levels above them is dropped, to be planned again, and
// the job runs. It goes in steps, and a resume that was interrupted is taken up
// by the next. A running job is left as it is.
func (j *LifecyclePart) Resume(ctx context.Context, id mapreduce.JobID, r mapreduce.Resume) error {
	var at carrying
	for {
		step, err := j.resumeStep(ctx, id, r, at)
		switch {
		case err != nil || step.done:
			return err
		case step.carried != nil:
			at = *step.carried
			continue
		}
		if err := j.retryFailed(ctx, id, step.level); err != nil {
			return err
		}
	}
}

// A resuming is what a step of a resume came to.
type resuming struct {
	done    bool      // the job goes on
	carried *carrying // not nil: so far, before levels can be dropped
	level   int64     // else: whose failed units are to be tried again
}

// resumeStep is one step of a resume. Levels that it drops were carried up to at.
func (j *LifecyclePart) resumeStep(ctx context.Context, id mapreduce.JobID, r mapreduce.Resume, at carrying) (step resuming, err error) {
	err = j.db.update(ctx, failpoint.Resume, func(tx store.Tx) error {
		step = resuming{done: true}
		ctl, err := j.readControl(ctx, tx, id)
		if err != nil {
			return err
		}
		state := mapreduce.JobState(ctl.State)
		failed, err := j.lowestFailed(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := checkResumable(id, state, failed != noneFailed, ctl.Resuming); err != nil {
			return err
		}
		if r.Budget > 0 {
			ctl.Budget = r.Budget
		}
		if state.Running() {
			return j.raiseBudget(ctx, tx, id, ctl, r)
		}
		if failed != noneFailed {
			step = resuming{level: failed}
			step.carried, err = j.dropAbove(ctx, tx, id, ctl, failed, at)
			return err
		}
		return j.finishResume(ctx, tx, id, ctl, r)
	})
	return step, err
}

// noneFailed is what lowestFailed returns when no unit failed.
const noneFailed = -2

func (j lifecycleWriter) lowestFailed(ctx context.Context, tx store.Tx, id mapreduce.JobID) (int64, error) {
	pairs, _, err := tx.GetRange(ctx, j.keys.FailedAll(id), store.RangeOptions{Limit: 1})
	if err != nil || len(pairs) == 0 {
		return noneFailed, err
	}
	_, rest, err := j.keys.Last(pairs[0].Key)
	rest.Skip()
	return rest.Int(), err
}

func checkResumable(id mapreduce.JobID, s mapreduce.JobState, failures, resuming bool) error {
	switch {
	case s == mapreduce.JobCancelled:
		return wrongState("resume", id, s)
	case s == mapreduce.JobComplete && !failures && !resuming:
		return &errs.Error{
			Kind: errs.Precondition, Reason: "JOB_COMPLETE",
			Message: fmt.Sprintf("cannot resume job %s: it is complete, and no unit of it failed", id),
		}
	}
	return nil
}

func (j lifecycleWriter) raiseBudget(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, r mapreduce.Resume) error {
	if r.Budget == 0 {
		return nil
	}
	if err := j.setBudget(ctx, tx, id, r.Budget); err != nil {
		return err
	}
	return j.writeControl(ctx, tx, id, ctl, fmt.Sprintf("budget set to %d tokens", r.Budget))
}

func (j lifecycleWriter) setBudget(ctx context.Context, tx store.Tx, id mapreduce.JobID, budget int64) error {
	job := new(storagev1.Job)
	if _, err := read(ctx, tx, j.keys.Job(id), job); err != nil {
		return err
	}
	job.Config.Budget = budget
	tx.Set(j.keys.Job(id), encode(job))
	return nil
}

// interruptLevel is what a resume begins with that goes on from a level.
func (j lifecycleWriter) interruptLevel(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, level int64) error {
	ctl.Level = min(ctl.Level, level)
	if ctl.Resuming {
		tx.Set(j.keys.Ctl(id), encode(ctl))
		return nil
	}
	// What there was is no result any more, and nobody must take it for one.
	ctl.Resuming = true
	ctl.State, ctl.Error = uint32(mapreduce.JobPaused), "a resume was interrupted; resume again"
	return j.writeControl(ctx, tx, id, ctl, "resuming")
}

// lastKept returns the last level that a resume keeps which tries the failed units of
// a level again: that level, or the whole of a tree that was planned at once,
// whose units wait for their inputs again. Of a job that parses documents again,
// the units of the others are kept.
func lastKept(ctl *storagev1.Ctl, failed int64) int64 {
	if failed >= 0 && failed <= ctl.TreeTop {
		return ctl.TreeTop
	}
	return max(failed, 0)
}

// dropAbove removes the levels above those that are kept when the failed units of
// a level are tried again: what they were made of changes. What their units have
// spent is carried before, from at on: if that takes more than this step, it
// returns how far it came.
func (j lifecycleWriter) dropAbove(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, level int64, at carrying) (*carrying, error) {
	begun, err := j.levelsBegun(ctx, tx, id, ctl)
	if err != nil {
		return nil, err
	}
	first := lastKept(ctl, level) + 1
	for l := first; l < int64(len(begun)); l++ {
		if err := j.checkNoneRuns(ctx, tx, id, l); err != nil {
			return nil, err
		}
	}
	next, err := j.carrySpent(ctx, tx, id, ctl, at, first, begun)
	if err != nil {
		return nil, err
	}
	if next != nil {
		err := j.interruptLevel(ctx, tx, id, ctl, ctl.Level) // the levels are there yet
		next.epoch = ctl.Epoch
		return next, err
	}
	for l := first; l < int64(len(begun)); l++ {
		j.dropLevel(tx, id, l, begun[l], ctl.Shards)
	}
	return nil, j.returnToLevel(ctx, tx, id, ctl, level)
}

// levelsBegun returns the levels of a job that may have units: those that are
// planned, and those that are planned in part.
func (j lifecycleWriter) levelsBegun(ctx context.Context, r store.Reader, id mapreduce.JobID, ctl *storagev1.Ctl) ([]*storagev1.Level, error) {
	all := slices.Clone(ctl.Levels)
	cursor := new(storagev1.Plan)
	found, err := read(ctx, r, j.keys.Plan(id, max(1, Levels(ctl))), cursor)
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
func (j lifecycleWriter) returnToLevel(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, level int64) error {
	last := lastKept(ctl, level)
	if err := j.recordWarnings(ctx, tx, id, last+1, nil); err != nil {
		return err
	}
	ctl.Levels = ctl.Levels[:min(Levels(ctl), last+1)]
	if last < ctl.TreeTop {
		ctl.TreeTop = 0
	}
	return j.interruptLevel(ctx, tx, id, ctl, level)
}

// UnitsRunning is the reason of the error with which Resume says that it has to
// wait.
const UnitsRunning = "UNITS_RUNNING"

// checkNoneRuns fails while a unit of the level runs: what it spends has to be counted
// before it is dropped.
func (j lifecycleWriter) checkNoneRuns(ctx context.Context, tx store.Tx, id mapreduce.JobID, level int64) error {
	running, err := j.readCounter(ctx, tx, id, keys.Running, level)
	if err != nil {
		return err
	}
	if running > 0 {
		return &errs.Error{
			Kind: errs.Unavailable, Reason: UnitsRunning, RetryAfter: time.Second,
			Message: fmt.Sprintf("%d units of level %d of job %s still run", running, level, id),
		}
	}
	return nil
}

// unitKeys returns the range of the records of a level's units, of a level other
// than 0.
func (j *Records) unitKeys(id mapreduce.JobID, l *storagev1.Level) store.Range {
	if l.Unit != "" {
		return store.Single(j.keys.Unit(id, mapreduce.UnitID(l.Unit)))
	}
	return j.keys.NumberedUnits(id, l.Prefix)
}

// dropLevel clears a level above 0: its units, their results and queue entries,
// and its counters. The ids of its units share a prefix, so that takes a few range
// clears however many there are.
func (j *Records) dropLevel(tx store.Tx, id mapreduce.JobID, level int64, l *storagev1.Level, shards int64) {
	tx.ClearRange(j.unitKeys(id, l))
	if unit := mapreduce.UnitID(l.Unit); unit != "" {
		tx.Clear(j.keys.Delayed(id, unit))
		tx.Clear(j.keys.Parked(id, unit))
		tx.Clear(j.keys.Woken(id, unit))
		tx.ClearRange(j.keys.Results(id, unit))
		tx.ClearRange(j.keys.State(id, unit))
	} else {
		tx.ClearRange(j.keys.NumberedResults(id, l.Prefix))
		tx.ClearRange(j.keys.NumberedDelayed(id, l.Prefix))
		tx.ClearRange(j.keys.NumberedParked(id, l.Prefix))
		tx.ClearRange(j.keys.NumberedWoken(id, l.Prefix))
		tx.ClearRange(j.keys.NumberedStates(id, l.Prefix))
	}
	tx.ClearRange(j.keys.FailedLevel(id, level))
	tx.ClearRange(j.keys.PicksLevel(id, level))
	tx.ClearRange(j.keys.WaitLevel(id, level))
	tx.Clear(j.keys.Plan(id, level))
	for shard := range shards {
		tx.ClearRange(j.keys.ReadyLevel(id, shard, keys.ClassRequeued, level))
		tx.ClearRange(j.keys.ReadyLevel(id, shard, keys.ClassNew, level))
	}
	for _, c := range []keys.Counter{keys.Completed, keys.Failed, keys.Size, keys.Running, keys.UnitsParked} {
		tx.ClearRange(j.keys.CounterStripes(id, c, level))
	}
}

// resumed is the message of the event that ends a resume: what came before it
// in the ledger may have been dropped since.
const resumed = "resumed"

// finishResume is the last step of a resume.
func (j lifecycleWriter) finishResume(ctx context.Context, tx store.Tx, id mapreduce.JobID, ctl *storagev1.Ctl, r mapreduce.Resume) error {
	if r.Budget > 0 {
		if err := j.setBudget(ctx, tx, id, r.Budget); err != nil {
			return err
		}
	}
	state := uint32(mapreduce.Decomposition)
	if ctl.Level >= 0 {
		state = levelAt(ctl, ctl.Level).GetPhase()
	}
	ctl.State, ctl.Error, ctl.Resuming = state, "", false
	return j.writeControl(ctx, tx, id, ctl, resumed)
}

// retryFailed puts a level's failed units back into their queue, in steps.
func (j *LifecyclePart) retryFailed(ctx context.Context, id mapreduce.JobID, level int64) error {
	for done := false; !done; {
		tried := 0
		err := j.db.update(ctx, failpoint.Retry, func(tx store.Tx) error {
			room := stepRoom(tried)
			tried++
			ctl, err := j.readControl(ctx, tx, id)
			if err != nil {
				return err
			}
			if !ctl.Resuming || mapreduce.JobState(ctl.State).Running() {
				return errs.New(errs.Aborted, "job %s is being changed by another request; try again", id)
			}
			pairs, more, err := tx.GetRange(ctx, j.keys.FailedLevel(id, level), store.RangeOptions{Limit: room})
			if err != nil {
				return err
			}
			done = !more
			return newChanges(j.Records, tx, id, ctl).retryUnits(ctx, pairs)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// retryUnits puts units that failed back into their queue. failed are entries of the list of
// failed units of one level.
func (t *changes) retryUnits(ctx context.Context, failed []store.KeyValue) error {
	ks := make([][]byte, len(failed))
	for i, kv := range failed {
		_, rest, err := t.keys.Last(kv.Key)
		if err != nil {
			return err
		}
		rest.Skip()
		rest.Skip()
		ks[i] = t.keys.Unit(t.job, mapreduce.UnitID(rest.Text()))
	}
	units, err := readUnits(ctx, t.tx, ks) // of one level, so that none is another's reduce
	if err != nil {
		return err
	}
	for i, u := range units {
		t.tx.Clear(failed[i].Key)
		if u == nil || mapreduce.UnitState(u.Status) != mapreduce.UnitFailed {
			continue
		}
		if err := t.unaccountUnit(ctx, u); err != nil {
			return err
		}
		t.add(keys.Failed, u.Level, -1)
		u.Failures, u.Kills, u.Started = 0, 0, false
		t.enqueueUnit(t.tx, t.job, u, keys.ClassRequeued)
		t.setUnit(t.tx, t.job, u)
		if err := t.reopenReduce(ctx, u, 0); err != nil {
			return err
		}
	}
	t.recordTurn()
	return nil
}

// unaccountUnit takes a failed unit out of the ledger of documents and characters.
func (t *changes) unaccountUnit(ctx context.Context, u *storagev1.Unit) error {
	switch {
	case u.Level > 0:
		return nil
	case u.Level < 0:
		t.add(keys.DocumentsFailed, 0, -1)
		return nil
	}
	t.add(keys.CharactersFailed, 0, u.Source.GetCharStart()-u.Source.GetCharEnd())
	if u.Source.GetChunks() <= 1 {
		t.add(keys.DocumentsFailed, 0, -documentsOf(u))
		return nil
	}
	key := t.keys.Tally(t.job, mapreduce.DocumentID(u.DocumentId))
	tally := new(storagev1.Tally)
	if _, err := read(ctx, t.tx, key, tally); err != nil {
		return err
	}
	if tally.Complete+tally.Failed == tally.Chunks {
		t.add(keys.DocumentsFailed, 0, -1)
	}
	tally.Failed--
	t.tx.Set(key, encode(tally))
	return nil
}
