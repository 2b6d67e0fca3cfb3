package jobs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/storetest/driver"
)

// Pages for which a store has no time are read all the same, in smaller parts:
// none of their units is missing, and none comes twice.
func TestPagesThatTakeTooLong(t *testing.T) {
	const units = 300
	s := jobstest.Open(t)
	w := jobstest.NewWorld(t, s, 1)
	id := w.Submit(w.Nodes[0], jobstest.Spec(), jobstest.Texts(units))
	w.Run(w.Nodes[0], id)
	short := func(keys int) error { // no time to read many at once
		if keys > 20 {
			return store.ErrTooOld
		}
		return nil
	}
	j := jobs.New(store.NewDB(rushed{s, func() haste { return short }}, store.Config{MaxBackoff: time.Millisecond, MaxAttempts: 12}), w.Space, "hasty", w.Clock)
	level := func(n int64) []*records.Unit {
		return w.Paged(func(from int64) ([]*records.Unit, error) { return j.View.UnitsFrom(w.Ctx, id, n, from, 256) })
	}
	if n := len(level(0)); n != units {
		t.Errorf("level 0 has %d units, want %d", n, units)
	}
	reduced := 0
	for _, u := range level(1) {
		reduced += len(w.Paged(func(from int64) ([]*records.Unit, error) {
			return j.View.Inputs(w.Ctx, id, u, max(from, u.Inputs.First), 1024)
		}))
	}
	if reduced != units {
		t.Errorf("reduces take %d units, want %d", reduced, units)
	}
}

// A rushed store has time for some reads of a transaction, and not for all.
type rushed struct {
	store.Store
	begin func() haste
}

// A haste is asked before each read of a transaction whether there is time for it.
type haste func(keys int) error

// timeFor is the haste of a store that has time for so many keys in a transaction.
func timeFor(keys int) func() haste {
	return func() haste {
		left := keys
		return func(n int) error {
			if left -= n; left < 0 {
				return store.ErrTooOld
			}
			return nil
		}
	}
}

// farAway is the haste of a store that has time for so many reads, of whatever many keys.
func farAway(reads int) func() haste {
	begin := timeFor(reads)
	return func() haste {
		take := begin()
		return func(int) error { return take(1) }
	}
}

type rushedTx struct {
	store.Tx
	take haste
}

type rushedReader struct {
	store.Reader
	take haste
}

func (r rushed) Begin(ctx context.Context) (store.Tx, error) {
	tx, err := r.Store.Begin(ctx)
	return rushedTx{tx, r.begin()}, err
}

func (t rushedTx) Snapshot() store.Reader { return rushedReader{t.Tx.Snapshot(), t.take} }

func (t rushedTx) Get(ctx context.Context, key []byte) ([]byte, error) {
	return rushedReader{t.Tx, t.take}.Get(ctx, key)
}

func (t rushedTx) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	return rushedReader{t.Tx, t.take}.GetAll(ctx, keys)
}

func (t rushedTx) GetRange(ctx context.Context, in store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	return rushedReader{t.Tx, t.take}.GetRange(ctx, in, o)
}

func (r rushedReader) Get(ctx context.Context, key []byte) ([]byte, error) {
	if err := r.take(1); err != nil {
		return nil, err
	}
	return r.Reader.Get(ctx, key)
}

func (r rushedReader) GetAll(ctx context.Context, keys [][]byte) ([][]byte, error) {
	if err := r.take(len(keys)); err != nil {
		return nil, err
	}
	return r.Reader.GetAll(ctx, keys)
}

func (r rushedReader) GetRange(ctx context.Context, in store.Range, o store.RangeOptions) ([]store.KeyValue, bool, error) {
	pairs, more, err := r.Reader.GetRange(ctx, in, o)
	if err == nil {
		err = r.take(len(pairs) + 1)
	}
	return pairs, more, err
}

// A check that a store has no time for goes on in smaller parts, and still sees
// everything.
func TestChecksThatTakeTooLong(t *testing.T) {
	s := jobstest.Open(t)
	w := jobstest.NewWorld(t, s, 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(300))
	w.Run(j, id)
	w.Look = jobs.New(store.NewDB(rushed{s, timeFor(400)}, store.Config{MaxBackoff: time.Millisecond, MaxAttempts: 12}), w.Space, "looker", w.Clock)
	w.Healthy()
	w.Must(store.NewDB(s, store.Config{}).Update(w.Ctx, func(tx store.Tx) error {
		tx.Clear(w.Space.Job(id).Unit("doc-00250"))
		return nil
	}))
	if found := w.Findings(); len(found) == 0 {
		t.Error("a unit that is gone is not found")
	}
}

