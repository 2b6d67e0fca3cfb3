package nodes_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	storagev1 "github.com/coditect/mapreduce/proto/coditect/mapreduce/storage/v1"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// A believer is an orchestrator as it sees itself, which may be long ago.
type believer struct {
	*jobs.Jobs
	binding jobstest.Binding
	slots   int64                              // that it was granted, as far as it knows
	taken   int64                              // how often others took some of them
	begun   []*queue.Claim                     // under way, in no order
	holds   map[mapreduce.UnitID]bool          // units that it thinks its sessions hold
	doubts  map[mapreduce.NodeID]*nodes.Doubt  // that it has seen
	units   map[mapreduce.UnitID]*records.Unit // of its session, in truth
}

const parallel = 4

// However orchestrators claim, doubt each other, bury those who live, and go by
// what has long ceased to be so, no more units run than the job allows.
func TestSlotsAreNeverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newParish(jobstest.NewWorld(t, jobstest.Open(t), 3))
		t.Repeat(map[string]func(*rapid.T){
			"ask":   func(t *rapid.T) { p.ask(p.draw(t), nodes.GrantRequest{Slots: parallel}) },
			"give":  func(t *rapid.T) { p.give(p.draw(t)) },
			"doubt": func(t *rapid.T) { p.doubts(p.draw(t), p.draw(t)) },
			"claim": func(t *rapid.T) { p.claims(p.draw(t), rapid.Int64Range(1, parallel).Draw(t, "units")) },
			"begin": func(t *rapid.T) { p.begin(p.draw(t), rapid.Int64Range(1, 2).Draw(t, "units")) },
			"end": func(t *rapid.T) {
				if b := p.draw(t); len(b.begun) > 0 {
					p.end(b, rapid.IntRange(0, len(b.begun)-1).Draw(t, "claim"))
				}
			},
			"finish": func(t *rapid.T) { p.finish(p.draw(t), p.draw(t)) },
			"rebind": func(t *rapid.T) { p.rebind(p.draw(t), p.draw(t), rapid.Bool().Draw(t, "remembers")) },
			"expire": func(t *rapid.T) { p.expire(p.draw(t)) },
			"revive": func(t *rapid.T) { p.revive(p.draw(t), p.draw(t)) },
			"return": func(t *rapid.T) { p.giveAll(p.draw(t)) },
			"settle": func(t *rapid.T) { p.settle(p.draw(t)) },
			"bury": func(t *rapid.T) {
				b, other := p.draw(t), p.draw(t)
				p.doubts(b, other)
				p.lose(other)
				p.bury(b, other)
				other.binding = p.Session(other.Jobs)
			},
			"usurp": func(t *rapid.T) { // as others do at once when one is slow
				b, other := p.draw(t), p.draw(t)
				p.doubts(b, other)
				if rapid.Bool().Draw(t, "late") {
					p.claims(other, 1)
				}
				p.ask(b, nodes.GrantRequest{Slots: parallel})
				p.claims(b, parallel)
				for len(other.begun) > 0 && rapid.Bool().Draw(t, "wakes") {
					p.end(other, 0)
				}
			},
			"": func(*rapid.T) { p.check() },
		})
	})
}

// While a doubt stands, what its node does not use is free. Whatever the node does
// of which the one who doubted it cannot know ends it.
func TestDoubtEnds(t *testing.T) {
	for _, tt := range []struct {
		name string
		does func(p *parish, first, second, third *believer)
		want int64 // slots that the second gets
	}{
		{"it does nothing", func(*parish, *believer, *believer, *believer) {}, 3},
		{"it gives signs of life", func(p *parish, first, _, _ *believer) {
			_, err := first.Nodes.Beat(p.Ctx, 7, nodes.News{})
			p.Must(err)
		}, 3},
		{"a unit ends", func(p *parish, first, _, third *believer) { p.finish(first, third) }, 3},
		{"its session goes elsewhere", func(p *parish, first, _, third *believer) { p.move(first, third, true) }, 2},
		{"it claims", func(p *parish, first, _, _ *believer) { p.claims(first, 1) }, 0},
		{"it claims, and another doubts it again", func(p *parish, first, _, third *believer) {
			p.claims(first, 1)
			p.Doubt(third.Jobs, first.Node())
		}, 0},
		{"a session comes to it", func(p *parish, first, _, third *believer) {
			third.binding = p.Session(third.Jobs)
			p.rebind(third, first, true)
		}, 0},
		{"another doubts it as well", func(p *parish, first, _, third *believer) { p.doubts(third, first) }, 3},
		{"it is forgotten", func(p *parish, first, _, third *believer) {
			p.lose(first)
			p.doubts(third, first)
			p.bury(third, first)
		}, 4},
		{"it is forgotten, and comes back", func(p *parish, first, _, third *believer) {
			p.lose(first)
			p.doubts(third, first)
			p.bury(third, first)
			first.binding = p.Session(first.Jobs)
		}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newParish(jobstest.NewWorld(t, jobstest.Open(t), 3))
			first, second, third := p.all[0], p.all[1], p.all[2]
			p.ask(first, nodes.GrantRequest{Slots: parallel})
			p.claims(first, 1)
			p.doubts(second, first)
			tt.does(p, first, second, third)
			p.ask(second, nodes.GrantRequest{Slots: parallel})
			if second.slots != tt.want {
				t.Errorf("the second was granted %d slots, want %d", second.slots, tt.want)
			}
			p.check()
			p.Healthy()
		})
	}
}

