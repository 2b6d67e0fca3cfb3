package nodes_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/limit"
	"github.com/coditect/mapreduce/store/jobs/nodes"
)

const model = "anthropic/m-1"

// What one node learns of a model holds for the others, and what a dead one had
// comes back to them.
func TestLimitsAreOfTheWholeFleet(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	a, b := w.Nodes[0], w.Nodes[1]
	for _, n := range w.Nodes {
		_, err := n.Nodes.Beat(w.Ctx, 1, nodes.News{})
		w.Must(err)
	}
	note := func(n limit.Note) limit.Note {
		n.Most, n.Want = 50, 20
		return n
	}
	_, err := a.Grants.NoteLimit(w.Ctx, model, note(limit.Note{Told: mapreduce.Rates{Requests: 100}}), nil)
	w.Must(err)
	woken, err := b.Watch(w.Ctx)
	w.Must(err)
	s, err := a.Grants.NoteLimit(w.Ctx, model, note(limit.Note{Refused: true, Guess: true, Held: 20, Pause: 7 * time.Second}), nil)
	w.Must(err)
	if s.Room != 10 || s.Shares[a.Node()].Slots != 20 {
		t.Errorf("refused while 20 were under way, a node has %+v of a room of %v; want 10, and to keep what is under way", s.Shares[a.Node()], s.Room)
	}
	select {
	case <-woken:
	case <-w.Ctx.Done():
		t.Fatal("nobody was told of the pause")
	}
	for range 2 {
		_, err = b.Grants.NoteLimit(w.Ctx, model, note(limit.Note{Seen: 1}), nil)
		w.Must(err)
		_, err = a.Grants.NoteLimit(w.Ctx, model, note(limit.Note{Seen: 1}), nil)
		w.Must(err)
	}
	got, err := b.Grants.NoteLimit(w.Ctx, model, note(limit.Note{Seen: 1}), nil)
	w.Must(err)
	half := limit.Share{Want: 20, Slots: 5, Parts: limit.Whole / 2}
	want := &limit.Scope{
		Rates: mapreduce.Rates{Requests: 100}, Room: 10, Pauses: 1, Pause: 7 * time.Second,
		PauseLeft: 7 * time.Second,
		Shares:    map[mapreduce.NodeID]limit.Share{a.Node(): half, b.Node(): half},
	}
	got.PauseLeft = got.PauseLeft.Round(time.Second)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("as the other node sees it (-want +got):\n%s", diff)
	}
	got, err = b.Grants.NoteLimit(w.Ctx, model, note(limit.Note{Seen: 1}), []mapreduce.NodeID{a.Node()})
	w.Must(err)
	if own := got.Shares[b.Node()]; len(got.Shares) != 1 || own.Slots != 10 || own.Parts != limit.Whole {
		t.Errorf("after the other died: %+v, want all of it", got.Shares)
	}
}

// What is left of a pause that a vendor asked for, and of a breaker's time, is told by the
// clocks, until the breaker opens again.
func TestWhatIsLeftOfThePausesOfAModel(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	a, b := w.Nodes[0], w.Nodes[1]
	began := w.Micro
	note := func(node *jobs.Jobs, n limit.Note, pause, open time.Duration) {
		t.Helper()
		n.Most, n.Want = 10, 1
		s, err := node.Grants.NoteLimit(w.Ctx, model, n, nil)
		w.Must(err)
		if s.PauseLeft.Round(time.Second) != pause || s.OpenLeft.Round(time.Second) != open {
			t.Errorf("%v after the pause began, %v are left of it, and %v of the breaker's time; want %v and %v",
				time.Duration(w.Micro-began)*time.Microsecond, s.PauseLeft, s.OpenLeft, pause, open)
		}
	}
	at := func(d time.Duration) { w.Micro = began + d.Microseconds() }
	note(a, limit.Note{Refused: true, Pause: time.Hour, Opened: time.Minute}, time.Hour, time.Minute)
	at(20 * time.Second)
	note(b, limit.Note{}, time.Hour-20*time.Second, 40*time.Second)
	at(-time.Hour) // a clock that is late
	note(b, limit.Note{}, time.Hour, time.Minute)
	at(2 * time.Minute)
	note(b, limit.Note{Probe: true, Turns: 1}, time.Hour-2*time.Minute, 0)
	note(b, limit.Note{Opened: time.Minute}, time.Hour-2*time.Minute, time.Minute)
	at(150 * time.Second)
	note(a, limit.Note{Seen: 1, Refused: true, Pause: time.Minute}, time.Minute, 30*time.Second)
	at(24 * time.Hour)
	note(a, limit.Note{}, 0, 0)
}

