package jobs_test

import (
	"testing"

	"github.com/coditect/mapreduce/store/jobs/nodes"
)

// What a grant says of tokens and of units that run is of one moment: that none
// are left while nothing runs is then true.
func TestGrantSaysWhatRuns(t *testing.T) {
	w := newWorld(t, open(t), 2)
	sp := spec()
	sp.Budget = 1000
	id := w.submit(w.nodes[0], sp, texts(4))
	granted := func(want int64) {
		t.Helper()
		g, err := w.nodes[1].Grants.Grant(w.ctx, id, nodes.GrantRequest{})
		w.must(err)
		if g.Running != want {
			t.Errorf("%d units run, want %d", g.Running, want)
		}
	}
	granted(0)
	_, err := w.nodes[0].Grants.Grant(w.ctx, id, nodes.GrantRequest{Tokens: 100, Slots: 5, Parallelism: 10})
	w.must(err)
	units := w.claim(w.nodes[0], id, w.session(w.nodes[0]), 3)
	granted(3)
	w.report(w.nodes[0], done(id, units[0]))
	granted(2)
}