// What is taken from a node for dead it cannot spend, nor use, when it wakes up.
func TestWakesUpToLess(t *testing.T) {
	sp := jobstest.Spec()
	sp.Budget = 10 * jobstest.Estimate
	p := newParish(jobstest.NewWorld(t, jobstest.Open(t), 2))
	p.job = p.Submit(p.World.Nodes[0], sp, jobstest.Texts(30))
	first, second := p.all[0], p.all[1]
	for _, b := range p.all[:2] {
		p.doubts(second, first)
		g, err := b.Grants.Grant(p.Ctx, p.job, nodes.GrantRequest{Slots: 2, Tokens: 20, Parallelism: parallel, Alone: true, Doubts: b.doubts})
		p.Must(err)
		if g.Slots != 2 || g.Tokens == 0 {
			t.Fatalf("granted %+v", g)
		}
		calls, err := b.Grants.FleetSlots(p.Ctx, nodes.CallsRequest{Need: 2, Most: 2, Limit: 2, Doubts: b.doubts})
		p.Must(err)
		if calls.Kept != 2 {
			t.Fatalf("%+v calls are granted, want 2", calls)
		}
	}
	for name, c := range map[string]queue.Claim{"slots": {Slots: queue.Share{Slots: 1}}, "calls": {Calls: queue.Share{Slots: 1}}, "tokens": {Bounded: true, Tokens: 20}} {
		bindings := p.ClaimOf(first.Jobs, p.job, first.binding, 1)
		c.ID, c.Workers, c.Candidates = bindings.ID, bindings.Workers, bindings.Candidates
		res := p.Turn(first.Jobs, &queue.Turn{Job: p.job, Claim: &c})
		if len(res.Claimed) > 0 || res.Short == c.Bounded || len(res.Left) != len(c.Candidates) {
			t.Errorf("%s: %d claimed, short is %t, %d left of %d", name, len(res.Claimed), res.Short, len(res.Left), len(c.Candidates))
		}
	}
	p.Healthy()
}

// Two claims of a node are under way when it is doubted, and only one of them is
// seen: the other finds as many slots as it needs by itself, and is refused.
func TestClaimUnderWayIsRefused(t *testing.T) {
	p := newParish(jobstest.NewWorld(t, jobstest.Open(t), 2))
	first, second := p.all[0], p.all[1]
	p.ask(first, nodes.GrantRequest{Slots: parallel})
	p.begin(first, 2)
	p.claims(first, 2)
	p.doubts(second, first)
	p.ask(second, nodes.GrantRequest{Slots: parallel})
	p.claims(second, parallel)
	p.end(first, 0)
	if len(first.units) != 2 || len(second.units) != 2 {
		t.Errorf("%d and %d units were claimed, want 2 and 2", len(first.units), len(second.units))
	}
	p.check()
}

// A node that does not know yet that others took slots of it gives back what it thinks
// it does not use: the slots of its running units stay its own.
func TestGivenAfterOthersTook(t *testing.T) {
	p := newParish(jobstest.NewWorld(t, jobstest.Open(t), 2))
	first, second := p.all[0], p.all[1]
	p.ask(first, nodes.GrantRequest{Slots: parallel})
	p.claims(first, 1)
	p.doubts(second, first)
	p.ask(second, nodes.GrantRequest{Slots: parallel})
	p.claims(second, parallel)
	p.give(first)
	if first.slots != 1 {
		t.Errorf("the first has %d slots, want the one of its unit", first.slots)
	}
	p.ask(second, nodes.GrantRequest{Slots: parallel})
	p.claims(second, parallel)
	p.check()
	p.Healthy()
}

