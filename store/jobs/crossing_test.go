package jobs_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
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

// A seal notes the end of the chain in the record of a job that has come to rest. What
// brings the record up to date meanwhile must not write the one of before.
func TestSealsThatCrossAChangeOfTheRecord(t *testing.T) {
	type act func(context.Context, *jobs.Jobs, mapreduce.JobID) error
	for what, tt := range map[string]struct{ rest, change act }{
		"sweep": {
			func(ctx context.Context, j *jobs.Jobs, id mapreduce.JobID) error { return j.Lifecycle.Cancel(ctx, id) },
			sweepJob,
		},
		"resume": {
			func(ctx context.Context, j *jobs.Jobs, id mapreduce.JobID) error {
				return j.Lifecycle.Pause(ctx, id, records.AnyEpoch, "for a while")
			},
			func(ctx context.Context, j *jobs.Jobs, id mapreduce.JobID) error {
				return j.Lifecycle.Resume(ctx, id, mapreduce.Resume{})
			},
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := jobstest.Open(t)
			w := jobstest.NewWorld(t, s, 1)
			j := w.Nodes[0]
			id := w.Submit(j, jobstest.Spec(), jobstest.Texts(3))
			w.Must(tt.rest(w.Ctx, j, id))
			between := &crossed{Store: s, cross: func() {
				n, err := j.Audit.Seal(w.Ctx, id)
				if w.Must(err); n == 0 {
					t.Error("there was nothing to seal")
				}
			}}
			late := jobs.New(store.NewDB(between, store.Config{}), w.Space, "late", w.Clock)
			w.Must(tt.change(w.Ctx, late, id))
			record := new(storagev1.Job)
			w.Must(proto.Unmarshal(w.Get(w.Space.Job(id).Record()), record))
			if record.AuditNumber != 1 || len(record.AuditHead) == 0 {
				t.Errorf("the record names seal %d with the hash %x, want seal 1", record.AuditNumber, record.AuditHead)
			}
			w.Healthy()
		})
	}
}

// Two turns with the same reports, few and so many that they are read as
// neighbours, of which one commits while the other is under way: both reporters are
// told that it is done, each unit ends once, and what it spent counts once.
func TestReportsThatCross(t *testing.T) {
	for _, n := range []int{1, store.MinNear - 1, store.MinNear, 40} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := jobstest.Open(t)
			w := jobstest.NewWorld(t, s, 2)
			id := w.Submit(w.Nodes[0], jobstest.Spec(), jobstest.Texts(50))
			turn := &queue.Turn{Job: id}
			for _, u := range w.Claim(w.Nodes[0], id, w.Session(w.Nodes[0]), n) {
				turn.Reports = append(turn.Reports, queue.Report{Report: jobstest.Done(id, u)})
			}
			var first *queue.Result
			between := &crossed{Store: s, cross: func() { first = w.Turn(w.Nodes[1], turn) }}
			late := jobs.New(store.NewDB(between, store.Config{}), w.Space, "late", w.Clock)
			second := w.Turn(late, turn)
			for i := range n {
				if a, b := first.Verdicts[i].Verdict, second.Verdicts[i].Verdict; a != protocol.Accepted || b != protocol.Accepted {
					t.Errorf("report %d: %v, and %v to who came later; want %v", i, a, b, protocol.Accepted)
				}
			}
			if got := w.Job(id).TotalTokens.Total(); got != int64(6*n) {
				t.Errorf("%d tokens are counted, want %d", got, 6*n)
			}
			w.Healthy()
		})
	}
}

