package orchestrator_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker"
)

// A raw is a worker that does whatever the test says.
type raw struct {
	t      *testing.T
	stream client.WorkerStream
}

// hello opens a stream of a session and returns it with its welcome.
func hello(t *testing.T, n *node, h mapreduce.Hello) (*raw, *mapreduce.Welcome) {
	t.Helper()
	stream, err := n.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := &raw{t, stream}
	h.Offer.Providers = []string{"scripted"}
	r.send(&mapreduce.FromWorker{Hello: &h})
	return r, r.recv().Welcome
}

func (r *raw) send(m *mapreduce.FromWorker) {
	r.t.Helper()
	if err := r.stream.Send(m); err != nil {
		r.t.Fatal(err)
	}
}

func (r *raw) recv() *mapreduce.ToWorker {
	r.t.Helper()
	m, err := r.stream.Recv()
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

// assigned waits for a unit.
func (r *raw) assigned() mapreduce.Held {
	r.t.Helper()
	for {
		if m := r.recv(); len(m.Assignments) > 0 {
			a := m.Assignments[0]
			return mapreduce.Held{Job: a.Job, Unit: a.Unit, Attempt: a.Attempt}
		}
	}
}

// report sends a finish, and returns the verdict on it.
func (r *raw) report(h mapreduce.Held, output string) mapreduce.Verdict {
	r.t.Helper()
	r.send(&mapreduce.FromWorker{Reports: []mapreduce.Report{{
		Job: h.Job, Unit: h.Unit, Attempt: h.Attempt, Outcome: mapreduce.Done, Output: []byte(output), Size: 1,
		Tokens: mapreduce.Tokens{In: 7, Out: 7},
	}}})
	for {
		for _, v := range r.recv().Verdicts {
			if v.Held == h {
				return v.Verdict
			}
		}
	}
}

// A worker is silent for longer than the lease, and its unit is given to
// another. When it comes back it is told to drop the unit, and a finish that it
// sends all the same is refused and changes nothing.
func TestZombieIsRefused(t *testing.T) {
	virtually(t, func(t *testing.T) {
		f := newFleet(t, 0, 1, nil, steady())
		n := f.any()
		zombie, _ := hello(t, n, mapreduce.Hello{Session: "zombie", Slots: 1})
		id := n.submit(script(nil), 1)
		held := zombie.assigned()
		f.join(worker.Config{Slots: 1})
		n.wantEnd(id, mapreduce.JobComplete)
		before := n.units(id)
		if u := before[held.Unit]; u.Attempts != 2 || u.State != mapreduce.UnitComplete {
			t.Fatalf("the unit was not given to another: %+v", u)
		}
		for begun, ended := time.Now(), false; !ended; {
			_, err := zombie.stream.Recv() // there may be signs of life before the end
			if ended = err != nil; !ended && time.Since(begun) > time.Minute {
				t.Fatal("the stream of a silent worker goes on")
			}
		}

		again, welcome := hello(t, n, mapreduce.Hello{Session: "zombie", Slots: 1, Holding: []mapreduce.Held{held}})
		if diff := cmp.Diff([]mapreduce.Held{held}, welcome.Drop); diff != "" {
			t.Errorf("told to drop (-want +got):\n%s", diff)
		}
		if v := again.report(held, `{"late":true}`); v != mapreduce.Stale {
			t.Errorf("verdict on the late finish is %v, want stale", v)
		}
		if diff := cmp.Diff(before, n.units(id)); diff != "" {
			t.Errorf("the late finish changed (-before +after):\n%s", diff)
		}
		if job, err := n.GetJob(t.Context(), id); err != nil || job.TotalTokens.Total() != 0 {
			t.Errorf("job: %+v, %v", job, err)
		}
	})
}

// A worker is taken for lost, but nobody has claimed its unit yet: its finish is
// accepted, so that what it did is not done again.
func TestLateFinishOfStandingAttempt(t *testing.T) {
	virtually(t, func(t *testing.T) {
		f := newFleet(t, 0, 1, nil, steady())
		n := f.any()
		late, _ := hello(t, n, mapreduce.Hello{Session: "late", Slots: 1})
		id := n.submit(script(nil), 1)
		held := late.assigned()
		<-time.After(time.Minute)
		if u := n.units(id)[held.Unit]; u.State != mapreduce.Pending {
			t.Fatalf("the unit is not back in its queue: %+v", u)
		}
		again, welcome := hello(t, n, mapreduce.Hello{Session: "late", Slots: 1, Holding: []mapreduce.Held{held}})
		if len(welcome.Drop) > 0 {
			t.Errorf("told to drop %+v", welcome.Drop)
		}
		if v := again.report(held, ""); v != mapreduce.Accepted {
			t.Errorf("verdict is %v, want accepted", v)
		}
		if u := n.units(id)[held.Unit]; u.State != mapreduce.UnitComplete || u.Attempts != 1 {
			t.Errorf("unit: %+v", u)
		}
	})
}
