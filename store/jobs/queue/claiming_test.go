package queue_test

import (
	"fmt"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Of two turns that claim the same units one commits, and the other claims what is left,
// whether the candidates are read with the turn's own keys, as few are, or after them. Whoever
// waits to hear of the claim hears of each run, and last of what was claimed.
func TestClaimsOfTheSameUnits(t *testing.T) {
	for name, tt := range map[string]struct{ candidates, taken int }{
		"one":                        {1, 1},
		"few, all taken":             {3, 3},
		"few, some taken":            {5, 2},
		"many, all taken":            {20, 20},
		"many, some taken":           {20, 7},
		"many, and none left of few": {9, 9},
	} {
		t.Run(name, func(t *testing.T) {
			w := jobstest.NewWorld(t, jobstest.Open(t), 2)
			slow, other := w.Nodes[0], w.Nodes[1]
			id := w.Submit(slow, jobstest.Spec(), jobstest.Texts(tt.candidates))
			mine, theirs := w.Session(slow), w.Session(other)
			claim := w.ClaimOf(slow, id, mine, tt.candidates)

			// The other turn commits while the first is about to.
			var heard [][]queue.Claimed
			taken := make(map[mapreduce.UnitID]bool)
			res := w.Turn(slow, &queue.Turn{Job: id, Claim: claim, Claiming: func(units []queue.Claimed) {
				if heard = append(heard, units); len(heard) == 1 {
					for _, u := range w.Claim(other, id, theirs, tt.taken) {
						taken[u.ID] = true
					}
				}
			}})

			left := tt.candidates - tt.taken
			if len(res.Claimed) != left || len(taken) != tt.taken {
				t.Errorf("%d and %d units were claimed of %d, want %d and %d", len(res.Claimed), len(taken), tt.candidates, left, tt.taken)
			}
			for _, c := range res.Claimed {
				if taken[c.Unit.ID] {
					t.Errorf("unit %s was claimed twice", c.Unit.ID)
				}
			}

			runs := 1
			if left > 0 {
				runs = 2
			}
			if len(heard) != runs || len(heard[0]) != tt.candidates || left > 0 && !sameUnits(heard[1], res.Claimed) {
				t.Errorf("%d claims were heard of, and the last is not that of the turn", len(heard))
			}
			w.Healthy()
		})
	}
}

// A claim conflicts with nothing that becomes of a unit which it saw waiting, and which another
// had claimed before it began.
func TestWhatIsNotClaimedIsNoConflict(t *testing.T) {
	for name, tt := range map[string]struct{ candidates, taken int }{
		"few":  {5, 2},
		"many": {20, 7},
	} {
		t.Run(name, func(t *testing.T) {
			w := jobstest.NewWorld(t, jobstest.Open(t), 2)
			slow, other := w.Nodes[0], w.Nodes[1]
			id := w.Submit(slow, jobstest.Spec(), jobstest.Texts(tt.candidates))
			claim := w.ClaimOf(slow, id, w.Session(slow), tt.candidates)
			taken := w.Claim(other, id, w.Session(other), tt.taken)

			// Its units end while the claim is about to commit.
			runs := 0
			res := w.Turn(slow, &queue.Turn{Job: id, Claim: claim, Claiming: func([]queue.Claimed) {
				if runs++; runs == 1 {
					for _, u := range taken {
						w.Report(other, jobstest.Done(id, u))
					}
				}
			}})

			if left := tt.candidates - tt.taken; len(res.Claimed) != left || runs != 1 {
				t.Errorf("%d units were claimed in %d runs of the transaction, want %d in one", len(res.Claimed), runs, left)
			}
			w.Healthy()
		})
	}
}

// A claim rests on its job, its session and what its node was granted, which it reads with few
// candidates or before many. It takes nothing if one of them changes while it is about to commit.
func TestAClaimRestsOnWhatItReads(t *testing.T) {
	type node struct {
		*jobs.Jobs
		w *jobstest.World
	}
	for name, change := range map[string]func(own, other node, id mapreduce.JobID, s jobstest.Binding){
		"the job is paused": func(own, _ node, id mapreduce.JobID, _ jobstest.Binding) {
			own.w.Must(own.Lifecycle.Pause(own.w.Ctx, id, records.AnyEpoch, "for a while"))
		},
		"the worker is lost": func(own, _ node, _ mapreduce.JobID, s jobstest.Binding) {
			own.w.Expire(own.Jobs, s)
		},
		"the worker is elsewhere": func(_, other node, _ mapreduce.JobID, s jobstest.Binding) {
			other.w.Bind(other.Jobs, s.ID)
		},
		"the slots went back": func(own, _ node, id mapreduce.JobID, _ jobstest.Binding) {
			_, err := own.Grants.Return(own.w.Ctx, id, nodes.GiveBack{Slots: 1, ID: "back"})
			own.w.Must(err)
		},
	} {
		for _, units := range []int{3, 20} {
			t.Run(fmt.Sprintf("%s, %d units", name, units), func(t *testing.T) {
				w := jobstest.NewWorld(t, jobstest.Open(t), 2)
				own, other := node{w.Nodes[0], w}, node{w.Nodes[1], w}
				id := w.Submit(own.Jobs, jobstest.Spec(), jobstest.Texts(units))
				s := w.Session(own.Jobs)
				claim := w.ClaimOf(own.Jobs, id, s, units)

				granted, err := own.Grants.Grant(w.Ctx, id, nodes.GrantRequest{Slots: int64(units), Parallelism: 64})
				w.Must(err)
				claim.Slots = queue.Share{Slots: granted.Slots, Taken: granted.Taken}

				runs := 0
				res := w.Turn(own.Jobs, &queue.Turn{Job: id, Claim: claim, Claiming: func([]queue.Claimed) {
					if runs++; runs == 1 {
						change(own, other, id, s)
					}
				}})
				if runs != 1 || len(res.Claimed) > 0 {
					t.Errorf("%d units are claimed, and were about to be %d times; want none, and once", len(res.Claimed), runs)
				}
				w.Healthy()
			})
		}
	}
}

// A claim that has committed while its turn was about to is read back: no unit has two attempts.
func TestAClaimThatCommitsTwice(t *testing.T) {
	for _, units := range []int{3, 20} {
		t.Run(fmt.Sprint(units), func(t *testing.T) {
			w := jobstest.NewWorld(t, jobstest.Open(t), 1)
			j := w.Nodes[0]
			id := w.Submit(j, jobstest.Spec(), jobstest.Texts(units))
			claim := w.ClaimOf(j, id, w.Session(j), units)

			runs := 0
			res := w.Turn(j, &queue.Turn{Job: id, Claim: claim, Claiming: func([]queue.Claimed) {
				if runs++; runs == 1 {
					w.Turn(j, &queue.Turn{Job: id, Claim: claim})
				}
			}})
			if runs < 2 || len(res.Claimed) != units {
				t.Errorf("%d units are claimed in %d runs, want %d in two", len(res.Claimed), runs, units)
			}
			for _, c := range res.Claimed {
				if c.Unit.Attempt != 1 {
					t.Errorf("unit %s has attempt %d, want 1", c.Unit.ID, c.Unit.Attempt)
				}
			}
			w.Healthy()
		})
	}
}

func sameUnits(a, b []queue.Claimed) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Unit.ID != b[i].Unit.ID {
			return false
		}
	}
	return true
}

// A unit that was given back, as its worker was taken for lost, may be reported in the very turn
// that would claim it anew: then it has ended, and is not claimed.
func TestAUnitThatIsReportedIsNotClaimed(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(1))
	lost, s := w.Session(j), w.Session(j)
	u := w.Claim(j, id, lost, 1)[0]
	jobstest.WentBack(t, w.Expire(j, lost), 1)

	res := w.Turn(j, &queue.Turn{
		Job: id, Claim: w.ClaimOf(j, id, s, 1),
		Reports: []queue.Report{{Report: jobstest.Done(id, u), Session: lost.ID}},
	})
	if v := res.Verdicts[0]; v.Verdict != protocol.Accepted || v.State != mapreduce.UnitComplete || len(res.Claimed) != 0 {
		t.Errorf("verdict %v, state %v, and %d units claimed; want the unit complete, and none claimed", v.Verdict, v.State, len(res.Claimed))
	}
	w.Healthy()
}