// Whichever read of a check fails, and none after it, it finds nothing wrong.
func TestChecksOfAStoreThatFailsOnce(t *testing.T) {
	s := jobstest.Open(t)
	w := jobstest.NewWorld(t, s, 1)
	w.Run(w.Nodes[0], w.Submit(w.Nodes[0], jobstest.Spec(), jobstest.Texts(5)))
	w.Submit(w.Nodes[0], jobstest.Spec(), jobstest.Texts(2))
	w.Keep("a", "q", "answer", time.Time{})
	failed := 0
	for reads := 1; reads > failed; failed++ {
		reads = 0
		once := func(int) error {
			if reads++; reads == failed+1 {
				return store.ErrProcessBehind
			}
			return nil
		}
		db := store.NewDB(rushed{s, func() haste { return once }}, store.Config{MaxBackoff: time.Millisecond})
		w.Look = jobs.New(db, w.Space, "looker", w.Clock)
		w.Healthy()
	}
	if failed < 50 {
		t.Errorf("a check made %d reads", failed-1)
	}
}

// slow is a node whose store has time for so many keys in a transaction.
func slow(w *jobstest.World, s store.Store, keys int) *jobs.Jobs {
	return jobs.New(store.NewDB(rushed{s, timeFor(keys)}, store.Config{MaxBackoff: time.Millisecond, MaxAttempts: 12}), w.Space, "slow", w.Clock)
}

// What a session holds is read together: where each read takes long, it is bound, what it
// held goes back, is counted, and is taken back, as soon as if it were little.
func TestReadsThatTakeLong(t *testing.T) {
	const units = 250
	s := jobstest.Open(t)
	w := jobstest.NewWorld(t, s, 2)
	id := w.Submit(w.Nodes[0], jobstest.Spec(), jobstest.Texts(units))
	lost := w.Session(w.Nodes[0])
	var holding []protocol.Held
	for len(holding) < units {
		for _, u := range w.Claim(w.Nodes[0], id, lost, 50) {
			holding = append(holding, protocol.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)})
		}
	}
	attempts := 1
	if _, cluster := driver.Cluster(t); cluster {
		attempts = 100 // which may fail for other reasons
	}
	far := jobs.New(store.NewDB(rushed{s, farAway(20)}, store.Config{MaxBackoff: time.Millisecond, MaxAttempts: attempts}), w.Space, "far", w.Clock)
	if d := w.Doubt(far, w.Nodes[0].Node()); d.Held[id] != units {
		t.Errorf("%d units are held, want %d", d.Held[id], units)
	}
	for _, what := range []string{"held", "lost"} {
		bound, b := w.Bind(far, lost.ID, holding...)
		if len(b.Kept) != units || len(b.Drop) != 0 {
			t.Errorf("of %d units that were %s, %d are kept, and %d dropped", units, what, len(b.Kept), len(b.Drop))
		}
		jobstest.WentBack(t, w.Expire(far, bound), units)
	}
	if n := w.Job(id).RunningUnits; n != 0 {
		t.Errorf("%d units did not go back", n)
	}
	w.Healthy()
}

