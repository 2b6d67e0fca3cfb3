package workers

import (
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store/jobs/nodes"
)

// A quietPeer is a worker that reads all that it is told.
type quietPeer struct{}

func (quietPeer) Send(*protocol.ToWorker) {}
func (quietPeer) Lags() bool              { return false }
func (quietPeer) Stop(error)              {}

func streamOf(id mapreduce.SessionID, epoch int64, slots int, providers ...string) *Session {
	return NewSession(&protocol.Hello{Session: id, Slots: slots, Offer: mapreduce.Offer{Providers: providers}}, "", epoch, false, quietPeer{})
}

// Of the streams of one session the latest counts, here or away, and what an earlier one
// held goes back when the next has ended.
func TestStreamsOfOneSession(t *testing.T) {
	w := NewTable()
	first, second := streamOf("w", 1, 4, "p"), streamOf("w", 2, 4, "p")
	w.bound["w"] = first
	if earlier := w.Suspend(first); earlier != nil || !first.gone || w.bound["w"] != nil {
		t.Fatalf("an earlier stream %v; the first is gone: %t", earlier, first.gone)
	}
	if w.HasLater(second) || !w.HasLater(streamOf("w", 0, 4)) {
		t.Error("a stream that is away does not tell earlier from later")
	}

	w.bound["w"] = second
	if !w.HasLater(first) || w.HasLater(second) {
		t.Error("a stream that is here does not tell earlier from later")
	}
	if earlier := w.Suspend(second); earlier != first {
		t.Errorf("the stream before is %v, want the first", earlier)
	}

	w.LetGo(first) // its units are elsewhere, and the second's may come back
	for epoch, want := range map[int64]*Session{1: nil, 2: second, 3: second} {
		if got := w.AwaySince(nodes.SessionRef{Session: "w", Epoch: epoch}); got != want {
			t.Errorf("away as of epoch %d: %v, want %v", epoch, got, want)
		}
	}
}

// Slots are counted where units can run; those of workers that may come back as far as they
// hold something.
func TestSlotsThatAJobCanReach(t *testing.T) {
	now := time.Unix(1000, 0)
	w := NewTable()
	able, other, away := streamOf("able", 1, 4, "p"), streamOf("other", 1, 8, "q"), streamOf("away", 1, 2, "p")
	w.bound["able"], w.bound["other"], w.away["away"] = able, other, away
	j := Wants{Job: "j", Needs: mapreduce.Requirements{Provider: "p"}}
	for _, unit := range []mapreduce.UnitID{"a", "b", "c"} {
		away.held[unitKey{"j", unit}] = &Attempt{}
	}
	able.busy = 1

	if free, slots, all := w.Reachable(&j, now); free != 3 || slots != 6 || all != 14 {
		t.Errorf("%d free of %d, of %d in all; want 3 of 6, of 14", free, slots, all)
	}
	if all, needed := w.CallSlots(map[string]int{"q": 2}); all != 12 || needed != 8 || w.ProviderSlots("p") != 4 {
		t.Errorf("%d slots for calls, %d needed, %d of the provider; want 12, 8 and 4", all, needed, w.ProviderSlots("p"))
	}
	if w.Capacity(&j, now) != 4 || !w.HasUsable(&j, now) || w.Lacking(j.Needs) != "" {
		t.Errorf("capacity %d, lacks %q", w.Capacity(&j, now), w.Lacking(j.Needs))
	}
	if missing := w.Lacking(mapreduce.Requirements{Provider: "r"}); missing != `provider "r"` {
		t.Errorf("lacks %q, want the provider", missing)
	}

	// While the breaker of the job's model is open, its units go nowhere.
	j.Models = []string{"p/m"}
	if w.OpenBreaker("p/m", now.Add(time.Minute)); w.HasUsable(&j, now) || !w.HasUsable(&j, now.Add(2*time.Minute)) {
		t.Error("an open breaker does not keep units away for its time")
	}
	if w.CloseBreaker("p/m"); !w.HasUsable(&j, now) {
		t.Error("a closed breaker keeps units away")
	}
}

// Whoever is first, all sessions are there, once.
func TestRotatedSessionsAreAllThere(t *testing.T) {
	w := NewTable()
	for _, id := range []mapreduce.SessionID{"a", "b", "c"} {
		w.bound[id] = streamOf(id, 1, 1)
	}
	for range 5 {
		seen := make(map[mapreduce.SessionID]bool)
		for _, session := range w.Rotate() {
			seen[session.ID] = true
		}
		if len(seen) != 3 {
			t.Fatalf("sessions %v, want each once", seen)
		}
	}
}

// What a worker names whose session is being bound takes up slots until the session is let go, as far as it
// can run at once.
func TestExpectedSessionsHoldWhatTheirWorkersName(t *testing.T) {
	w := NewTable()
	session := streamOf("w", 3, 2, "p")
	w.Expect(session, []protocol.Held{{Job: "j", Unit: "a"}, {Job: "j", Unit: "b"}, {Job: "j", Unit: "c"}, {Job: "j", Unit: "c"}})

	j := Wants{Job: "j", Needs: mapreduce.Requirements{Provider: "p"}}
	if free, slots, all := w.Reachable(&j, time.Unix(1000, 0)); free != 0 || slots != 2 || all != 2 {
		t.Errorf("%d free, %d slots of the job, %d of all; want 0, 2 and 2", free, slots, all)
	}
	for epoch, want := range map[int64]int{2: 0, 3: 1, 4: 1} {
		if got := w.ExpectedAs("w", epoch); len(got) != want {
			t.Errorf("%d are expected as of epoch %d, want %d", len(got), epoch, want)
		}
	}
	if held := w.LetGo(session); len(held) != 3 {
		t.Errorf("it held %d units, want 3", len(held))
	}
	if _, slots, all := w.Reachable(&j, time.Unix(1000, 0)); slots != 0 || all != 0 || len(w.ExpectedAs("w", 4)) != 0 {
		t.Errorf("once it is let go, %d slots of the job are taken, and %d of all", slots, all)
	}
}
