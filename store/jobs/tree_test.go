package jobs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// submitTree submits docs as a job whose tree has groups of group, not planned
// yet.
func (w *world) submitTree(j *jobs.Jobs, docs []document, group int64) mapreduce.JobID {
	w.Helper()
	id := mapreduce.JobID(w.name("job"))
	s := spec()
	w.must(j.Submit.Begin(w.ctx, id, s))
	p := &lifecycle.Publication{Spec: s, Shards: 2, Tree: true, Level: mapLevel}
	for n, d := range docs {
		b := batch(d, int64(n), 2)
		for _, u := range b.Units {
			if d.parse {
				continue
			}
			u.Parent = 1 + p.Map/group
			p.Map++
		}
		w.must(j.Submit.Stage(w.ctx, id, &b))
		p.Documents++
		if d.parse {
			p.Parse++
			continue
		}
		p.Characters += int64(len(d.text))
	}
	_, err := j.Submit.Publish(w.ctx, id, p)
	w.must(err)
	return id
}

// plantTree plans a tree once all documents are parsed.
func (w *world) plantTree(j *jobs.Jobs, id mapreduce.JobID, group int64) {
	w.Helper()
	s, err := j.Levels.Status(w.ctx, id)
	w.must(err)
	w.must(j.Levels.PlantParsed(w.ctx, id, s.Epoch, w.plant(j, id)))
	w.must(j.Levels.PlanTree(w.ctx, id, treeOver(s.Epoch, group)))
}

// letGo unblocks what was told, and what that ends.
func (w *world) letGo(j *jobs.Jobs, id mapreduce.JobID, refs []records.WaitRef) {
	w.Helper()
	for len(refs) > 0 {
		_, told, err := j.Turns.Unblock(w.ctx, id, refs[:min(len(refs), queue.MaxUnblock)])
		w.must(err)
		refs = append(refs[min(len(refs), queue.MaxUnblock):], told...)
	}
}

// forgotten unblocks what nobody was told of.
func (w *world) forgotten(j *jobs.Jobs, id mapreduce.JobID) {
	w.Helper()
	refs, err := j.Turns.Forgotten(w.ctx, id, records.WaitRef{}, 10_000)
	w.must(err)
	w.letGo(j, id, refs)
}

// climb takes a tree as far up as it has ended, and reports whether the job has.
func (w *world) climb(j *jobs.Jobs, id mapreduce.JobID) bool {
	w.Helper()
	for {
		s, err := j.Levels.Status(w.ctx, id)
		w.must(err)
		switch {
		case !s.State.Running():
			return true
		case !s.Ended():
			return false
		case s.Completed == 0:
			w.must(j.Lifecycle.Fail(w.ctx, id, s.Epoch, "all failed"))
		case rootOf(s):
			w.must(j.Levels.CompleteWith(w.ctx, id, s.Epoch, []byte("the result")))
		default:
			w.must(j.Levels.Ascend(w.ctx, id, s.Epoch))
		}
	}
}

// shape returns how many units each level has.
func (w *world) shape(id mapreduce.JobID) (levels []int64) {
	w.Helper()
	ctl, err := w.look.View.Control(w.ctx, id)
	w.must(err)
	for level := range ctl.Levels {
		units := w.level(w.look, id, int64(level))
		if int64(len(units)) != ctl.Levels[level].Units {
			w.Errorf("level %d has %d units, and %d were planned", level, len(units), ctl.Levels[level].Units)
		}
		levels = append(levels, int64(len(units)))
	}
	return levels
}

