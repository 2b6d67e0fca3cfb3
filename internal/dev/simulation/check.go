package simulation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/outputs"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// The checks of this file look at the store itself, without what may befall it, and at the ledger
// of what was run. Each says which of the invariants of the package does not hold.

// most is how long everything may take to end once nothing goes wrong any more. Pauses of units that
// failed are half a minute at most, and a clock that has jumped cannot lengthen them.
const most = 10 * time.Minute

// A warden finds what the world has that it must not.
type warden struct{ *world }

// settle waits until all jobs have ended, and what ran of them.
func (w warden) settle() {
	ctx := context.Background()
	for end := time.Now().Add(most); ; <-time.After(500 * time.Millisecond) {
		w.checkCalling()

		var open *mapreduce.Job
		for _, t := range w.tasks {
			id, known := t.job()
			if !known {
				continue // it was said why
			}

			w.checkRunning(t)
			job, err := w.plain.View.Job(ctx, id)
			if err != nil {
				w.noteBreach("7: job %s of request %s was acknowledged: %v", id, t.spec.RequestID, err)
				t.id.Store(nil)
				continue
			}

			if job.State == mapreduce.JobPaused {
				w.caller.resume(t)
			}
			// The units of a cancelled job end one after the other, behind its own end.
			if !job.State.Ended() || job.RunningUnits > 0 {
				open = job
			}
		}

		if open == nil {
			return
		}
		if time.Now().After(end) {
			w.noteBreach("8: job %s is %v after %v in which nothing went wrong, with %d of %d units complete, %d running and %d parked: %s",
				open.ID, open.State, most, open.CompletedUnits, open.TotalUnits, open.RunningUnits, open.ParkedUnits, open.Error)
			return
		}
	}
}

// check checks everything, once nothing happens any more.
func (w warden) check() {
	w.faults.Settle()
	w.checkRequests()
	for _, t := range w.tasks {
		if id, known := t.job(); known {
			w.checkJob(t, id)
		}
	}
	w.checkAttempts()
	w.checkCost()
	w.checkStore()
}

// checkRunning checks that no more units run than may. Where workers hold units beside those that
// they run, more may be claimed: what bounds those is how many slots there are. A unit that its
// worker has ended runs no more, and its slot takes the next one, while the store takes no report.
func (w *world) checkRunning(t *task) {
	id, known := t.job()
	if !known || w.prefetch > 0 {
		return
	}

	job, err := w.plain.View.Job(context.Background(), id)
	if err != nil || job.RunningUnits <= parallelism {
		return
	}

	if running := int(job.RunningUnits) - w.countUnstored(job); running > parallelism {
		w.noteBreach("6: %d units of job %s run, and %d may", running, id, parallelism)
	}
}

// allCalls is what is covered when no more units may ask models.
const allCalls = "all calls of models taken"

// checkCalling checks that no more units of all jobs are claimed than may ask models at once. One that assembles a
// result asks none; it is the last of its job. Nor does one any more that its worker has ended, while the store takes no
// report of it.
func (w *world) checkCalling() {
	if w.prefetch > 0 {
		return
	}
	page, err := w.plain.View.List(context.Background(), mapreduce.ListJobsQuery{PageSize: 1000})
	if err != nil {
		return
	}

	calling := 0
	for _, job := range page.Jobs {
		if job.TotalUnits-job.CompletedUnits > 1 {
			calling += int(job.RunningUnits)
		}
	}
	if calling > w.config.MaxCalls {
		calling -= w.countUnstored(page.Jobs...)
	}

	if calling == w.config.MaxCalls {
		w.cover(allCalls)
	}
	if calling > w.config.MaxCalls {
		w.noteBreach("6: %d units run that may ask models, and %d may", calling, w.config.MaxCalls)
	}
}

// countUnstored returns how many units are claimed whose workers have ended them already.
func (w *world) countUnstored(all ...*mapreduce.Job) (n int) {
	for _, job := range all {
		if job.RunningUnits == 0 {
			continue
		}
		for _, u := range (warden{w}).unitsOf(job.ID) {
			if u.State == mapreduce.Processing && w.ledger.isOver(protocol.Held{Job: job.ID, Unit: u.ID, Attempt: int(u.Attempt)}) {
				n++
			}
		}
	}
	return n
}

