package jobs_test

import (
	"testing"

	"github.com/coditect/mapreduce/store/fault"
)

// A delete whose commit is in doubt runs again, finds no job, and has done it.
func TestDeleteInDoubt(t *testing.T) {
	f := fault.New(open(t), fault.Config{})
	w := newWorld(t, f, 1)
	id := w.submit(w.nodes[0], spec(), texts(2))
	w.run(w.nodes[0], id)
	f.FailNext(fault.UnknownCommitted)
	if err := w.nodes[0].Lifecycle.Delete(w.ctx, id); err != nil {
		t.Errorf("delete: %v", err)
	}
	if err := w.nodes[0].Lifecycle.Delete(w.ctx, id); err == nil {
		t.Error("what was deleted is deleted again")
	}
}
