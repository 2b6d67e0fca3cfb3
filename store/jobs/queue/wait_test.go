package queue_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// The tests of this file are of what a reduce of a tree waits for when an input
// ends in another way than by a report, or when nobody knows whether it ended.

// once returns a world over a store whose next commit, once fail is called, is one
// of which nobody knows.
func once(t *testing.T, nodes int) (w *jobstest.World, fail func()) {
	t.Helper()
	s := jobstest.Open(t)
	f := fault.New(s, fault.Config{})
	w = jobstest.NewWorld(t, f, nodes)
	w.Look = jobstest.NewWorld(t, s, 1).Nodes[0]
	return w, func() { f.FailNext(fault.UnknownCommitted) }
}

// TestSkipsThatNobodyKnewOf: what waits for a reduce that was skipped is told, also
// if the commit was one of which nobody knew, or a node died right after it.
func TestSkipsThatNobodyKnewOf(t *testing.T) {
	w, fail := once(t, 2)
	j := w.Nodes[0]
	id := w.SubmitTree(j, jobstest.Texts(8), 2)
	w.PlanTree(j, id, 2)
	var told []records.WaitRef
	for _, u := range w.Claim(j, id, w.Session(j), 8) {
		if keys.Document(u.Index) < 4 {
			r := queue.Report{Report: jobstest.Errored(id, u, protocol.PermanentUnit)}
			told = append(told, w.Turn(j, &queue.Turn{Job: id, Reports: []queue.Report{r}}).Told...)
		}
	}
	want := []records.WaitRef{{Level: 2, Index: 0}, {Level: 2, Index: 0}}
	fail()
	for i, node := range w.Nodes {
		ready, got, err := node.Turns.Unblock(w.Ctx, id, told)
		w.Must(err)
		if diff := cmp.Diff(want, got); diff != "" || len(ready) > 0 {
			t.Errorf("call %d: %v are ready, and told (-want +got):\n%s", i, ready, diff)
		}
	}
	w.LetGo(j, id, want)
	if u := w.Unit(id, "reduce_L2_0"); u.State != mapreduce.UnitFailed {
		t.Errorf("unit %s is %s, want it skipped", u.ID, u.State)
	}
	w.Healthy()
}