// Of two nodes that would probe, one may; and when it has died, the other.
func TestOneNodeOfTheFleetProbes(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	a, b := w.Nodes[0], w.Nodes[1]
	for _, n := range w.Nodes {
		_, err := n.Nodes.Beat(w.Ctx, 1, nodes.News{})
		w.Must(err)
	}
	_, err := a.Grants.NoteLimit(w.Ctx, model, limit.Note{Want: 1, Opened: time.Minute}, nil)
	w.Must(err)
	_, err = a.Grants.NoteLimit(w.Ctx, model, limit.Note{Want: 1, Probe: true, Turns: 1}, nil)
	w.Must(err)
	s, err := b.Grants.NoteLimit(w.Ctx, model, limit.Note{Want: 1, Probe: true, Turns: 1}, nil)
	w.Must(err)
	if want := (limit.Breaker{Turns: 2, Open: true, For: time.Minute, Prober: a.Node()}); s.Breaker != want {
		t.Errorf("breaker %+v, want %+v", s.Breaker, want)
	}
	s, err = b.Grants.NoteLimit(w.Ctx, model, limit.Note{Want: 1, Probe: true, Turns: 2}, []mapreduce.NodeID{a.Node()})
	w.Must(err)
	if s.Breaker.Prober != b.Node() {
		t.Errorf("the prober died, and now it is %q, want %q", s.Breaker.Prober, b.Node())
	}
	s, err = b.Grants.NoteLimit(w.Ctx, model, limit.Note{Want: 1, Closed: true}, nil)
	w.Must(err)
	if s.Breaker.Open {
		t.Error("it is open after a probe that succeeded")
	}
}

// The fleet's calls go to those who need them, in parts by how many each needs,
// and what nobody needs to whoever can make them. What may be under way is kept.
func TestFleetSlotsAreShared(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	a, b := w.Nodes[0], w.Nodes[1]
	for _, n := range w.Nodes {
		_, err := n.Nodes.Beat(w.Ctx, 1, nodes.News{})
		w.Must(err)
	}
	for i, step := range []struct {
		node *jobs.Jobs
		ask  nodes.CallsRequest
		want nodes.CallsReply
	}{
		{a, nodes.CallsRequest{Most: 80}, nodes.CallsReply{Slots: 50, Kept: 50}},
		{b, nodes.CallsRequest{Most: 80}, nodes.CallsReply{}},
		{b, nodes.CallsRequest{Need: 20, Most: 80}, nodes.CallsReply{}},
		{a, nodes.CallsRequest{Most: 80, Keep: 50}, nodes.CallsReply{Slots: 30, Kept: 50}},
		{a, nodes.CallsRequest{Most: 80, Keep: 35}, nodes.CallsReply{Slots: 30, Kept: 35}},
		{b, nodes.CallsRequest{Need: 20, Most: 80}, nodes.CallsReply{Slots: 15, Kept: 15}},
		{a, nodes.CallsRequest{Most: 80}, nodes.CallsReply{Slots: 30, Kept: 30}},
		{b, nodes.CallsRequest{Need: 20, Most: 80}, nodes.CallsReply{Slots: 20, Kept: 20}},
		{a, nodes.CallsRequest{Need: 80, Most: 80}, nodes.CallsReply{Slots: 30, Kept: 30}},
		{b, nodes.CallsRequest{Need: 20, Most: 80}, nodes.CallsReply{Slots: 10, Kept: 10}},
		{a, nodes.CallsRequest{Need: 80, Most: 80}, nodes.CallsReply{Slots: 40, Kept: 40}},
	} {
		step.ask.Limit = 50
		got, err := step.node.Grants.FleetSlots(w.Ctx, step.ask)
		w.Must(err)
		if diff := cmp.Diff(&step.want, got); diff != "" {
			t.Errorf("step %d, %+v (-want +got):\n%s", i, step.ask, diff)
		}
	}
}

