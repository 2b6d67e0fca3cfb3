package causes_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// failed returns a world with a job whose units have failed, each with an error.
func failed(t *testing.T, db store.Store, causes ...string) (*jobstest.World, mapreduce.JobID) {
	w := jobstest.NewWorld(t, db, 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(len(causes)))
	for s := w.Session(j); len(causes) > 0; { // a job gets so many slots at a time
		for _, u := range w.Claim(j, id, s, len(causes)) {
			r := jobstest.Errored(id, u, protocol.PermanentUnit)
			r.Errors, causes = causes[:1], causes[1:]
			w.Report(j, r)
		}
	}
	return w, id
}

// marks are what was said of causes of a job.
func marks(w *jobstest.World, id mapreduce.JobID) (all []string) {
	w.Helper()
	for _, m := range w.Job(id).Causes {
		all = append(all, fmt.Sprintf("%s %s %d %s", m.Cause, m.State, m.Units, m.By))
	}
	return all
}

// events counts the events of marks of a job.
func events(w *jobstest.World, id mapreduce.JobID) (n int) {
	w.Helper()
	page, err := w.Nodes[0].Audit.List(w.Ctx, mapreduce.ListEventsQuery{Job: id, PageSize: 1000})
	w.Must(err)
	for _, c := range page.Checkpoints {
		if c.Kind == mapreduce.EventMarked {
			n++
		}
	}
	return n
}

// Failed units are read by their list while they are few, in the order of their documents.
func TestFew(t *testing.T) {
	w, id := failed(t, jobstest.Open(t), "c", "a", "b", "a")
	st := w.Nodes[0].Causes
	for most, want := range map[int]int{3: 0, 4: 4, 100: 4} {
		units, few, err := st.Few(w.Ctx, id, most)
		w.Must(err)
		if few != (want > 0) || len(units) != want {
			t.Errorf("at most %d: got %d units, few %t; want %d", most, len(units), few, want)
		}
		for i, u := range units {
			if u.State != mapreduce.UnitFailed || i > 0 && u.Index <= units[i-1].Index {
				t.Errorf("unit %d is %s, at index %d", i, u.State, u.Index)
			}
		}
	}
}

// A cause has the mark that was put last, for all units that had failed for it, and one event for each change. A deletion
// removes the marks, and nothing is said of a job behind it.
func TestMark(t *testing.T) {
	w, id := failed(t, jobstest.Open(t), "a 1", "a 2", "b", "a 3")
	j := w.Nodes[0]
	by := mapreduce.WithActor(w.Ctx, mapreduce.Principal{Name: "ann"})
	for _, tt := range []struct {
		cause  string
		state  mapreduce.CauseState
		want   []string
		events int
	}{
		{"b", mapreduce.CauseOpen, nil, 0},
		{"a …", mapreduce.CauseIgnored, []string{"a … ignored 3 ann"}, 1},
		{"a …", mapreduce.CauseIgnored, []string{"a … ignored 3 ann"}, 1}, // sent again
		{"a …", mapreduce.CauseResolved, []string{"a … resolved 3 ann"}, 2},
		{"a …", mapreduce.CauseOpen, nil, 3},
		{"b", mapreduce.CauseResolved, []string{"b resolved 1 ann"}, 4},
	} {
		w.Must(j.Causes.Mark(by, id, tt.cause, tt.state))
		if diff := cmp.Diff(tt.want, marks(w, id)); diff != "" || events(w, id) != tt.events {
			t.Errorf("%s is %s: %d events, want %d (-want +got):\n%s", tt.cause, tt.state, events(w, id), tt.events, diff)
		}
	}
	if open := w.Job(id).OpenFailures(); open != 3 {
		t.Errorf("%d failures are open, want 3", open)
	}
	if err := j.Causes.Mark(by, id, "c", mapreduce.CauseIgnored); errs.KindOf(err) != errs.Precondition {
		t.Errorf("a cause that no unit has: %v", err)
	}
	w.Healthy()

	w.Must(j.Lifecycle.Cancel(w.Ctx, id))
	w.Must(j.Lifecycle.Delete(w.Ctx, id))
	for _, kv := range w.All() {
		if name, _, err := w.Space.Last(kv.Key); err != nil || name == "cause" {
			t.Errorf("%x is left of the job: %v", kv.Key, err)
		}
	}
	if err := j.Causes.Mark(by, id, "b", mapreduce.CauseOpen); errs.KindOf(err) != errs.NotFound {
		t.Errorf("of a job that is gone: %v", err)
	}
}