// checkRequests checks that each request is one job.
func (w warden) checkRequests() {
	page, err := w.plain.View.List(context.Background(), mapreduce.ListJobsQuery{PageSize: 1000})
	w.must("listing jobs", err)
	of := make(map[mapreduce.RequestID]mapreduce.JobID)
	for _, job := range page.Jobs {
		if first, found := of[job.Spec.RequestID]; found {
			w.noteBreach("7: request %s is job %s and job %s", job.Spec.RequestID, first, job.ID)
		}
		of[job.Spec.RequestID] = job.ID
	}
	for _, t := range w.tasks {
		if id, known := t.job(); known && of[t.spec.RequestID] != id {
			w.noteBreach("7: request %s was acknowledged as job %s, and is %q", t.spec.RequestID, id, of[t.spec.RequestID])
		}
	}
}

// checkJob checks one job that has ended.
func (w warden) checkJob(t *task, id mapreduce.JobID) {
	ctx := context.Background()
	job, err := w.plain.View.Job(ctx, id)
	w.must("reading a job", err)
	units := w.unitsOf(id)
	w.checkLedger(job, units)

	complete := 0
	for _, u := range units {
		if u.State == mapreduce.UnitComplete {
			complete++
		}
		// The result of a job is assembled by an orchestrator.
		if u.State == mapreduce.UnitComplete && u.Kind != mapreduce.KindResult {
			w.checkUnit(id, u)
		}
	}

	if job.RunningUnits != 0 {
		w.noteBreach("6: job %s is %v, and %d of its units run", id, job.State, job.RunningUnits)
	}
	switch {
	case job.State == mapreduce.JobCancelled && t.cancelled.Load():
		w.cover("a job was cancelled")
	case job.State != mapreduce.JobComplete:
		w.noteBreach("5: job %s is %v: %s", id, job.State, job.Error)
	case complete != len(units) || job.CompletedUnits != job.TotalUnits:
		w.noteBreach("5: job %s is complete, with %d of %d units; its counters say %d of %d", id, complete, len(units), job.CompletedUnits, job.TotalUnits)
	default:
		w.checkResult(t, id, units)
	}
}

// unitsOf returns all units of a job that were planned, but for the one that assembles its result.
func (w warden) unitsOf(id mapreduce.JobID) map[mapreduce.UnitID]*records.Unit {
	units := make(map[mapreduce.UnitID]*records.Unit)
	for level := int64(0); ; level++ {
		found := false
		for from := int64(0); ; {
			page, err := w.plain.View.UnitsFrom(context.Background(), id, level, from, 100)
			w.must("reading units", err)
			if len(page) == 0 {
				break
			}

			for _, u := range page {
				units[u.ID] = u
				from, found = u.Index+1, true
			}
		}
		if !found {
			return units
		}
	}
}

// checkUnit checks a unit that is complete: its result is that of its last attempt, which got the
// results of its inputs as they are.
func (w warden) checkUnit(id mapreduce.JobID, u *records.Unit) {
	data, err := w.plain.Content.Output(context.Background(), id, u)
	if err != nil {
		w.noteBreach("1: the result of unit %s: %v", u.ID, err)
		return
	}

	w.ledger.mu.Lock()
	a := w.ledger.attempts[protocol.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)}]
	w.ledger.mu.Unlock()
	switch {
	case a == nil || !a.done:
		w.noteBreach("1: unit %s is complete by attempt %d, which has come to nothing", u.ID, u.Attempt)
	case a.output != sha256.Sum256(data):
		w.noteBreach("1: the result of unit %s is not that of its attempt %d", u.ID, u.Attempt)
	default:
		w.checkInputs(id, u, a)
	}
}

// checkInputs checks that an attempt got the results of its inputs as they are.
func (w warden) checkInputs(id mapreduce.JobID, u *records.Unit, a *attempt) {
	if u.Level == 0 {
		return
	}
	count := 0
	err := outputs.EachInput(context.Background(), w.plain.Reader(), id, u, func(in *records.Unit) error {
		count++
		data, err := w.plain.Content.Output(context.Background(), id, in)
		if got, given := a.inputs[in.ID]; !given || got != sha256.Sum256(data) {
			w.noteBreach("5: unit %s was not given the result of %s as it is (given: %t)", u.ID, in.ID, given)
		}
		return err
	})
	w.must("reading inputs", err)
	if count != len(a.inputs) {
		w.noteBreach("5: unit %s was given %d inputs, and has %d", u.ID, len(a.inputs), count)
	}
}

