package jobs_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
)

// A crossed store does something else before a transaction commits that has read
// what it needs, once.
type crossed struct {
	store.Store
	cross func()
}

type crossedTx struct {
	store.Tx
	store *crossed
}

func (c *crossed) Begin(ctx context.Context) (store.Tx, error) {
	tx, err := c.Store.Begin(ctx)
	return crossedTx{tx, c}, err
}

func (t crossedTx) Commit(ctx context.Context) error {
	if cross := t.store.cross; cross != nil {
		t.store.cross = nil
		cross()
	}
	return t.Tx.Commit(ctx)
}

// Two turns with the same reports, few and so many that they are read as
// neighbours, of which one commits while the other is under way: both reporters are
// told that it is done, each unit ends once, and what it spent counts once.
func TestReportsThatCross(t *testing.T) {
	for _, n := range []int{1, store.MinNear - 1, store.MinNear, 40} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := open(t)
			w := newWorld(t, s, 2)
			id := w.submit(w.nodes[0], spec(), texts(50))
			turn := &jobs.Turn{Job: id}
			for _, u := range w.claim(w.nodes[0], id, w.session(w.nodes[0]), n) {
				turn.Reports = append(turn.Reports, jobs.TurnReport{Report: done(id, u)})
			}
			var first *jobs.TurnResult
			between := &crossed{Store: s, cross: func() { first = w.turn(w.nodes[1], turn) }}
			late := jobs.New(store.NewDB(between, store.Config{}), w.space, "late", w.clock)
			second := w.turn(late, turn)
			for i := range n {
				if a, b := first.Verdicts[i].Verdict, second.Verdicts[i].Verdict; a != mapreduce.Accepted || b != mapreduce.Accepted {
					t.Errorf("report %d: %v, and %v to who came later; want %v", i, a, b, mapreduce.Accepted)
				}
			}
			if got := w.job(id).TotalTokens.Total(); got != int64(6*n) {
				t.Errorf("%d tokens are counted, want %d", got, 6*n)
			}
			w.healthy()
		})
	}
}