// A node that gives back all that it knows of keeps the slots that came with a session meanwhile, whether it
// is told that it has given or asks again.
func TestGivenBackBesideASessionThatCame(t *testing.T) {
	p := newParish(jobstest.NewWorld(t, jobstest.Open(t), 2))
	first, second := p.all[0], p.all[1]
	p.ask(first, nodes.GrantRequest{Slots: 2})
	p.ask(second, nodes.GrantRequest{Slots: 1})
	p.claims(second, 1)
	p.move(second, first, true)
	back := nodes.GiveBack{Slots: first.slots, Taken: first.taken, ID: p.Name("give")}
	for range 2 {
		if left, err := first.Grants.Return(p.Ctx, p.job, back); left != 1 || err != nil {
			t.Errorf("the first keeps %d slots (%v), want the one of the unit that came", left, err)
		}
	}
	p.check()
	p.Healthy()
}

// A parish is a job and those who believe that they run it.
type parish struct {
	*jobstest.World
	job mapreduce.JobID
	all []*believer // by node
}

func newParish(w *jobstest.World) *parish {
	p := &parish{World: w}
	sp := jobstest.Spec()
	sp.Parallelism = parallel
	p.job = p.Submit(w.Nodes[0], sp, jobstest.Texts(30))
	for _, n := range w.Nodes {
		p.all = append(p.all, &believer{
			Jobs: n, binding: p.Session(n), holds: make(map[mapreduce.UnitID]bool),
			doubts: make(map[mapreduce.NodeID]*nodes.Doubt), units: make(map[mapreduce.UnitID]*records.Unit),
		})
	}
	return p
}

func (p *parish) draw(t *rapid.T) *believer {
	return p.all[rapid.IntRange(0, len(p.all)-1).Draw(t, "node")]
}

func (p *parish) ask(b *believer, ask nodes.GrantRequest) {
	ask.Parallelism, ask.Doubts = parallel, b.doubts
	g, err := b.Grants.Grant(p.Ctx, p.job, ask)
	p.Must(err)
	b.slots, b.taken = g.Slots, g.Taken
}

func (p *parish) give(b *believer) {
	if surplus := b.slots - b.busy(); surplus > 0 {
		ask := nodes.GrantRequest{Give: surplus, Taken: b.taken, ID: p.Name("ask")}
		p.ask(b, ask)
		p.ask(b, ask) // as after a commit of which nobody knows
	}
}

// giveAll gives back all slots of an orchestrator that thinks that it uses none.
func (p *parish) giveAll(b *believer) {
	if b.busy() > 0 {
		return
	}
	back := nodes.GiveBack{Slots: b.slots, Taken: b.taken, ID: p.Name("give")}
	for range 2 { // as after a commit of which nobody knows
		_, err := b.Grants.Return(p.Ctx, p.job, back)
		p.Must(err)
	}
	b.slots = 0
}

// busy counts the units that b holds, or is about to, as far as it knows.
func (b *believer) busy() int64 {
	n := int64(len(b.holds))
	for _, c := range b.begun {
		n += int64(c.Workers[0].Slots)
	}
	return n
}

func (p *parish) doubts(b, other *believer) {
	if b == other {
		return
	}
	beats, err := b.Nodes.Beats(p.Ctx)
	p.Must(err)
	d, err := b.Nodes.Doubt(p.Ctx, other.Node(), beats[other.Node()], p.Name("doubt"))
	p.Must(err)
	if b.doubts[other.Node()] = d; d == nil {
		delete(b.doubts, other.Node())
	}
}

// claims claims as many units as b thinks that it may.
func (p *parish) claims(b *believer, n int64) {
	if p.begin(b, n) {
		p.end(b, len(b.begun)-1)
	}
}

// begin prepares a claim, and reports whether b thinks that it may make one.
func (p *parish) begin(b *believer, n int64) bool {
	n = min(n, b.slots-b.busy())
	if n <= 0 {
		return false
	}
	c := p.ClaimOf(b.Jobs, p.job, b.binding, int(n))
	b.begun = append(b.begun, c)
	c.Slots = queue.Share{Slots: b.busy(), Taken: b.taken}
	return true
}

// end carries out one of the claims that are under way.
func (p *parish) end(b *believer, i int) {
	c := b.begun[i]
	b.begun = slices.Delete(b.begun, i, i+1)
	res := p.Turn(b.Jobs, &queue.Turn{Job: p.job, Claim: c})
	if res.Short {
		if len(res.Claimed) > 0 {
			p.Errorf("%d units were claimed without slots", len(res.Claimed))
		}
		b.slots, b.taken = min(b.slots, res.Slots.Slots), res.Slots.Taken
	}
	for _, got := range res.Claimed {
		id := got.Unit.ID
		b.holds[id], b.units[id] = true, got.Unit
	}
}