// TestB13TreesAreKnownBeforeTheRun: every node with its inputs is there before a
// unit is claimed, the steps of planning it taken by several nodes.
func TestB13TreesAreKnownBeforeTheRun(t *testing.T) {
	for _, tt := range []struct {
		n     int
		group int64
		want  []int64
	}{
		{1, 3, []int64{1, 1}},
		{2, 2, []int64{2, 1}},
		{3, 3, []int64{3, 1}},
		{4, 3, []int64{4, 2, 1}},
		{6, 3, []int64{6, 2, 1}},
		{7, 3, []int64{7, 3, 1}},
		{9, 3, []int64{9, 3, 1}},
		{10, 3, []int64{10, 4, 2, 1}},
		{25, 5, []int64{25, 5, 1}},
		{26, 5, []int64{26, 6, 2, 1}},
		{100, 5, []int64{100, 20, 4, 1}},
		{1300, 2, []int64{1300, 650, 325, 163, 82, 41, 21, 11, 6, 3, 2, 1}},
		{1300, 700, []int64{1300, 2, 1}},
	} {
		for _, parsed := range []int{0, 3} {
			t.Run(fmt.Sprintf("%d by %d, %d parsed", tt.n, tt.group, min(parsed, tt.n)), func(t *testing.T) {
				if tt.n > 1000 {
					testenv.SlowOnFDB(t)
				}

				w := newWorld(t, open(t), 3)
				docs := texts(tt.n)
				for i := range min(parsed, tt.n) {
					docs[i*tt.n/parsed].parse = true
				}
				id := w.submitTree(w.nodes[0], docs, tt.group)
				w.mapAll(w.nodes[0], id) // the parse units
				s, err := w.nodes[0].Levels.Status(w.ctx, id)
				w.must(err)
				w.must(w.nodes[0].Levels.PlantParsed(w.ctx, id, s.Epoch, w.plant(w.nodes[0], id)))
				for step, finished := 0, false; !finished; step++ {
					finished, err = w.nodes[step%3].Levels.TreeStep(w.ctx, id, treeOver(s.Epoch, tt.group))
					w.must(err)
					if step%4 == 1 {
						w.healthy()
					}
				}
				w.healthy()
				if diff := cmp.Diff(tt.want, w.shape(id)); diff != "" {
					t.Fatalf("levels (-want +got):\n%s", diff)
				}
				w.grouped(id, tt.want, tt.group)
			})
		}
	}
}

// grouped checks that each reduce takes its group, in order, and waits for it.
func (w *world) grouped(id mapreduce.JobID, levels []int64, group int64) {
	w.Helper()
	for level := int64(1); level < int64(len(levels)); level++ {
		below := w.level(w.look, id, level-1)
		units := w.level(w.look, id, level)
		for i, u := range units {
			if u.State != mapreduce.Blocked {
				w.Errorf("unit %s is %s", u.ID, u.State)
			}
			var want []int64
			for _, in := range below[int64(i)*group : min(int64(len(below)), (int64(i)+1)*group)] {
				want = append(want, in.Index)
			}
			if diff := cmp.Diff(want, w.taken(w.look, id, u, 100)); diff != "" {
				w.Fatalf("inputs of %s (-want +got):\n%s", u.ID, diff)
			}
		}
		wantFinal := level == int64(len(levels))-1
		if isFinal := units[0].ID == mapreduce.FinalUnit; isFinal != wantFinal || isFinal && units[0].Kind != mapreduce.KindFinal {
			w.Errorf("the first unit of level %d is %s", level, units[0].ID)
		}
	}
}

// A runner claims and ends units of a tree until none is left, in the order and with
// the outcomes that draw says.
type runner struct {
	*world
	id      mapreduce.JobID
	binding binding
	t       *rapid.T
	ended   map[string]int // units by how often they completed
}

// step ends some units in one or several turns, of any node.
func (d *runner) step(failures bool) bool {
	j := d.nodes[rapid.IntRange(0, len(d.nodes)-1).Draw(d.t, "node")]
	units := d.claim(d.nodes[0], d.id, d.binding, rapid.IntRange(1, 8).Draw(d.t, "units"))
	if len(units) == 0 {
		return false
	}
	order := rapid.Permutation(units).Draw(d.t, "order")
	for len(order) > 0 {
		n := rapid.IntRange(1, len(order)).Draw(d.t, "together")
		turn := &queue.Turn{Job: d.id}
		for _, u := range order[:n] {
			report := done(d.id, u)
			if failures && rapid.IntRange(0, 3).Draw(d.t, "fails") == 0 {
				report = errored(d.id, u, mapreduce.PermanentUnit)
			} else {
				d.ended[string(u.ID)]++
			}
			turn.Reports = append(turn.Reports, queue.Report{Report: report})
		}
		order = order[n:]
		res := d.turn(j, turn)
		if rapid.IntRange(0, 3).Draw(d.t, "dies") > 0 { // else the node dies before it lets anything go
			d.letGo(j, d.id, res.Told)
		}
		if rapid.IntRange(0, 5).Draw(d.t, "again") == 0 { // a verdict that was lost
			d.letGo(j, d.id, d.turn(j, turn).Told)
		}
	}
	if rapid.IntRange(0, 7).Draw(d.t, "check") == 0 {
		d.healthy()
	}
	return true
}

// run takes the job to its end.
func (d *runner) run(failures bool) {
	for {
		for d.step(failures) {
		}
		before := len(d.waiting(d.look, d.id))
		d.forgotten(d.nodes[0], d.id)
		if d.climb(d.nodes[0], d.id) {
			return
		}
		if len(d.waiting(d.look, d.id)) == before {
			d.Fatalf("nothing may be claimed, and the job has not ended: %+v", d.job(d.id))
		}
	}
}