// What a lost session held goes back, and what failed is tried again, in smaller steps
// if a store has no time for the usual ones.
func TestUnitsThatTakeTooLong(t *testing.T) {
	const units, room = 300, 250
	s := jobstest.Open(t)
	w := jobstest.NewWorld(t, s, 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(units))
	lost := w.Session(j)
	for range units / 50 {
		if n := len(w.Claim(j, id, lost, 50)); n != 50 {
			t.Fatalf("%d units were claimed, want 50", n)
		}
	}
	back, steps := 0, 0
	for done := false; !done; steps++ {
		loss, err := slow(w, s, room).Sessions.Expire(w.Ctx, lost.ID, j.Node(), lost.Epoch, nil)
		w.Must(err)
		back, done = back+loss.Units, loss.Done
	}
	if steps*room < units {
		t.Errorf("all went back in %d steps, for which there was no time", steps)
	}
	jobstest.WentBack(t, back, units)
	if n := w.Job(id).RunningUnits; n != 0 {
		t.Errorf("%d units did not go back", n)
	}
	w.Healthy()

	good := w.Claim(j, id, w.Session(j), 1)[0]
	w.Report(j, jobstest.Done(id, good))
	for {
		bad := w.Claim(j, id, w.Session(j), records.MaxBatch)
		if len(bad) == 0 {
			break
		}
		turn := &queue.Turn{Job: id}
		for _, u := range bad {
			turn.Reports = append(turn.Reports, queue.Report{Report: jobstest.Errored(id, u, protocol.PermanentUnit)})
		}
		w.Turn(j, turn)
	}
	w.Run(j, id)
	if n := w.Job(id).FailedUnits; n != units-1 {
		t.Fatalf("%d units failed, want %d", n, units-1)
	}
	w.Must(slow(w, s, room).Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
	if n := w.Job(id).FailedUnits; n != 0 {
		t.Errorf("%d units are not tried again", n)
	}
	w.Run(j, id)
	if job := w.Job(id); job.State != mapreduce.JobComplete {
		t.Errorf("the job is %v, of level %d", job.State, job.Level)
	}
	w.Healthy()
}

// Levels for which a store has no time are planned in smaller steps.
func TestLevelsThatTakeTooLong(t *testing.T) {
	t.Run("levels", func(t *testing.T) {
		s := jobstest.Open(t)
		w := jobstest.NewWorld(t, s, 1)
		id := w.Submit(w.Nodes[0], jobstest.Spec(), jobstest.Texts(900))
		w.MapAll(w.Nodes[0], id)
		w.Advance(w.Nodes[0], id) // reads the order of the map units, in one range
		w.EndAll(w.Nodes[0], id, w.Session(w.Nodes[0]))
		if !w.Advance(slow(w, s, 100), id) {
			t.Error("nothing was to be planned")
		}
		w.Run(w.Nodes[0], id)
		spans(w, id)
		if job := w.Job(id); job.State != mapreduce.JobComplete {
			t.Errorf("the job is %v, of level %d", job.State, job.Level)
		}
		w.Healthy()
	})
	t.Run("tree", func(t *testing.T) {
		s := jobstest.Open(t)
		w := jobstest.NewWorld(t, s, 1)
		docs := jobstest.Texts(900)
		docs[400].Parse = true
		id := w.SubmitTree(w.Nodes[0], docs, 3)
		w.MapAll(w.Nodes[0], id)
		status, err := w.Nodes[0].Levels.Status(w.Ctx, id)
		w.Must(err)
		w.Must(w.Nodes[0].Levels.InsertParsed(w.Ctx, id, status.Epoch, w.DocumentUnits(w.Nodes[0], id)))
		for done := false; !done; {
			done, err = slow(w, s, 100).Levels.TreeStep(w.Ctx, id, jobstest.TreeOver(status.Epoch, 3))
			w.Must(err)
		}
		spans(w, id)
		if diff := cmp.Diff([]int64{900, 300, 100, 34, 12, 4, 2, 1}, w.Shape(id)); diff != "" {
			t.Errorf("levels (-want +got):\n%s", diff)
		}
		w.Healthy()
	})
}

// spans holds which map units each reduce stands for against its inputs.
func spans(w *jobstest.World, id mapreduce.JobID) {
	w.Helper()
	ctl, err := w.Look.View.Control(w.Ctx, id)
	w.Must(err)
	for level := 1; level < len(ctl.StageLevels()); level++ {
		for _, u := range w.Level(w.Look, id, int64(level)) {
			in := w.Inputs(w.Look, id, u, 1000)
			first, end := in[0].Index, in[len(in)-1].Index+1
			if level > 1 {
				first, end = in[0].Inputs.MapFirst, in[len(in)-1].Inputs.MapEnd
			}
			if u.Inputs.MapFirst != first || u.Inputs.MapEnd != end {
				w.Errorf("unit %s stands for map units %d to %d, and its inputs for %d to %d", u.ID, u.Inputs.MapFirst, u.Inputs.MapEnd, first, end)
			}
		}
	}
}

// A store that fails again and again, as one that is locked, is said to be away:
// callers may wait for it.
func TestAStoreThatFailsForLongIsAway(t *testing.T) {
	s := jobstest.Open(t)
	w := jobstest.NewWorld(t, s, 1)
	id := w.Submit(w.Nodes[0], jobstest.Spec(), jobstest.Texts(1))
	j := jobs.New(store.NewDB(rushed{s, timeFor(0)}, store.Config{MaxBackoff: time.Millisecond, MaxAttempts: 3}), w.Space, "slow", w.Clock)
	_, err := j.View.Job(w.Ctx, id)
	if errs.KindOf(err) != errs.Unavailable || errs.ReasonOf(err) != errs.StoreAway || !errors.Is(err, store.ErrTooOld) {
		t.Errorf("the error is %v: %q, %v", errs.KindOf(err), errs.ReasonOf(err), err)
	}
}
