package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// forgotten unblocks what nobody was told of.
func forgotten(w *jobstest.World, j *jobs.Jobs, id mapreduce.JobID) {
	w.Helper()
	refs, err := j.Turns.Forgotten(w.Ctx, id, records.WaitRef{}, 10_000)
	w.Must(err)
	w.LetGo(j, id, refs)
}

// climb takes a tree as far up as it has ended, and reports whether the job has.
func climb(w *jobstest.World, j *jobs.Jobs, id mapreduce.JobID) bool {
	w.Helper()
	for {
		s, err := j.Levels.Status(w.Ctx, id)
		w.Must(err)
		switch {
		case !s.State.Running():
			return true
		case !s.Ended():
			return false
		case s.Completed == 0:
			w.Must(j.Lifecycle.Fail(w.Ctx, id, s.Epoch, "all failed"))
		case jobstest.RootOf(s):
			w.Must(j.Levels.CompleteWith(w.Ctx, id, s.Epoch, []byte("the result")))
		default:
			w.Must(j.Levels.Ascend(w.Ctx, id, s.Epoch))
		}
	}
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

				w := jobstest.NewWorld(t, jobstest.Open(t), 3)
				docs := jobstest.Texts(tt.n)
				for i := range min(parsed, tt.n) {
					docs[i*tt.n/parsed].Parse = true
				}
				id := w.SubmitTree(w.Nodes[0], docs, tt.group)
				w.MapAll(w.Nodes[0], id) // the parse units
				s, err := w.Nodes[0].Levels.Status(w.Ctx, id)
				w.Must(err)
				w.Must(w.Nodes[0].Levels.InsertParsed(w.Ctx, id, s.Epoch, w.DocumentUnits(w.Nodes[0], id)))
				for step, finished := 0, false; !finished; step++ {
					finished, err = w.Nodes[step%3].Levels.TreeStep(w.Ctx, id, jobstest.TreeOver(s.Epoch, tt.group))
					w.Must(err)
					if step%4 == 1 {
						w.Healthy()
					}
				}
				w.Healthy()
				if diff := cmp.Diff(tt.want, w.Shape(id)); diff != "" {
					t.Fatalf("levels (-want +got):\n%s", diff)
				}
				grouped(w, id, tt.want, tt.group)
			})
		}
	}
}