// checkLedger checks that each unit was completed by one transaction, that of its last attempt.
func (w warden) checkLedger(job *mapreduce.Job, units map[mapreduce.UnitID]*records.Unit) {
	seen := make(map[mapreduce.UnitID]int)
	q := mapreduce.ListEventsQuery{Job: job.ID, PageSize: 1000, Verify: true}
	for {
		page, err := w.plain.Audit.List(context.Background(), q)
		if err != nil {
			w.noteBreach("3: the ledger of job %s: %v", job.ID, err)
			return
		}

		for _, c := range page.Checkpoints {
			for _, ref := range c.Completed {
				seen[ref.Unit]++
				u := units[ref.Unit]
				if ref.Unit != mapreduce.ResultUnit && (u == nil || int(u.Attempt) != ref.Attempt) {
					w.noteBreach("3: unit %s of job %s was completed by attempt %d, and its record is %+v", ref.Unit, job.ID, ref.Attempt, u)
				}
			}
		}
		if q.PageToken = page.NextPageToken; q.PageToken == "" {
			break
		}
	}

	for _, name := range slices.Sorted(maps.Keys(units)) {
		want := 0
		if units[name].State == mapreduce.UnitComplete {
			want = 1
		}
		if seen[name] != want {
			w.noteBreach("3: unit %s of job %s is %v and was completed %d times", name, job.ID, units[name].State, seen[name])
		}
	}
}

// checkResult checks that the result of a job stands for each document once.
func (w warden) checkResult(t *task, id mapreduce.JobID, units map[mapreduce.UnitID]*records.Unit) {
	final := units[mapreduce.FinalUnit]
	if final == nil {
		w.noteBreach("5: job %s is complete and has no result", id)
		return
	}
	data, err := w.plain.Content.Output(context.Background(), id, final)
	w.must("reading a result", err)
	a, err := accountOf(data)
	if err != nil {
		w.noteBreach("1: the result of job %s: %v", id, err)
		return
	}

	var want []string
	for i := range t.documents {
		want = append(want, string(documentID(i)))
	}
	if got := slices.Sorted(slices.Values(a.Units)); !slices.Equal(got, want) {
		w.noteBreach("5: the result of job %s stands for %v, not once for each of %d documents", id, got, t.documents)
	}
}

// checkAttempts checks that none was begun twice.
func (w warden) checkAttempts() {
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	for held, a := range w.ledger.attempts {
		if a.begun != 1 {
			w.noteBreach("2: attempt %d at unit %s of job %s was begun %d times", held.Attempt, held.Unit, held.Job, a.begun)
		}
	}
}

// checkCost checks that units were not run again without a reason, and that no call was paid for again
// that had answered. What a worker has not stored yet is lost with it: all calls of a unit, at most.
func (w warden) checkCost() {
	w.ledger.mu.Lock()
	made, paid := 0, 0
	for _, n := range w.ledger.made {
		made += n - 1
	}
	for _, n := range w.ledger.calls {
		paid += n - 1
	}
	w.ledger.mu.Unlock()

	w.covered["results that were made again"] += made
	if made > w.excuses {
		w.noteBreach("9: %d results were made again, and at most %d units were lost with workers or cut off", made, w.excuses)
	}

	w.covered["calls that were paid again"] += paid
	if paid > unitCalls*w.excuses {
		w.noteBreach("9: %d calls were paid for again, and at most %d units were lost with workers or cut off", paid, w.excuses)
	}
}

// checkStore has the whole store checked.
func (w warden) checkStore() {
	err := w.plain.Check.Run(context.Background(), func(f mapreduce.Finding) error {
		if f.Severity > mapreduce.Info {
			w.noteBreach("4: doctor: %s %s: %s", f.Job, f.Key, f.Message)
		}
		return nil
	})
	w.must("checking the store", err)
}

// remove deletes all jobs, and checks that nothing is left of them.
func (w warden) remove() {
	for _, t := range w.tasks {
		id, known := t.job()
		if !known {
			continue
		}
		err := w.caller.ask("deleting a job", func(ctx context.Context, cl *client.Client) error { return cl.DeleteJob(ctx, id) })
		if err != nil {
			w.noteBreach("10: job %s cannot be deleted: %v", id, err)
			return
		}
	}
	w.checkStore()

	// Of a submission whose orchestrator has died others remove what it began, once they take it for dead.
	left := w.jobKeys()
	for end := time.Now().Add(most); len(left) > 0 && time.Now().Before(end); left = w.jobKeys() {
		<-time.After(500 * time.Millisecond)
	}
	for _, key := range left {
		w.noteBreach("10: %q is left of a job that was deleted, or never submitted whole", key)
	}
}

// jobKeys returns all keys that name a job.
func (w warden) jobKeys() (all [][]byte) {
	err := store.NewDB(w.plain.DB().Store, store.Config{}).View(context.Background(), func(tx store.Tx) error {
		all = nil
		pairs, _, err := tx.GetRange(context.Background(), keys.New().Everything(), store.RangeOptions{})
		for _, kv := range pairs {
			if bytes.Contains(kv.Key, []byte("mr_")) {
				all = append(all, kv.Key)
			}
		}
		return err
	})
	w.must("reading what is left", err)
	return all
}
