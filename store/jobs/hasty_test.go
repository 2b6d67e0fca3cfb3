package jobs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/storetest/driver"
)

// Pages for which a store has no time are read all the same, in smaller parts:
// none of their units is missing, and none comes twice.
func TestPagesThatTakeTooLong(t *testing.T) {
	const units = 300
	s := open(t)
	w := newWorld(t, s, 1)
	id := w.submit(w.nodes[0], spec(), texts(units))
	w.run(w.nodes[0], id)
	short := func(keys int) error { // no time to read many at once
		if keys > 20 {
			return store.ErrTooOld
		}
		return nil
	}
	j := jobs.New(store.NewDB(rushed{s, func() haste { return short }}, store.Config{MaxBackoff: time.Millisecond, MaxAttempts: 12}), w.space, "hasty", w.clock)
	level := func(n int64) []*records.Unit {
		return w.paged(func(from int64) ([]*records.Unit, error) { return j.View.UnitsFrom(w.ctx, id, n, from, 256) })
	}
	if n := len(level(0)); n != units {
		t.Errorf("level 0 has %d units, want %d", n, units)
	}
	reduced := 0
	for _, u := range level(1) {
		reduced += len(w.paged(func(from int64) ([]*records.Unit, error) {
			return j.View.Inputs(w.ctx, id, u, max(from, u.Inputs.First), 1024)
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
	s := open(t)
	w := newWorld(t, s, 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(300))
	w.run(j, id)
	w.look = jobs.New(store.NewDB(rushed{s, timeFor(400)}, store.Config{MaxBackoff: time.Millisecond, MaxAttempts: 12}), w.space, "looker", w.clock)
	w.healthy()
	w.must(store.NewDB(s, store.Config{}).Update(w.ctx, func(tx store.Tx) error {
		tx.Clear(w.space.Job(id).Unit("doc-00250"))
		return nil
	}))
	if found := w.findings(); len(found) == 0 {
		t.Error("a unit that is gone is not found")
	}
}

// Whichever read of a check fails, and none after it, it finds nothing wrong.
func TestChecksOfAStoreThatFailsOnce(t *testing.T) {
	s := open(t)
	w := newWorld(t, s, 1)
	w.run(w.nodes[0], w.submit(w.nodes[0], spec(), texts(5)))
	w.submit(w.nodes[0], spec(), texts(2))
	w.keep("a", "q", "answer", time.Time{})
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
		w.look = jobs.New(db, w.space, "looker", w.clock)
		w.healthy()
	}
	if failed < 50 {
		t.Errorf("a check made %d reads", failed-1)
	}
}

// slow is a node whose store has time for so many keys in a transaction.
func (w *world) slow(s store.Store, keys int) *jobs.Jobs {
	return jobs.New(store.NewDB(rushed{s, timeFor(keys)}, store.Config{MaxBackoff: time.Millisecond, MaxAttempts: 12}), w.space, "slow", w.clock)
}

// What a session holds is read together: where each read takes long, it is bound, what it
// held goes back, is counted, and is taken back, as soon as if it were little.
func TestReadsThatTakeLong(t *testing.T) {
	const units = 250
	s := open(t)
	w := newWorld(t, s, 2)
	id := w.submit(w.nodes[0], spec(), texts(units))
	lost := w.session(w.nodes[0])
	var holding []mapreduce.Held
	for len(holding) < units {
		for _, u := range w.claim(w.nodes[0], id, lost, 50) {
			holding = append(holding, mapreduce.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)})
		}
	}
	attempts := 1
	if _, cluster := driver.Cluster(t); cluster {
		attempts = 100 // which may fail for other reasons
	}
	far := jobs.New(store.NewDB(rushed{s, farAway(20)}, store.Config{MaxBackoff: time.Millisecond, MaxAttempts: attempts}), w.space, "far", w.clock)
	if d := w.doubt(far, w.nodes[0].Node()); d.Held[id] != units {
		t.Errorf("%d units are held, want %d", d.Held[id], units)
	}
	for _, what := range []string{"held", "lost"} {
		bound, b := w.bind(far, lost.id, holding...)
		if len(b.Kept) != units || len(b.Drop) != 0 {
			t.Errorf("of %d units that were %s, %d are kept, and %d dropped", units, what, len(b.Kept), len(b.Drop))
		}
		wentBack(t, w.expire(far, bound), units)
	}
	if n := w.job(id).RunningUnits; n != 0 {
		t.Errorf("%d units did not go back", n)
	}
	w.healthy()
}

// What a lost session held goes back, and what failed is tried again, in smaller steps
// if a store has no time for the usual ones.
func TestUnitsThatTakeTooLong(t *testing.T) {
	const units, room = 300, 250
	s := open(t)
	w := newWorld(t, s, 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(units))
	lost := w.session(j)
	for range units / 50 {
		if n := len(w.claim(j, id, lost, 50)); n != 50 {
			t.Fatalf("%d units were claimed, want 50", n)
		}
	}
	back, steps := 0, 0
	for done := false; !done; steps++ {
		loss, err := w.slow(s, room).Sessions.Expire(w.ctx, lost.id, j.Node(), lost.epoch, nil)
		w.must(err)
		back, done = back+loss.Units, loss.Done
	}
	if steps*room < units {
		t.Errorf("all went back in %d steps, for which there was no time", steps)
	}
	wentBack(t, back, units)
	if n := w.job(id).RunningUnits; n != 0 {
		t.Errorf("%d units did not go back", n)
	}
	w.healthy()

	good := w.claim(j, id, w.session(j), 1)[0]
	w.report(j, done(id, good))
	for {
		bad := w.claim(j, id, w.session(j), records.MaxBatch)
		if len(bad) == 0 {
			break
		}
		turn := &queue.Turn{Job: id}
		for _, u := range bad {
			turn.Reports = append(turn.Reports, queue.Report{Report: errored(id, u, mapreduce.PermanentUnit)})
		}
		w.turn(j, turn)
	}
	w.run(j, id)
	if n := w.job(id).FailedUnits; n != units-1 {
		t.Fatalf("%d units failed, want %d", n, units-1)
	}
	w.must(w.slow(s, room).Lifecycle.Resume(w.ctx, id, mapreduce.Resume{}))
	if n := w.job(id).FailedUnits; n != 0 {
		t.Errorf("%d units are not tried again", n)
	}
	w.run(j, id)
	if job := w.job(id); job.State != mapreduce.JobComplete {
		t.Errorf("the job is %v, of level %d", job.State, job.Level)
	}
	w.healthy()
}

// Levels for which a store has no time are planned in smaller steps.
func TestLevelsThatTakeTooLong(t *testing.T) {
	t.Run("levels", func(t *testing.T) {
		s := open(t)
		w := newWorld(t, s, 1)
		id := w.submit(w.nodes[0], spec(), texts(900))
		w.mapAll(w.nodes[0], id)
		w.advance(w.nodes[0], id) // reads the order of the map units, in one range
		w.endAll(w.nodes[0], id, w.session(w.nodes[0]))
		if !w.advance(w.slow(s, 100), id) {
			t.Error("nothing was to be planned")
		}
		w.run(w.nodes[0], id)
		w.spans(id)
		if job := w.job(id); job.State != mapreduce.JobComplete {
			t.Errorf("the job is %v, of level %d", job.State, job.Level)
		}
		w.healthy()
	})
	t.Run("tree", func(t *testing.T) {
		s := open(t)
		w := newWorld(t, s, 1)
		docs := texts(900)
		docs[400].parse = true
		id := w.submitTree(w.nodes[0], docs, 3)
		w.mapAll(w.nodes[0], id)
		status, err := w.nodes[0].Levels.Status(w.ctx, id)
		w.must(err)
		w.must(w.nodes[0].Levels.PlantParsed(w.ctx, id, status.Epoch, w.plant(w.nodes[0], id)))
		for done := false; !done; {
			done, err = w.slow(s, 100).Levels.TreeStep(w.ctx, id, treeOver(status.Epoch, 3))
			w.must(err)
		}
		w.spans(id)
		if diff := cmp.Diff([]int64{900, 300, 100, 34, 12, 4, 2, 1}, w.shape(id)); diff != "" {
			t.Errorf("levels (-want +got):\n%s", diff)
		}
		w.healthy()
	})
}

// spans holds which map units each reduce stands for against its inputs.
func (w *world) spans(id mapreduce.JobID) {
	w.Helper()
	ctl, err := w.look.View.Control(w.ctx, id)
	w.must(err)
	for level := 1; level < len(ctl.StageLevels()); level++ {
		for _, u := range w.level(w.look, id, int64(level)) {
			in := w.inputs(w.look, id, u, 1000)
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
	s := open(t)
	w := newWorld(t, s, 1)
	id := w.submit(w.nodes[0], spec(), texts(1))
	j := jobs.New(store.NewDB(rushed{s, timeFor(0)}, store.Config{MaxBackoff: time.Millisecond, MaxAttempts: 3}), w.space, "slow", w.clock)
	_, err := j.View.Job(w.ctx, id)
	if errs.KindOf(err) != errs.Unavailable || errs.ReasonOf(err) != errs.StoreAway || !errors.Is(err, store.ErrTooOld) {
		t.Errorf("the error is %v: %q, %v", errs.KindOf(err), errs.ReasonOf(err), err)
	}
}
