package jobs_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/sessions"
	"github.com/coditect/mapreduce/store/jobs/turns"
	"github.com/coditect/mapreduce/store/keys"
)

// The tests of this file are of what a reduce of a tree waits for when an input
// ends in another way than by a report, or when nobody knows whether it ended.

// once returns a world over a store whose next commit, once fail is called, is one
// of which nobody knows.
func once(t *testing.T, nodes int) (w *world, fail func()) {
	t.Helper()
	s := open(t)
	f := fault.New(s, fault.Config{})
	w = newWorld(t, f, nodes)
	w.look = newWorld(t, s, 1).nodes[0]
	return w, func() { f.FailNext(fault.UnknownCommitted) }
}

// TestSetAsideInputsAreTold: a unit whose workers died twice lets go what waits
// for it, also if nobody knew at first that it was set aside.
func TestSetAsideInputsAreTold(t *testing.T) {
	for name, unknown := range map[string]bool{"known": false, "unknown": true} {
		t.Run(name, func(t *testing.T) {
			w, fail := once(t, 1)
			j := w.nodes[0]
			id := w.submitTree(j, texts(4), 2)
			w.plantTree(j, id, 2)
			for _, u := range w.claim(j, id, w.session(j), 4) {
				r := done(id, u)
				if u.ID == "doc-00001" {
					r = returned(id, u)
				}
				if keys.Document(u.Index) < 2 {
					w.letGo(j, id, w.turn(j, &turns.Turn{Job: id, Reports: []turns.Report{{Report: r}}}).Told)
				}
			}
			var loss *sessions.Loss
			for death := range 2 {
				s := w.session(j)
				running := make(map[mapreduce.Held]bool)
				for _, u := range w.claim(j, id, s, 1) {
					running[mapreduce.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)}] = true
				}
				if unknown && death == 1 {
					fail()
				}
				var err error
				loss, err = j.Sessions.Expire(w.ctx, s.id, j.Node(), s.epoch, running)
				w.must(err)
			}
			if u := w.unit(id, "doc-00001"); u.State != mapreduce.UnitFailed {
				t.Fatalf("unit is %s: the test shows nothing", u.State)
			}
			loss.Told[id] = slices.Compact(loss.Told[id]) // runs that failed say it as well
			if diff := cmp.Diff(map[mapreduce.JobID][]records.WaitRef{id: {{Level: 1, Index: 0}}}, loss.Told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]mapreduce.JobID{id}, loss.Jobs); diff != "" {
				t.Errorf("jobs (-want +got):\n%s", diff)
			}
			w.letGo(j, id, loss.Told[id])
			if got := w.claim(j, id, w.session(j), 4); len(got) != 1 || got[0].ID != "reduce_L1_0" {
				t.Errorf("claimed %v, want the reduce over what is left", got)
			}
			w.healthy()
		})
	}
}

// TestSkipsThatNobodyKnewOf: what waits for a reduce that was skipped is told, also
// if the commit was one of which nobody knew, or a node died right after it.
func TestSkipsThatNobodyKnewOf(t *testing.T) {
	w, fail := once(t, 2)
	j := w.nodes[0]
	id := w.submitTree(j, texts(8), 2)
	w.plantTree(j, id, 2)
	var told []records.WaitRef
	for _, u := range w.claim(j, id, w.session(j), 8) {
		if keys.Document(u.Index) < 4 {
			r := turns.Report{Report: errored(id, u, mapreduce.PermanentUnit)}
			told = append(told, w.turn(j, &turns.Turn{Job: id, Reports: []turns.Report{r}}).Told...)
		}
	}
	want := []records.WaitRef{{Level: 2, Index: 0}, {Level: 2, Index: 0}}
	fail()
	for i, node := range w.nodes {
		ready, got, err := node.Turns.Unblock(w.ctx, id, told)
		w.must(err)
		if diff := cmp.Diff(want, got); diff != "" || len(ready) > 0 {
			t.Errorf("call %d: %v are ready, and told (-want +got):\n%s", i, ready, diff)
		}
	}
	w.letGo(j, id, want)
	if u := w.unit(id, "reduce_L2_0"); u.State != mapreduce.UnitFailed {
		t.Errorf("unit %s is %s, want it skipped", u.ID, u.State)
	}
	w.healthy()
}