// TestTreesInAnyOrder runs trees with units that end in any order, in turns of any
// size, on any node; nodes that die before they let go what waited; units that
// fail; and resumes until none does. Each unit completes once, but those that
// have to be made again because what they were made of was tried again.
func TestTreesInAnyOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt, open(rt), 2)
		docs := texts(rapid.IntRange(1, 30).Draw(rt, "documents"))
		for i := range docs {
			if docs[i].parse = rapid.IntRange(0, 9).Draw(rt, "parse") == 0; !docs[i].parse {
				docs[i].chunks = rapid.IntRange(1, 2).Draw(rt, "chunks")
			}
		}
		group := rapid.Int64Range(2, 6).Draw(rt, "group")
		id := w.submitTree(w.nodes[0], docs, group)
		w.mapAll(w.nodes[0], id)
		w.plantTree(w.nodes[1], id, group)
		w.healthy()
		d := &runner{world: w, id: id, binding: w.session(w.nodes[0]), t: rt, ended: make(map[string]int)}
		d.run(true)
		w.healthy()
		for round := 0; w.job(id).FailedUnits > 0; round++ {
			w.must(w.nodes[0].Lifecycle.Resume(w.ctx, id, mapreduce.Resume{}))
			w.healthy()
			d.run(round < 2)
			w.healthy()
		}
		job := w.job(id)
		if job.State != mapreduce.JobComplete || job.CompletedUnits != job.TotalUnits {
			rt.Fatalf("job ended %v with %d of %d units complete", job.State, job.CompletedUnits, job.TotalUnits)
		}
		units := w.level(w.look, id, 0)
		for _, u := range units {
			if d.ended[string(u.ID)] != 1 {
				rt.Errorf("map unit %s completed %d times", u.ID, d.ended[string(u.ID)])
			}
		}
	})
}

// TestNoBarrier: a reduce may be claimed as soon as its own inputs have ended,
// and its level's index does not matter.
func TestNoBarrier(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submitTree(j, texts(8), 2)
	w.plantTree(j, id, 2)
	s := w.session(j)
	units := w.claim(j, id, s, 8)
	var late []*records.Unit
	for _, u := range units {
		if keys.Document(u.Index) >= 4 {
			late = append(late, u)
			continue
		}
		res := w.turn(j, &queue.Turn{Job: id, Reports: []queue.Report{{Report: done(id, u)}}})
		w.letGo(j, id, res.Told)
	}
	for _, want := range [][]string{{"reduce_L1_0", "reduce_L1_1"}, {"reduce_L2_0"}, nil} {
		var got []string
		for _, u := range w.claim(j, id, s, 8) {
			got = append(got, string(u.ID))
			res := w.turn(j, &queue.Turn{Job: id, Reports: []queue.Report{{Report: done(id, u)}}})
			w.letGo(j, id, res.Told)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("claimed while documents are mapped (-want +got):\n%s", diff)
		}
		w.healthy()
	}
	if job := w.job(id); job.State != mapreduce.Mapping || job.Level != 0 {
		t.Errorf("job is %v at level %d", job.State, job.Level)
	}
	for _, u := range late {
		w.report(j, done(id, u)) // and nobody lets go what waits for them
	}
	w.forgotten(j, id)
	for {
		claimed := w.claim(j, id, s, 8)
		if len(claimed) == 0 {
			break
		}
		for _, u := range claimed {
			w.letGo(j, id, w.turn(j, &queue.Turn{Job: id, Reports: []queue.Report{{Report: done(id, u)}}}).Told)
		}
	}
	if !w.climb(j, id) || w.job(id).State != mapreduce.JobComplete {
		t.Errorf("job is %+v", w.job(id))
	}
	w.healthy()
}

// TestSkippedReduces: a reduce none of whose inputs has an output fails without
// being run, says why, and takes with it what depends on nothing else.
func TestSkippedReduces(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submitTree(j, texts(8), 2)
	w.plantTree(j, id, 2)
	s := w.session(j)
	for _, u := range w.claim(j, id, s, 8) {
		r := done(id, u)
		if keys.Document(u.Index) < 4 {
			r = errored(id, u, mapreduce.PermanentUnit)
		}
		w.letGo(j, id, w.turn(j, &queue.Turn{Job: id, Reports: []queue.Report{{Report: r}}}).Told)
	}
	w.healthy()
	for unit, why := range map[string]string{
		"reduce_L1_0": "the first, doc-00000, failed: it broke", "reduce_L1_1": "the first, doc-00002, failed: it broke",
		"reduce_L2_0": "the first, reduce_L1_0, failed: skipped: none of its inputs has a result; the first, doc-00000",
	} {
		u := w.unit(id, unit)
		if u.State != mapreduce.UnitFailed || u.Attempt != 0 || !strings.Contains(strings.Join(u.Errors, " "), why) {
			t.Errorf("unit %s: %s, %d attempts, %q; want it skipped, and %q", unit, u.State, u.Attempt, u.Errors, why)
		}
	}
	for units := w.claim(j, id, s, 8); len(units) > 0; units = w.claim(j, id, s, 8) {
		for _, u := range units {
			w.letGo(j, id, w.turn(j, &queue.Turn{Job: id, Reports: []queue.Report{{Report: done(id, u)}}}).Told)
		}
	}
	if !w.climb(j, id) || w.job(id).State != mapreduce.JobComplete || w.job(id).FailedUnits != 7 {
		t.Errorf("job is %+v", w.job(id))
	}
	w.healthy()
}

