package lifecycle_test

import (
	"testing"

	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
)

// A delete whose commit is in doubt runs again, finds no job, and has done it.
func TestDeleteInDoubt(t *testing.T) {
	f := fault.New(jobstest.Open(t), fault.Config{})
	w := jobstest.NewWorld(t, f, 1)
	id := w.Submit(w.Nodes[0], jobstest.Spec(), jobstest.Texts(2))
	w.Run(w.Nodes[0], id)
	f.FailNext(fault.UnknownCommitted)
	if err := w.Nodes[0].Lifecycle.Delete(w.Ctx, id); err != nil {
		t.Errorf("delete: %v", err)
	}
	if err := w.Nodes[0].Lifecycle.Delete(w.Ctx, id); err == nil {
		t.Error("what was deleted is deleted again")
	}
}