// A node gives back what it knows to be idle of the calls that it had. If sessions have brought some meanwhile,
// or have taken some along, it knows no more which are idle, and keeps them all.
func TestCallsThatCameMeanwhileStay(t *testing.T) {
	for name, tt := range map[string]struct {
		came, went int // calls, with sessions
		want       int64
	}{
		"nothing happened":     {want: 2},
		"two came":             {came: 2, want: 6},
		"one went":             {went: 1, want: 3},
		"as many went as came": {came: 1, went: 1, want: 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := jobstest.NewWorld(t, jobstest.Open(t), 2)
			a, b := w.Nodes[0], w.Nodes[1]
			ask := nodes.CallsRequest{Most: 4, Keep: 8, Limit: 8}
			_, err := a.Grants.FleetSlots(w.Ctx, ask)
			w.Must(err)
			_, err = b.Grants.FleetSlots(w.Ctx, nodes.CallsRequest{Need: 8, Most: 8, Limit: 8})
			w.Must(err)
			g, err := a.Grants.FleetSlots(w.Ctx, ask)
			w.Must(err)

			id := w.Submit(a, jobstest.Spec(), jobstest.Texts(4))
			move := func(from, to *jobs.Jobs, units int) {
				if units == 0 {
					return
				}
				var held []protocol.Held
				s := w.Session(from)
				for _, u := range w.Claim(from, id, s, units) {
					held = append(held, protocol.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)})
				}
				w.Bind(to, s.ID, held...)
			}
			move(b, a, tt.came)
			move(a, b, tt.went)

			ask.Keep, ask.Of = 2, g
			for range 2 { // a transaction may run again that took effect unseen
				if got, err := a.Grants.FleetSlots(w.Ctx, ask); err != nil || got.Kept != tt.want {
					t.Errorf("the node keeps %+v (error %v), want %d", got, err, tt.want)
				}
			}
			w.Healthy()
		})
	}
}

// However nodes ask, they never have more calls than the fleet may make.
func TestFleetSlotsAreNeverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := jobstest.NewWorld(t, jobstest.Open(t), 3)
		has := make(map[mapreduce.NodeID]int64)
		for range 20 {
			n := rapid.SampledFrom(w.Nodes).Draw(t, "node")
			_, err := n.Nodes.Beat(w.Ctx, 1, nodes.News{})
			w.Must(err)
			count := rapid.Int64Range(0, 12)
			ask := nodes.CallsRequest{Need: count.Draw(t, "need"), Most: count.Draw(t, "most"), Keep: count.Draw(t, "keep"), Limit: 10}
			kept := min(ask.Keep, has[n.Node()])
			g, err := n.Grants.FleetSlots(w.Ctx, ask)
			w.Must(err)
			has[n.Node()] = g.Kept
			all := int64(0)
			for _, n := range has {
				all += n
			}
			if all > ask.Limit || g.Kept < kept || g.Slots > g.Kept {
				t.Fatalf("after %+v: %+v, and %v of %d in all", ask, g, has, ask.Limit)
			}
		}
	})
}

// What a server refuses is told to the other nodes at once, stays as it is when nodes write something
// else, and is found out again after hours.
func TestManners(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 2)
	a, b := w.Nodes[0], w.Nodes[1]
	for _, n := range w.Nodes {
		_, err := n.Nodes.Beat(w.Ctx, 1, nodes.News{})
		w.Must(err)
	}
	woken, err := b.Watch(w.Ctx)
	w.Must(err)
	_, err = a.Grants.NoteLimit(w.Ctx, model, limit.Note{Want: 1, Manners: map[string]string{"s": "strict"}}, nil)
	w.Must(err)
	select {
	case <-woken:
	case <-w.Ctx.Done():
		t.Fatal("nobody was told")
	}
	manners := func(n limit.Note) map[string]string {
		t.Helper()
		s, err := b.Grants.NoteLimit(w.Ctx, model, n, nil)
		w.Must(err)
		return s.Manners
	}
	if diff := cmp.Diff(map[string]string{"s": "strict"}, manners(limit.Note{Want: 3, Told: mapreduce.Rates{Requests: 7}})); diff != "" {
		t.Errorf("another node (-want +got):\n%s", diff)
	}
	w.Micro += (4 * time.Hour).Microseconds()
	if diff := cmp.Diff(map[string]string{"s": "strict", "t": "seed"}, manners(limit.Note{Want: 1, Manners: map[string]string{"t": "seed"}})); diff != "" {
		t.Errorf("four hours later (-want +got):\n%s", diff)
	}
	w.Micro += (4 * time.Hour).Microseconds()
	if diff := cmp.Diff(map[string]string{"t": "seed"}, manners(limit.Note{Want: 2})); diff != "" {
		t.Errorf("eight hours later (-want +got):\n%s", diff)
	}
}
