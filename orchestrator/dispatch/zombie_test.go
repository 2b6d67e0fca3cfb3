package dispatch_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
)

// A worker is silent for longer than the lease, and its unit is given to
// another. When it comes back it is told to drop the unit, and a finish that it
// sends all the same is refused and changes nothing.
func TestZombieIsRefused(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		f := enginetest.NewFleet(t, 0, 1, nil, enginetest.Steady())
		n := f.Any()
		zombie, _ := enginetest.Hello(t, n, protocol.Hello{Session: "zombie", Slots: 1})
		id := n.Submit(enginetest.Script(nil), 1)
		held := zombie.Assigned()
		f.Join(worker.Config{Slots: 1})
		n.WantEnd(id, mapreduce.JobComplete)
		before := n.Units(id)
		if u := before[held.Unit]; u.Attempts != 2 || u.State != mapreduce.UnitComplete {
			t.Fatalf("the unit was not given to another: %+v", u)
		}
		for begun, ended := time.Now(), false; !ended; {
			_, err := zombie.Stream.Recv() // there may be signs of life before the end
			if ended = err != nil; !ended && time.Since(begun) > time.Minute {
				t.Fatal("the stream of a silent worker goes on")
			}
		}

		again, welcome := enginetest.Hello(t, n, protocol.Hello{Session: "zombie", Slots: 1, Holding: []protocol.Held{held}})
		if diff := cmp.Diff([]protocol.Held{held}, welcome.Drop); diff != "" {
			t.Errorf("told to drop (-want +got):\n%s", diff)
		}
		if v := again.Report(held, `{"late":true}`); v != protocol.Stale {
			t.Errorf("verdict on the late finish is %v, want stale", v)
		}
		if diff := cmp.Diff(before, n.Units(id)); diff != "" {
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
	enginetest.Virtually(t, func(t *testing.T) {
		f := enginetest.NewFleet(t, 0, 1, nil, enginetest.Steady())
		n := f.Any()
		late, _ := enginetest.Hello(t, n, protocol.Hello{Session: "late", Slots: 1})
		id := n.Submit(enginetest.Script(nil), 1)
		held := late.Assigned()
		<-time.After(time.Minute)
		if u := n.Units(id)[held.Unit]; u.State != mapreduce.Pending {
			t.Fatalf("the unit is not back in its queue: %+v", u)
		}
		again, welcome := enginetest.Hello(t, n, protocol.Hello{Session: "late", Slots: 1, Holding: []protocol.Held{held}})
		if len(welcome.Drop) > 0 {
			t.Errorf("told to drop %+v", welcome.Drop)
		}
		if v := again.Report(held, ""); v != protocol.Accepted {
			t.Errorf("verdict is %v, want accepted", v)
		}
		if u := n.Units(id)[held.Unit]; u.State != mapreduce.UnitComplete || u.Attempts != 1 {
			t.Errorf("unit: %+v", u)
		}
	})
}