// finish has one unit of a session reported to any orchestrator.
func (p *parish) finish(of, to *believer) {
	if len(of.units) == 0 {
		return
	}
	id := slices.Min(slices.Collect(maps.Keys(of.units)))
	p.Report(to.Jobs, jobstest.Done(p.job, of.units[id]))
	delete(of.units, id)
	delete(to.holds, id)
}

// move has a session taken up by another orchestrator. A worker that does not
// remember its units never received them.
func (p *parish) move(from, to *believer, remembers bool) {
	var holding []protocol.Held
	if remembers {
		for _, id := range slices.Sorted(maps.Keys(from.units)) {
			holding = append(holding, protocol.Held{Job: p.job, Unit: id, Attempt: int(from.units[id].Attempt)})
		}
	}
	p.expire(to) // which has one session at a time
	to.binding, _ = p.Bind(to.Jobs, from.binding.ID, holding...)
	for _, h := range holding {
		to.holds[h.Unit], to.units[h.Unit] = true, from.units[h.Unit]
	}
	clear(from.units)
}

// rebind moves a session, and another comes to the orchestrator that it left.
func (p *parish) rebind(from, to *believer, remembers bool) {
	if from != to {
		p.move(from, to, remembers)
		from.binding = p.Session(from.Jobs)
	}
}

// expire loses a session, and another comes; its orchestrator does not notice
// yet.
func (p *parish) expire(b *believer) {
	p.lose(b)
	b.binding = p.Session(b.Jobs)
}

// revive gives a session up whose worker lives, and comes to another orchestrator or back. It runs what it
// had as far as there are slots.
func (p *parish) revive(from, to *believer) {
	had := maps.Clone(from.units)
	hello := &protocol.Hello{Session: from.binding.ID, Slots: 10}
	for _, id := range slices.Sorted(maps.Keys(had)) {
		hello.Holding = append(hello.Holding, protocol.Held{Job: p.job, Unit: id, Attempt: int(had[id].Attempt)})
	}
	epoch := from.binding.Epoch + 10
	p.lose(from)
	if from != to {
		p.expire(to) // which has one session at a time
		from.binding = p.Session(from.Jobs)
	}

	idle := map[mapreduce.JobID]queue.Idle{p.job: {Slots: max(0, to.slots-to.busy()), Of: queue.Share{Slots: to.slots, Taken: to.taken}}}
	b, err := to.Sessions.Bind(p.Ctx, hello, "", epoch, idle)
	p.Must(err)
	to.binding = jobstest.Binding{ID: hello.Session, Epoch: epoch}
	for _, h := range b.Kept {
		to.holds[h.Unit], to.units[h.Unit] = true, had[h.Unit]
	}
}

func (p *parish) lose(b *believer) {
	_, err := b.Sessions.Expire(p.Ctx, b.binding.ID, b.Node(), b.binding.Epoch, nil)
	p.Must(err)
	clear(b.units)
}

// settle lets an orchestrator find out what its sessions hold.
func (p *parish) settle(b *believer) {
	p.ask(b, nodes.GrantRequest{})
	clear(b.holds)
	for id := range b.units {
		b.holds[id] = true
	}
}

// bury has an orchestrator forgotten that has no session, unless it has done
// something since it was doubted.
func (p *parish) bury(b, other *believer) {
	beats, err := b.Nodes.Beats(p.Ctx)
	p.Must(err)
	if d := b.doubts[other.Node()]; d != nil {
		p.Must(b.Nodes.Forget(p.Ctx, other.Node(), beats[other.Node()], d))
	}
}

func (p *parish) check() {
	p.Helper()
	running, granted := 0, int64(0)
	units, grants := p.Space.Job(p.job).Units(), p.Space.Nodes().Grants(mapreduce.JobScope(p.job))
	for _, kv := range p.World.All() {
		var u storagev1.Unit
		var g storagev1.Grant
		switch {
		case within(units, kv.Key) && proto.Unmarshal(kv.Value, &u) == nil:
			if mapreduce.UnitState(u.Status) == mapreduce.Processing {
				running++
			}
		case within(grants, kv.Key) && proto.Unmarshal(kv.Value, &g) == nil:
			granted += g.Slots
		}
	}
	if running > parallel || granted > parallel {
		p.Fatalf("%d units run and %d slots are granted, of %d", running, granted, parallel)
	}
}

func within(r store.Range, key []byte) bool {
	return bytes.Compare(key, r.Begin) >= 0 && bytes.Compare(key, r.End) < 0
}
