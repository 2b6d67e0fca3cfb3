package limit_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/limit"
)

func nobody(mapreduce.NodeID) bool { return false }

func TestDivide(t *testing.T) {
	for _, c := range []struct {
		total   int64
		weights []int64
		want    []int64
	}{
		{10, []int64{1, 1}, []int64{5, 5}},
		{50, []int64{20, 20, 20, 20}, []int64{13, 13, 12, 12}},
		{1, []int64{3, 3}, []int64{1, 0}},
		{7, []int64{0, 5, 0}, []int64{0, 7, 0}},
		{7, []int64{0, 0}, []int64{0, 0}},
		{0, []int64{4}, []int64{0}},
	} {
		if diff := cmp.Diff(c.want, limit.Divide(c.total, c.weights)); diff != "" {
			t.Errorf("%d by %v (-want +got):\n%s", c.total, c.weights, diff)
		}
	}
}

func TestDividePartsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int64Range(1, 1<<40).Draw(t, "total")
		weights := rapid.SliceOfN(rapid.Int64Range(0, 2000), 1, 40).Draw(t, "weights")
		sum, all := int64(0), int64(0)
		for i, p := range limit.Divide(total, weights) {
			if p < 0 || (weights[i] == 0 && p != 0) {
				t.Fatalf("part %d of weight %d is %d", i, weights[i], p)
			}
			sum, all = sum+p, all+weights[i]
		}
		if all > 0 && sum != total {
			t.Fatalf("parts add up to %d, want %d", sum, total)
		}
	})
}

// sums returns what all nodes together may do.
func sums(s *limit.Scope) (slots, parts int64) {
	for _, o := range s.Shares {
		slots, parts = slots+o.Slots, parts+o.Parts
	}
	return slots, parts
}

// Whatever nodes say, and however they die: they are never given more than there
// is, but for calls under way when the room shrank, and when all is calm each has
// its part after two rounds.
func TestSharesNeverExceedTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &limit.Scope{}
		nodes := []mapreduce.NodeID{"a", "b", "c", "d"}
		dead, held := make(map[mapreduce.NodeID]bool), make(map[mapreduce.NodeID]int64)
		isDead := func(n mapreduce.NodeID) bool { return dead[n] }
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			node := rapid.SampledFrom(nodes).Draw(t, "node")
			if rapid.IntRange(0, 19).Draw(t, "dies") == 0 {
				dead[node], held[node] = true, 0
				continue
			}
			delete(dead, node)
			n := limit.Note{
				Node: node, Most: 50, Want: rapid.Int64Range(0, 40).Draw(t, "want"),
				Successes: rapid.Int64Range(0, 100).Draw(t, "successes"),
				Refused:   rapid.IntRange(0, 4).Draw(t, "refused") == 0, Guess: true, Seen: s.Pauses,
			}
			had := s.Shares[node]
			held[node] = rapid.Int64Range(0, min(held[node]+20, max(had.Slots, 0))).Draw(t, "held")
			n.Held = held[node]
			before, _ := sums(s)
			s.Step(n, isDead)
			slots, parts := sums(s)
			if parts > limit.Whole {
				t.Fatalf("%d of %d parts are given away: %+v", parts, limit.Whole, s.Shares)
			}
			if s.Room > 0 && slots > int64(s.Room) && slots > before-had.Slots+max(held[node], 0) {
				t.Fatalf("%d calls at once are given away where %v are taken: %+v", slots, s.Room, s.Shares)
			}
			if s.Room < 0 || (s.Room > 0 && s.Room < 1) || s.Room > 50 {
				t.Fatalf("room is %v", s.Room)
			}
		}
		converges(t, s, nodes)
	})
}

func converges(t *rapid.T, s *limit.Scope, nodes []mapreduce.NodeID) {
	wants := make([]int64, len(nodes))
	for range 3 {
		for i, node := range nodes {
			wants[i] = int64(10 * i)
			s.Step(limit.Note{Node: node, Most: 50, Want: wants[i]}, nobody)
		}
	}
	parts := limit.Divide(limit.Whole, wants)
	for i, node := range nodes {
		if got := s.Shares[node].Parts; got != parts[i] {
			t.Fatalf("%s has %d parts in the end, want %d", node, got, parts[i])
		}
	}
	slots, _ := sums(s)
	if want := min(int64(s.Room), 60); s.Room > 0 && slots != want {
		t.Fatalf("%d calls at once are given away in the end, want %d: %+v", slots, want, s.Shares)
	}
}

// A dead node's share is there for the next that asks.
func TestTheShareOfTheDeadIsFree(t *testing.T) {
	s := &limit.Scope{Room: 10}
	for range 3 {
		for _, node := range []mapreduce.NodeID{"a", "b"} {
			s.Step(limit.Note{Node: node, Most: 50, Want: 20}, nobody)
		}
	}
	if got := s.Shares["b"]; got.Slots != 5 || got.Parts != limit.Whole/2 {
		t.Errorf("of two, one has %+v", got)
	}
	s.Step(limit.Note{Node: "b", Most: 50, Want: 20}, func(n mapreduce.NodeID) bool { return n == "a" })
	want := map[mapreduce.NodeID]limit.Share{"b": {Want: 20, Slots: 10, Parts: limit.Whole}}
	if diff := cmp.Diff(want, s.Shares); diff != "" {
		t.Errorf("after the other died (-want +got):\n%s", diff)
	}
}

