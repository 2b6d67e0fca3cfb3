package jobs_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/store/storetest/driver"
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

// Two claims of which one commits while the other is under way, of candidates that
// are neighbours and of some that are not: no unit is claimed twice, and to have seen
// units that another takes is no conflict.
func TestClaimsThatCross(t *testing.T) {
	const slots = 3
	for name, candidates := range map[string]func(all []jobs.Candidate) []jobs.Candidate{
		"few":              func(all []jobs.Candidate) []jobs.Candidate { return all[:2*slots] }, // fewer than are read as neighbours
		"neighbours":       func(all []jobs.Candidate) []jobs.Candidate { return all[:40] },
		"from the last on": func(all []jobs.Candidate) []jobs.Candidate { slices.Reverse(all); return all[:40] },
		"apart": func(all []jobs.Candidate) []jobs.Candidate {
			return slices.DeleteFunc(all, func(c jobs.Candidate) bool { return keys.Document(c.Seq)%6 != 0 })
		},
	} {
		for _, same := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, the same: %t", name, same), func(t *testing.T) {
				s := open(t)
				w := newWorld(t, s, 1)
				id := w.submit(w.nodes[0], spec(), texts(100))
				mine := candidates(slices.DeleteFunc(w.waiting(w.nodes[0], id), func(c jobs.Candidate) bool { return c.Shard != 0 }))
				theirs := mine
				if !same {
					theirs = mine[slots:]
				}
				between := &crossed{Store: s}
				db := store.NewDB(between, store.Config{})
				late := jobs.New(db, w.space, "late", w.clock)
				claim := func(j *jobs.Jobs, of []jobs.Candidate) *jobs.Turn {
					s := w.session(j)
					return &jobs.Turn{Job: id, Claim: &jobs.Claim{
						ID: w.name("claim"), Seats: []jobs.Seat{{Session: s.id, Epoch: s.epoch, Slots: slots}}, Candidates: of,
					}}
				}
				first, second := claim(w.nodes[0], theirs), claim(late, mine)
				conflicts := db.Stats().Conflicts.Load()
				var claimed []jobs.Claimed
				between.cross = func() { claimed = w.turn(w.nodes[0], first).Claimed }
				claimed = slices.Concat(w.turn(late, second).Claimed, claimed)
				once := make(map[string]bool)
				for _, c := range claimed {
					once[c.Unit.UnitId] = true
				}
				if len(claimed) != 2*slots || len(once) != 2*slots {
					t.Errorf("%d claims of %d units, want %d of each", len(claimed), len(once), 2*slots)
				}
				if n := db.Stats().Conflicts.Load() - conflicts; !same && n > 0 && !driver.Buggified() {
					t.Errorf("%d conflicts, and no unit was taken by both", n)
				}
				w.healthy()
			})
		}
	}
}