// A mark whose commit is in doubt is one mark, with one event.
func TestMarkInDoubt(t *testing.T) {
	f := fault.New(jobstest.Open(t), fault.Config{})
	w, id := failed(t, f, "a", "a")
	f.FailNext(fault.UnknownCommitted)
	w.Must(w.Nodes[0].Causes.Mark(w.Ctx, id, "a", mapreduce.CauseIgnored))
	if diff := cmp.Diff([]string{"a ignored 2 "}, marks(w, id)); diff != "" || events(w, id) != 1 {
		t.Errorf("%d events (-want +got):\n%s", events(w, id), diff)
	}
}

// atPoint has do run once when a node comes to a point behind another.
func atPoint(t *testing.T, w *jobstest.World, behind, at failpoint.Point, do func()) {
	passed, done := false, false
	w.Nodes[0].SetHook(func(p failpoint.Point) {
		if passed = passed || p == behind; passed && p == at && !done {
			done = true
			do()
		}
	})
	t.Cleanup(func() {
		if !done {
			w.Errorf("the node did not come to %s", at)
		}
	})
}

// Units that a resume tries again while they are marked are not counted: those that fail then show.
func TestMarkBesideResume(t *testing.T) {
	w, id := failed(t, jobstest.Open(t), "a", "a")
	j := w.Nodes[0]
	w.Must(j.Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "for a while"))
	atPoint(t, w, failpoint.Mark.Before(), failpoint.Mark.Before(), func() { w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{})) })
	if err := j.Causes.Mark(w.Ctx, id, "a", mapreduce.CauseResolved); errs.KindOf(err) != errs.Precondition {
		t.Errorf("all units of the cause were tried again meanwhile: %v", err)
	}
	if diff := cmp.Diff([]string(nil), marks(w, id)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.Healthy()
}

// A cause that is marked while the job is resumed for another one keeps its units.
func TestResumeBesideMark(t *testing.T) {
	w, id := failed(t, jobstest.Open(t), "a", "b", "b", "c")
	j := w.Nodes[0]
	w.Must(j.Causes.Mark(w.Ctx, id, "c", mapreduce.CauseIgnored))
	w.Must(j.Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "for a while"))
	atPoint(t, w, failpoint.Retry.After(), failpoint.Resume.Before(), func() { w.Must(j.Causes.Mark(w.Ctx, id, "b", mapreduce.CauseResolved)) })
	w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{Cause: "a"}))
	if diff := cmp.Diff([]string{"c ignored 1 ", "b resolved 2 "}, marks(w, id)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.Healthy()
}

// No more causes are marked than are kept.
func TestManyMarks(t *testing.T) {
	var all []string
	for i := range mapreduce.MaxCauseMarks + 1 {
		all = append(all, fmt.Sprintf("%c%c", 'a'+i/26, 'a'+i%26))
	}
	w, id := failed(t, jobstest.Open(t), all...)
	j := w.Nodes[0]
	for _, cause := range all[1:] {
		w.Must(j.Causes.Mark(w.Ctx, id, cause, mapreduce.CauseIgnored))
	}
	if err := j.Causes.Mark(w.Ctx, id, all[0], mapreduce.CauseIgnored); errs.KindOf(err) != errs.Exhausted {
		t.Errorf("one more: %v", err)
	}
	w.Must(j.Causes.Mark(w.Ctx, id, all[1], mapreduce.CauseResolved))
	w.Must(j.Causes.Mark(w.Ctx, id, all[2], mapreduce.CauseOpen))
	w.Must(j.Causes.Mark(w.Ctx, id, all[0], mapreduce.CauseIgnored))
	w.Healthy()
}