// One moment in which everybody is refused halves the room once.
func TestRoomIsHalvedOnceForOneMoment(t *testing.T) {
	s := &limit.Scope{}
	for i := range 4 {
		n := limit.Note{Node: mapreduce.NodeID(fmt.Sprint(i)), Most: 40, Want: 10, Held: 10}
		s.Step(n, nobody)
	}
	for i := range 4 {
		n := limit.Note{Node: mapreduce.NodeID(fmt.Sprint(i)), Most: 40, Want: 10, Held: 10, Refused: true, Guess: true, Pause: 2 * time.Second}
		s.Step(n, nobody)
	}
	if s.Room != 20 || s.Pauses != 1 || s.Pause != 2*time.Second {
		t.Errorf("room %v after %d pauses, the last of %v; want 20 after one of 2s", s.Room, s.Pauses, s.Pause)
	}
	s.Step(limit.Note{Node: "0", Most: 40, Want: 10, Held: 10, Successes: 20}, nobody)
	if s.Room != 21 {
		t.Errorf("room %v after as many successes as there are calls, want 21", s.Room)
	}
	s.Step(limit.Note{Node: "0", Most: 40, Want: 10, Held: 10, Successes: 1000}, nobody)
	if s.Room != 0 {
		t.Errorf("room %v after many successes, want no limit", s.Room)
	}
}

func TestToldRatesAreKept(t *testing.T) {
	s := &limit.Scope{Rates: mapreduce.Rates{Requests: 5}}
	s.Step(limit.Note{Node: "a", Most: 50, Want: 1, Told: mapreduce.Rates{Requests: 50, Input: 1000}}, nobody)
	s.Step(limit.Note{Node: "a", Most: 50, Want: 1, Told: mapreduce.Rates{Output: 10}, Refused: true, Pause: time.Second}, nobody)
	if want := (mapreduce.Rates{Requests: 50, Input: 1000, Output: 10}); s.Rates != want || s.Room != 0 {
		t.Errorf("rates %+v, room %v; want %+v, and no guess of a room", s.Rates, s.Room, want)
	}
}

// However nodes open, probe, close and die: a breaker that is open has at most
// one prober, which lives, and only that one closes it.
func TestOneNodeProbes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &limit.Scope{}
		nodes := []mapreduce.NodeID{"a", "b", "c"}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			n := limit.Note{Node: rapid.SampledFrom(nodes).Draw(t, "node"), Most: 50, Want: rapid.Int64Range(0, 3).Draw(t, "want")}
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				n.Opened = time.Minute
			case 1:
				n.Probe, n.Turns = true, s.Breaker.Turns-rapid.SampledFrom([]int64{0, 0, 1}).Draw(t, "unseen")
			case 2:
				n.Closed = true
			}
			gone := rapid.SampledFrom(append(nodes, "")).Draw(t, "dead")
			before := s.Breaker
			s.Step(n, func(id mapreduce.NodeID) bool { return id == gone })
			after := s.Breaker
			lost := before.Prober == gone && gone != n.Node
			switch {
			case before.Open && !after.Open && (before.Prober != n.Node || !n.Closed):
				t.Fatalf("%s closed it, and the prober is %q", n.Node, before.Prober)
			case after.Prober != "" && after.Prober != before.Prober && (after.Prober != n.Node || (before.Prober != "" && !lost)):
				t.Fatalf("%q probes beside %q", after.Prober, before.Prober)
			case after.Prober != "" && after.Prober != before.Prober && n.Turns != before.Turns:
				t.Fatalf("%q probes that has not seen it open: %+v, after %d turns", after.Prober, before, n.Turns)
			case after.Prober != "" && !after.Open:
				t.Fatalf("%q probes what is closed", after.Prober)
			case after.Turns < before.Turns || (after.Open != before.Open && after.Turns == before.Turns):
				t.Fatalf("it turned without being counted: %+v, %+v", before, after)
			}
		}
		s.Step(limit.Note{Node: "a", Opened: time.Second, Want: 1}, nobody)
		s.Step(limit.Note{Node: "a", Probe: true, Turns: s.Breaker.Turns, Want: 1}, func(id mapreduce.NodeID) bool { return id != "a" })
		s.Step(limit.Note{Node: "a", Closed: true, Want: 1}, nobody)
		if s.Breaker.Open {
			t.Fatalf("it cannot be closed: %+v", s.Breaker)
		}
	})
}

func TestANodeThatWantsNothingHasNothing(t *testing.T) {
	s := &limit.Scope{Room: 4}
	s.Step(limit.Note{Node: "a", Most: 50, Want: 4}, nobody)
	s.Step(limit.Note{Node: "a", Most: 50, Held: 2}, nobody)
	if got := s.Shares["a"].Slots; got != 2 {
		t.Errorf("with two calls under way it keeps %d slots, want 2", got)
	}
	s.Step(limit.Note{Node: "a", Most: 50}, nobody)
	if left := slices.Collect(maps.Keys(s.Shares)); len(left) > 0 {
		t.Errorf("shares of %v are left", left)
	}
}