// grouped checks that each reduce takes its group, in order, and waits for it.
func grouped(w *jobstest.World, id mapreduce.JobID, levels []int64, group int64) {
	w.Helper()
	for level := int64(1); level < int64(len(levels)); level++ {
		below := w.Level(w.Look, id, level-1)
		units := w.Level(w.Look, id, level)
		for i, u := range units {
			if u.State != mapreduce.Blocked {
				w.Errorf("unit %s is %s", u.ID, u.State)
			}
			var want []int64
			for _, in := range below[int64(i)*group : min(int64(len(below)), (int64(i)+1)*group)] {
				want = append(want, in.Index)
			}
			if diff := cmp.Diff(want, taken(w, w.Look, id, u, 100)); diff != "" {
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
	*jobstest.World
	id      mapreduce.JobID
	binding jobstest.Binding
	t       *rapid.T
	ended   map[string]int // units by how often they completed
}

// step ends some units in one or several turns, of any node.
func (d *runner) step(failures bool) bool {
	j := d.Nodes[rapid.IntRange(0, len(d.Nodes)-1).Draw(d.t, "node")]
	units := d.Claim(d.Nodes[0], d.id, d.binding, rapid.IntRange(1, 8).Draw(d.t, "units"))
	if len(units) == 0 {
		return false
	}
	order := rapid.Permutation(units).Draw(d.t, "order")
	for len(order) > 0 {
		n := rapid.IntRange(1, len(order)).Draw(d.t, "together")
		turn := &queue.Turn{Job: d.id}
		for _, u := range order[:n] {
			report := jobstest.Done(d.id, u)
			if failures && rapid.IntRange(0, 3).Draw(d.t, "fails") == 0 {
				report = jobstest.Errored(d.id, u, protocol.PermanentUnit)
			} else {
				d.ended[string(u.ID)]++
			}
			turn.Reports = append(turn.Reports, queue.Report{Report: report})
		}
		order = order[n:]
		res := d.Turn(j, turn)
		if rapid.IntRange(0, 3).Draw(d.t, "dies") > 0 { // else the node dies before it lets anything go
			d.LetGo(j, d.id, res.Told)
		}
		if rapid.IntRange(0, 5).Draw(d.t, "again") == 0 { // a verdict that was lost
			d.LetGo(j, d.id, d.Turn(j, turn).Told)
		}
	}
	if rapid.IntRange(0, 7).Draw(d.t, "check") == 0 {
		d.Healthy()
	}
	return true
}

// run takes the job to its end.
func (d *runner) run(failures bool) {
	for {
		for d.step(failures) {
		}
		before := len(d.Waiting(d.Look, d.id))
		forgotten(d.World, d.Nodes[0], d.id)
		if climb(d.World, d.Nodes[0], d.id) {
			return
		}
		if len(d.Waiting(d.Look, d.id)) == before {
			d.Fatalf("nothing may be claimed, and the job has not ended: %+v", d.Job(d.id))
		}
	}
}

// TestTreesInAnyOrder runs trees with units that end in any order, in turns of any
// size, on any node; nodes that die before they let go what waited; units that
// fail; and resumes until none does. Each unit completes once, but those that
// have to be made again because what they were made of was tried again.
func TestTreesInAnyOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := jobstest.NewWorld(rt, jobstest.Open(rt), 2)
		docs := jobstest.Texts(rapid.IntRange(1, 30).Draw(rt, "documents"))
		for i := range docs {
			if docs[i].Parse = rapid.IntRange(0, 9).Draw(rt, "parse") == 0; !docs[i].Parse {
				docs[i].Chunks = rapid.IntRange(1, 2).Draw(rt, "chunks")
			}
		}
		group := rapid.Int64Range(2, 6).Draw(rt, "group")
		id := w.SubmitTree(w.Nodes[0], docs, group)
		w.MapAll(w.Nodes[0], id)
		w.PlanTree(w.Nodes[1], id, group)
		w.Healthy()
		d := &runner{World: w, id: id, binding: w.Session(w.Nodes[0]), t: rt, ended: make(map[string]int)}
		d.run(true)
		w.Healthy()
		for round := 0; w.Job(id).FailedUnits > 0; round++ {
			w.Must(w.Nodes[0].Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
			w.Healthy()
			d.run(round < 2)
			w.Healthy()
		}
		job := w.Job(id)
		if job.State != mapreduce.JobComplete || job.CompletedUnits != job.TotalUnits {
			rt.Fatalf("job ended %v with %d of %d units complete", job.State, job.CompletedUnits, job.TotalUnits)
		}
		units := w.Level(w.Look, id, 0)
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
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.SubmitTree(j, jobstest.Texts(8), 2)
	w.PlanTree(j, id, 2)
	s := w.Session(j)
	units := w.Claim(j, id, s, 8)
	var late []*records.Unit
	for _, u := range units {
		if keys.Document(u.Index) >= 4 {
			late = append(late, u)
			continue
		}
		res := w.Turn(j, &queue.Turn{Job: id, Reports: []queue.Report{{Report: jobstest.Done(id, u)}}})
		w.LetGo(j, id, res.Told)
	}
	for _, want := range [][]string{{"reduce_L1_0", "reduce_L1_1"}, {"reduce_L2_0"}, nil} {
		var got []string
		for _, u := range w.Claim(j, id, s, 8) {
			got = append(got, string(u.ID))
			res := w.Turn(j, &queue.Turn{Job: id, Reports: []queue.Report{{Report: jobstest.Done(id, u)}}})
			w.LetGo(j, id, res.Told)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("claimed while documents are mapped (-want +got):\n%s", diff)
		}
		w.Healthy()
	}
	if job := w.Job(id); job.State != mapreduce.Mapping || job.Level != 0 {
		t.Errorf("job is %v at level %d", job.State, job.Level)
	}
	for _, u := range late {
		w.Report(j, jobstest.Done(id, u)) // and nobody lets go what waits for them
	}
	forgotten(w, j, id)
	for {
		claimed := w.Claim(j, id, s, 8)
		if len(claimed) == 0 {
			break
		}
		for _, u := range claimed {
			w.LetGo(j, id, w.Turn(j, &queue.Turn{Job: id, Reports: []queue.Report{{Report: jobstest.Done(id, u)}}}).Told)
		}
	}
	if !climb(w, j, id) || w.Job(id).State != mapreduce.JobComplete {
		t.Errorf("job is %+v", w.Job(id))
	}
	w.Healthy()
}

// TestSkippedReduces: a reduce none of whose inputs has an output fails without
// being run, says why, and takes with it what depends on nothing else.
func TestSkippedReduces(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.SubmitTree(j, jobstest.Texts(8), 2)
	w.PlanTree(j, id, 2)
	s := w.Session(j)
	for _, u := range w.Claim(j, id, s, 8) {
		r := jobstest.Done(id, u)
		if keys.Document(u.Index) < 4 {
			r = jobstest.Errored(id, u, protocol.PermanentUnit)
		}
		w.LetGo(j, id, w.Turn(j, &queue.Turn{Job: id, Reports: []queue.Report{{Report: r}}}).Told)
	}
	w.Healthy()
	for unit, why := range map[string]string{
		"reduce_L1_0": "the first, doc-00000, failed: it broke", "reduce_L1_1": "the first, doc-00002, failed: it broke",
		"reduce_L2_0": "the first, reduce_L1_0, failed: skipped: none of its inputs has a result; the first, doc-00000",
	} {
		u := w.Unit(id, unit)
		if u.State != mapreduce.UnitFailed || u.Attempt != 0 || !strings.Contains(strings.Join(u.Errors, " "), why) {
			t.Errorf("unit %s: %s, %d attempts, %q; want it skipped, and %q", unit, u.State, u.Attempt, u.Errors, why)
		}
	}
	for units := w.Claim(j, id, s, 8); len(units) > 0; units = w.Claim(j, id, s, 8) {
		for _, u := range units {
			w.LetGo(j, id, w.Turn(j, &queue.Turn{Job: id, Reports: []queue.Report{{Report: jobstest.Done(id, u)}}}).Told)
		}
	}
	if !climb(w, j, id) || w.Job(id).State != mapreduce.JobComplete || w.Job(id).FailedUnits != 7 {
		t.Errorf("job is %+v", w.Job(id))
	}
	w.Healthy()
}

// TestResumeKeepsWhatDoesNotDepend: of a tree, a resume makes again only what was
// made of units that had failed.
func TestResumeKeepsWhatDoesNotDepend(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.SubmitTree(j, jobstest.Texts(8), 2)
	w.PlanTree(j, id, 2)
	s := w.Session(j)
	bad := "doc-00003"
	run := func() (ran []string) {
		for units := w.Claim(j, id, s, 8); len(units) > 0; units = w.Claim(j, id, s, 8) {
			for _, u := range units {
				ran = append(ran, string(u.ID))
				r := jobstest.Done(id, u)
				if u.ID == mapreduce.UnitID(bad) {
					r = jobstest.Errored(id, u, protocol.PermanentUnit)
				}
				w.LetGo(j, id, w.Turn(j, &queue.Turn{Job: id, Reports: []queue.Report{{Report: r}}}).Told)
			}
		}
		return ran
	}
	if ran := run(); len(ran) != 15 || !climb(w, j, id) {
		t.Fatalf("ran %v; job %+v", ran, w.Job(id))
	}
	w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
	w.Healthy()
	bad = ""
	if diff := cmp.Diff([]string{"doc-00003", "reduce_L1_1", "reduce_L2_0", "final"}, run()); diff != "" {
		t.Errorf("ran after the resume (-want +got):\n%s", diff)
	}
	if !climb(w, j, id) || w.Job(id).State != mapreduce.JobComplete || w.Job(id).FailedUnits != 0 {
		t.Errorf("job is %+v", w.Job(id))
	}
	w.Healthy()
	if err := j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}); errs.KindOf(err) != errs.Precondition {
		t.Errorf("resume of a complete job: %v", err)
	}
	w.Must(j.Lifecycle.Delete(w.Ctx, id))
	for _, kv := range w.All() {
		if strings.Contains(string(kv.Key), string(id)) {
			t.Errorf("left after the delete: %x", kv.Key)
		}
	}
}

// reparent writes of a unit that another reduce waits for it.
func reparent(w *jobstest.World, id mapreduce.JobID, unit mapreduce.UnitID, parent int64) {
	w.Helper()
	key, u := w.Space.Job(id).Unit(unit), new(storagev1.Unit)
	w.Must(proto.Unmarshal(w.Get(key), u))
	u.Parent = parent
	w.Set(key, u)
}

// TestCheckFindsLostWaits: whatever is wrong with a tree is found.
func TestCheckFindsLostWaits(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(w *jobstest.World, id mapreduce.JobID)
	}{
		{"a reduce waits for one too many", func(w *jobstest.World, id mapreduce.JobID) {
			w.Write(func(tx store.Tx) { tx.Add(w.Space.Queues(id).Wait(1, 1), int64(keys.OneLeft)) })
		}},
		{"a reduce was let go and did not notice", func(w *jobstest.World, id mapreduce.JobID) {
			w.Write(func(tx store.Tx) {
				tx.Set(w.Space.Queues(id).Wait(1, 1), jobstest.Little(int64(keys.LetGo+2*keys.OneSurvivor)))
			})
		}},
		{"nobody knows what it waits for", func(w *jobstest.World, id mapreduce.JobID) { clear(w, w.Space.Queues(id).Wait(1, 1)) }},
		{"nobody waits so", func(w *jobstest.World, id mapreduce.JobID) {
			w.Write(func(tx store.Tx) { tx.Add(w.Space.Queues(id).Wait(1, 9), int64(keys.OneLeft)) })
		}},
		{"a unit is another's input", func(w *jobstest.World, id mapreduce.JobID) {
			reparent(w, id, "doc-00005", 1)
		}},
		{"a unit is nobody's input", func(w *jobstest.World, id mapreduce.JobID) {
			reparent(w, id, "doc-00005", 0)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := jobstest.NewWorld(t, jobstest.Open(t), 1)
			id := w.SubmitTree(w.Nodes[0], jobstest.Texts(8), 2)
			w.PlanTree(w.Nodes[0], id, 2)
			w.Healthy()
			tt.damage(w, id)
			if len(w.Findings()) == 0 {
				t.Error("nothing was found")
			}
		})
	}
}
