package nodes_test

import (
	"testing"

	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/nodes"
)

// What a grant says of tokens and of units that run is of one moment: that none
// are left while nothing runs is then true.
func TestGrantSaysWhatRuns(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	sp := jobstest.Spec()
	sp.Budget = 1000
	id := w.Submit(w.Nodes[0], sp, jobstest.Texts(4))
	granted := func(want int64) {
		t.Helper()
		g, err := w.Nodes[1].Grants.Grant(w.Ctx, id, nodes.GrantRequest{})
		w.Must(err)
		if g.Running != want {
			t.Errorf("%d units run, want %d", g.Running, want)
		}
	}
	granted(0)
	_, err := w.Nodes[0].Grants.Grant(w.Ctx, id, nodes.GrantRequest{Tokens: 100, Slots: 5, Parallelism: 10})
	w.Must(err)
	units := w.Claim(w.Nodes[0], id, w.Session(w.Nodes[0]), 3)
	granted(3)
	w.Report(w.Nodes[0], jobstest.Done(id, units[0]))
	granted(2)
}

// Who reads what a node was granted takes none of it: units may run in all of its slots.
func TestReadingAGrantTakesNoSlots(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	id := w.Submit(w.Nodes[0], jobstest.Spec(), jobstest.Texts(4))
	for i, ask := range []nodes.GrantRequest{{Slots: 2, Parallelism: 4}, {}, {}, {Parallelism: 4}} {
		g, err := w.Nodes[0].Grants.Grant(w.Ctx, id, ask)
		w.Must(err)
		if g.Slots != 2 {
			t.Errorf("after request %d the node has %d slots, want 2", i, g.Slots)
		}
	}
}