// TestResumeKeepsWhatDoesNotDepend: of a tree, a resume makes again only what was
// made of units that had failed.
func TestResumeKeepsWhatDoesNotDepend(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submitTree(j, texts(8), 2)
	w.plantTree(j, id, 2)
	s := w.session(j)
	bad := "doc-00003"
	run := func() (ran []string) {
		for units := w.claim(j, id, s, 8); len(units) > 0; units = w.claim(j, id, s, 8) {
			for _, u := range units {
				ran = append(ran, string(u.ID))
				r := done(id, u)
				if u.ID == mapreduce.UnitID(bad) {
					r = errored(id, u, mapreduce.PermanentUnit)
				}
				w.letGo(j, id, w.turn(j, &queue.Turn{Job: id, Reports: []queue.Report{{Report: r}}}).Told)
			}
		}
		return ran
	}
	if ran := run(); len(ran) != 15 || !w.climb(j, id) {
		t.Fatalf("ran %v; job %+v", ran, w.job(id))
	}
	w.must(j.Lifecycle.Resume(w.ctx, id, mapreduce.Resume{}))
	w.healthy()
	bad = ""
	if diff := cmp.Diff([]string{"doc-00003", "reduce_L1_1", "reduce_L2_0", "final"}, run()); diff != "" {
		t.Errorf("ran after the resume (-want +got):\n%s", diff)
	}
	if !w.climb(j, id) || w.job(id).State != mapreduce.JobComplete || w.job(id).FailedUnits != 0 {
		t.Errorf("job is %+v", w.job(id))
	}
	w.healthy()
	if err := j.Lifecycle.Resume(w.ctx, id, mapreduce.Resume{}); errs.KindOf(err) != errs.Precondition {
		t.Errorf("resume of a complete job: %v", err)
	}
	w.must(j.Lifecycle.Delete(w.ctx, id))
	for _, kv := range w.all() {
		if strings.Contains(string(kv.Key), string(id)) {
			t.Errorf("left after the delete: %x", kv.Key)
		}
	}
}

// reparent writes of a unit that another reduce waits for it.
func (w *world) reparent(id mapreduce.JobID, unit mapreduce.UnitID, parent int64) {
	w.Helper()
	key, u := w.space.Job(id).Unit(unit), new(storagev1.Unit)
	w.must(proto.Unmarshal(w.get(key), u))
	u.Parent = parent
	w.set(key, u)
}

// TestCheckFindsLostWaits: whatever is wrong with a tree is found.
func TestCheckFindsLostWaits(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(w *world, id mapreduce.JobID)
	}{
		{"a reduce waits for one too many", func(w *world, id mapreduce.JobID) {
			w.write(func(tx store.Tx) { tx.Add(w.space.Queues(id).Wait(1, 1), int64(keys.OneLeft)) })
		}},
		{"a reduce was let go and did not notice", func(w *world, id mapreduce.JobID) {
			w.write(func(tx store.Tx) { tx.Set(w.space.Queues(id).Wait(1, 1), little(int64(keys.LetGo+2*keys.OneSurvivor))) })
		}},
		{"nobody knows what it waits for", func(w *world, id mapreduce.JobID) { w.clear(w.space.Queues(id).Wait(1, 1)) }},
		{"nobody waits so", func(w *world, id mapreduce.JobID) {
			w.write(func(tx store.Tx) { tx.Add(w.space.Queues(id).Wait(1, 9), int64(keys.OneLeft)) })
		}},
		{"a unit is another's input", func(w *world, id mapreduce.JobID) {
			w.reparent(id, "doc-00005", 1)
		}},
		{"a unit is nobody's input", func(w *world, id mapreduce.JobID) {
			w.reparent(id, "doc-00005", 0)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, open(t), 1)
			id := w.submitTree(w.nodes[0], texts(8), 2)
			w.plantTree(w.nodes[0], id, 2)
			w.healthy()
			tt.damage(w, id)
			if len(w.findings()) == 0 {
				t.Error("nothing was found")
			}
		})
	}
}