// Two claims of which one commits while the other is under way, of candidates that
// are neighbours and of some that are not: no unit is claimed twice, and to have seen
// units that another takes is no conflict.
func TestClaimsThatCross(t *testing.T) {
	const slots = 3
	for name, candidates := range map[string]func(all []records.Candidate) []records.Candidate{
		"few":              func(all []records.Candidate) []records.Candidate { return all[:2*slots] }, // fewer than are read as neighbours
		"neighbours":       func(all []records.Candidate) []records.Candidate { return all[:40] },
		"from the last on": func(all []records.Candidate) []records.Candidate { slices.Reverse(all); return all[:40] },
		"apart": func(all []records.Candidate) []records.Candidate {
			return slices.DeleteFunc(all, func(c records.Candidate) bool { return keys.Document(c.Seq)%6 != 0 })
		},
	} {
		for _, same := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, the same: %t", name, same), func(t *testing.T) {
				s := jobstest.Open(t)
				w := jobstest.NewWorld(t, s, 1)
				id := w.Submit(w.Nodes[0], jobstest.Spec(), jobstest.Texts(100))
				mine := candidates(slices.DeleteFunc(w.Waiting(w.Nodes[0], id), func(c records.Candidate) bool { return c.Shard != 0 }))
				theirs := mine
				if !same {
					theirs = mine[slots:]
				}
				between := &crossed{Store: s}
				db := store.NewDB(between, store.Config{})
				late := jobs.New(db, w.Space, "late", w.Clock)
				claim := func(j *jobs.Jobs, of []records.Candidate) *queue.Turn {
					s := w.Session(j)
					return &queue.Turn{Job: id, Claim: &queue.Claim{
						ID: w.Name("claim"), Workers: []queue.WorkerSlots{{Session: s.ID, Epoch: s.Epoch, Slots: slots}}, Candidates: of,
					}}
				}
				first, second := claim(w.Nodes[0], theirs), claim(late, mine)
				conflicts := db.Stats().Conflicts.Load()
				var claimed []queue.Claimed
				between.cross = func() { claimed = w.Turn(w.Nodes[0], first).Claimed }
				claimed = slices.Concat(w.Turn(late, second).Claimed, claimed)
				once := make(map[string]bool)
				for _, c := range claimed {
					once[string(c.Unit.ID)] = true
				}
				if len(claimed) != 2*slots || len(once) != 2*slots {
					t.Errorf("%d claims of %d units, want %d of each", len(claimed), len(once), 2*slots)
				}
				if n := db.Stats().Conflicts.Load() - conflicts; !same && n > 0 && !driver.Buggified() {
					t.Errorf("%d conflicts, and no unit was taken by both", n)
				}
				w.Healthy()
			})
		}
	}
}

// Of two that at once take what one node has left of a job's budget, only one gets it:
// units that run and reserve more, and claims.
func TestDrawsThatCross(t *testing.T) {
	type drawing struct {
		*jobstest.World
		id      mapreduce.JobID
		binding jobstest.Binding
		running []*records.Unit
		free    int64
	}
	raise := func(i int) func(*drawing, *jobs.Jobs) {
		return func(d *drawing, j *jobs.Jobs) {
			u := d.running[i]
			held := protocol.Held{Job: d.id, Unit: u.ID, Attempt: int(u.Attempt)}
			_, err := j.Grants.Reserve(d.Ctx, []nodes.Reservation{{Held: held, Tokens: u.Reserved + d.free}})
			d.Must(err)
		}
	}
	claim := func(d *drawing, j *jobs.Jobs) {
		c := d.ClaimOf(j, d.id, d.binding, 1)
		c.Bounded, c.Tokens = true, d.free
		d.Turn(j, &queue.Turn{Job: d.id, Claim: c})
	}
	for name, draw := range map[string][2]func(*drawing, *jobs.Jobs){
		"two reservations":           {raise(0), raise(1)},
		"a claim in a reservation":   {raise(0), claim},
		"a reservation in a claim":   {claim, raise(0)},
		"a reservation, for a while": {raise(0), func(*drawing, *jobs.Jobs) {}},
	} {
		t.Run(name, func(t *testing.T) {
			s := jobstest.Open(t)
			w := jobstest.NewWorld(t, s, 1)
			j := w.Nodes[0]
			sp := jobstest.Spec()
			sp.Budget = 1000
			d := &drawing{World: w, id: w.Submit(j, sp, jobstest.Texts(9)), binding: w.Session(j)}
			g, err := j.Grants.Grant(w.Ctx, d.id, nodes.GrantRequest{Tokens: 1, Slots: 9, Parallelism: 9, Alone: true})
			w.Must(err)
			c := w.ClaimOf(j, d.id, d.binding, 2)
			c.Bounded, c.Tokens = true, g.Tokens
			for _, got := range w.Turn(j, &queue.Turn{Job: d.id, Claim: c}).Claimed {
				d.running = append(d.running, got.Unit)
			}
			g, err = j.Grants.Grant(w.Ctx, d.id, nodes.GrantRequest{})
			w.Must(err)
			before := g.Used
			if d.free = g.Tokens - before; d.free <= 0 || len(d.running) != 2 {
				t.Fatalf("%d tokens are left beside %d units that run", d.free, len(d.running))
			}
			between := &crossed{Store: s, cross: func() { draw[1](d, j) }}
			draw[0](d, jobs.New(store.NewDB(between, store.Config{}), w.Space, j.Node(), w.Clock))
			g, err = j.Grants.Grant(w.Ctx, d.id, nodes.GrantRequest{})
			w.Must(err)
			if g.Used > g.Tokens || g.Used == before {
				t.Errorf("of %d tokens %d are used, before %d", g.Tokens, g.Used, before)
			}
		})
	}
}
