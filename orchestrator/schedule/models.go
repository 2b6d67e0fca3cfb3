package schedule

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/notify"
	"github.com/coditect/mapreduce/store/jobs/limit"
)

// Models are what may be asked of models: limits, pauses and breakers. The scheduler's mu
// guards them.
type Models struct {
	sched *Scheduler

	states  map[string]*modelState // by provider and model
	limits  func(model string) ModelLimits
	lease   time.Duration // that shares of their limits are good for
	Changed notify.Signal // models have something to tell the fleet, or to ask it
}

// A modelState is what a node knows of the limits of one model, "provider/model", and
// what it has to tell the fleet of it. The scheduler's mu guards it.
type modelState struct {
	name   string
	set    ModelLimits
	scope  limit.Scope // as of the latest look
	share  limit.Share // this node's, of that
	looked bool

	frozen  time.Time // no unit is begun before: the vendor refused some
	until   time.Time // the breaker is open, and nobody probes
	refused time.Time // until when the vendor is to rest that refused the latest calls from here; zero if it took one
	told    bool      // workers were given a share that limits them

	note   limit.Note      // since the latest look
	urgent bool            // it is to be told at once
	left   mapreduce.Rates // of the rates, as the vendor said
	leftAt time.Time
	pace   Pace // of the calls whose reports came here
}

// ModelLimits are what the fleet may ask of one model, as its owner says. Zero is
// no limit. Where the vendor tells its own, the lower one counts.
type ModelLimits struct {
	Calls int64 // at once
	Rates mapreduce.Rates
}

// effectiveRates are the lower of those that the vendor told and those that are configured.
func (m *modelState) effectiveRates() mapreduce.Rates {
	lower := func(told, set int64) int64 {
		if told == 0 || set == 0 {
			return max(told, set)
		}
		return min(told, set)
	}
	told, set := m.scope.Rates, m.set.Rates
	return mapreduce.Rates{
		Requests: lower(told.Requests, set.Requests), Input: lower(told.Input, set.Input), Output: lower(told.Output, set.Output),
	}
}

// providerName is whose model it is.
func (m *modelState) providerName() string { return strings.SplitN(m.name, "/", 2)[0] }

// isProbeNode reports whether it is this node that may make one call to see whether
// all is well again.
func (m *modelState) isProbeNode(node mapreduce.NodeID) bool {
	return m.scope.Breaker.Open && m.scope.Breaker.Prober == node
}

// hasLimits reports whether there is anything that workers have to keep to.
func (m *modelState) hasLimits(now time.Time) bool {
	return m.effectiveRates() != (mapreduce.Rates{}) || m.scope.Room > 0 || m.scope.Breaker.Open || now.Before(m.frozen)
}

// modelStateOf returns what is known of a model. The caller holds the scheduler's mu.
func (g *Models) modelStateOf(name string) *modelState {
	m := g.states[name]
	if m == nil {
		m = &modelState{name: name, set: g.limits(name)}
		g.states[name] = m
	}
	return m
}

// knownModels returns what finds the models that one message of a worker names: what is
// known of one that a job here asks, or asked; nil of any other. Workers name models, and
// nobody is to be told of one, or remember it, because a worker made its name up. However
// many it makes up, the jobs are gone through once.
func (g *Models) knownModels() func(name string) *modelState {
	var asked map[string]bool
	return func(name string) *modelState {
		if m := g.states[name]; m != nil {
			return m
		}
		if asked == nil {
			asked = make(map[string]bool)
			for _, r := range g.sched.runs {
				if r.spec != nil && r.asks {
					asked[breakerOf(r.spec)] = true
				}
			}
		}
		if !asked[name] {
			return nil
		}
		return g.modelStateOf(name)
	}
}

// forgetUnused forgets the models that no job here asks any more, and of which there is
// nothing to tell.
func (g *Models) forgetUnused(now time.Time) {
	asked := make(map[string]bool)
	for _, r := range g.sched.runs {
		if r.spec != nil {
			asked[breakerOf(r.spec)] = true
		}
	}
	for name, m := range g.states {
		unused := m.share == (limit.Share{}) && m.note == (limit.Note{}) && !m.urgent && !m.told && !m.scope.Breaker.Open && !now.Before(m.frozen)
		if !asked[name] && unused {
			delete(g.states, name)
			for _, s := range g.sched.Sessions.bound {
				delete(s.breakers, name)
			}
		}
	}
}

// heldOf counts the units that this node holds of the jobs of a model. The caller holds
// the scheduler's mu, as for all that follows here.
func (g *Models) heldOf(name string) (n int64) {
	for _, r := range g.sched.runs {
		if r.held > 0 && r.spec != nil && breakerOf(r.spec) == name {
			n += int64(r.held)
		}
	}
	return n
}

// wantOf is how many calls at once this node has use for.
func (g *Models) wantOf(m *modelState) int64 {
	want := g.heldOf(m.name)
	if g.sched.Grants.callSlots == 0 {
		return want // nor has it for the turn to probe
	}
	for _, r := range g.sched.runs {
		if r.spec != nil && r.running && breakerOf(r.spec) == m.name && (len(r.queue) > 0 || !r.drained) {
			return max(want, g.sched.Sessions.providerSlots(m.providerName()))
		}
	}
	return want
}

// modelRoom is how many more units of r the limits of its model let begin. While
// this node has no share of them, it asks for one, and none may.
func (g *Models) modelRoom(r *Job) int {
	if r.spec == nil || !r.asks {
		return math.MaxInt
	}
	m := g.modelStateOf(breakerOf(r.spec))
	if m.share == (limit.Share{}) {
		if !m.urgent && g.wantOf(m) > 0 {
			m.urgent = true
			g.Changed.Wake()
		}
		return 0
	}
	var most int64
	switch {
	case g.sched.now().Before(m.frozen):
		return 0
	case m.holdsBack(r.spec):
		if !m.isProbeNode(g.sched.node) {
			return 0
		}
		most = 1
	case m.scope.Room > 0:
		most = m.share.Slots
	default:
		return math.MaxInt
	}
	return int(max(0, most-g.heldOf(m.name)))
}

// mayHold is how many units of r this node may hold at once by the limits of calls
// and of its model. It has no use for more slots of the job, and others may: those
// who probe, or have the rest of what the fleet may call at once.
func (g *Models) mayHold(r *Job) int64 {
	if r.spec == nil || !r.asks {
		return math.MaxInt64
	}
	most, m := g.sched.Grants.callSlots, g.modelStateOf(breakerOf(r.spec))
	switch {
	case m.holdsBack(r.spec):
		if !m.isProbeNode(g.sched.node) {
			return 0
		}
		return min(most, 1)
	case m.scope.Room > 0 && m.share.Slots < m.share.Want: // else it has what it wants, be that little
		return min(most, m.share.Slots)
	}
	return most
}

// mayHoldOf returns that of each running job of a model, as far as the job goes.
func (g *Models) mayHoldOf(name string) map[mapreduce.JobID]int64 {
	of := make(map[mapreduce.JobID]int64)
	for id, r := range g.sched.runs {
		if r.running && r.spec != nil && r.asks && breakerOf(r.spec) == name {
			of[id] = min(g.mayHold(r), int64(r.spec.Parallelism))
		}
	}
	return of
}

// hearLimits takes what a worker says of models, and reports whether others have
// to know at once.
func (g *Models) hearLimits(known func(string) *modelState, notes []mapreduce.LimitNote, now time.Time) (urgent bool) {
	for i := range notes {
		n := &notes[i]
		m := known(n.Name)
		if m == nil {
			continue
		}
		m.note.Successes += n.Successes
		if n.Told != (mapreduce.Rates{}) {
			m.note.Told, m.left, m.leftAt = n.Told, n.Left, now
		}
		if n.Refused {
			m.noteRefusal(n, now)
			urgent = true
		}
		if n.Successes > 0 {
			m.refused = time.Time{}
		}
	}
	return urgent
}

// noteRefusal notes that the vendor refused a call. Those that it refuses while the
// model rests anyway were under way before.
func (m *modelState) noteRefusal(n *mapreduce.LimitNote, now time.Time) {
	if !now.Before(m.frozen) {
		m.note.Refused, m.note.Seen, m.urgent = true, m.scope.Pauses, true
		m.note.Guess = n.Told == (mapreduce.Rates{}) && m.scope.Rates == (mapreduce.Rates{})
	}
	if m.note.Refused {
		m.note.Pause = max(m.note.Pause, n.Pause)
	}
	end := now.Add(max(n.Pause, limit.LeastPause))
	if end.After(m.refused) {
		m.refused = end
	}
	if end.After(m.frozen) {
		m.frozen = end
	}
}

// hearBreakers takes what a worker says of its breakers, and reports whether the
// fleet's has to be opened.
func (g *Models) hearBreakers(known func(string) *modelState, breakers []mapreduce.BreakerState, now time.Time) (urgent bool) {
	for _, br := range breakers {
		m := known(br.Name)
		if m == nil {
			continue
		}
		if !m.scope.Breaker.Open || m.isProbeNode(g.sched.node) {
			g.reopenBreaker(m, br.OpenFor, now)
			urgent = true
		}
	}
	return urgent
}

// reopenBreaker opens a breaker here, before the fleet knows.
func (g *Models) reopenBreaker(m *modelState, d time.Duration, now time.Time) {
	m.note.Opened, m.note.Closed, m.urgent = max(d, time.Millisecond), false, true
	m.scope.Breaker.Open, m.scope.Breaker.For, m.scope.Breaker.Prober = true, d, ""
	g.closeModelUntil(m, now.Add(d))
}

// closeModelUntil keeps the units of a model from workers until then.
func (g *Models) closeModelUntil(m *modelState, until time.Time) {
	m.until = until
	for _, s := range g.sched.Sessions.bound {
		s.breakers[m.name] = until
	}
}

// noteProbeOutcome takes how a unit ended of a model whose breaker is probed here, and
// reports whether the fleet has to know.
func (g *Models) noteProbeOutcome(r *Job, rep *mapreduce.Report, now time.Time) bool {
	if r.spec == nil {
		return false
	}
	m := g.states[breakerOf(r.spec)]
	if m == nil || !m.isProbeNode(g.sched.node) || rep.Calls == 0 {
		return false
	}
	switch {
	case rep.Outcome == mapreduce.Done, rep.Outcome == mapreduce.Parked:
		m.note.Closed, m.urgent = true, true
		return true
	case rep.Outcome == mapreduce.Errored && rep.Class == mapreduce.Retryable:
		g.reopenBreaker(m, m.scope.Breaker.For, now)
		return true
	}
	return false // says nothing of the provider; the next unit will
}

// Due returns the models of which the fleet is to be told or asked: those
// with news, or all that are in use.
func (g *Models) Due(all bool) []string {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	for _, r := range g.sched.runs {
		if r.running && r.spec != nil && r.asks {
			g.modelStateOf(breakerOf(r.spec))
		}
	}
	if all {
		g.forgetUnused(g.sched.now())
	}
	var due []string
	for name, m := range g.states {
		idle := m.looked && m.share == (limit.Share{}) && g.wantOf(m) == 0 && m.note == (limit.Note{})
		if m.urgent || all && !idle {
			due = append(due, name)
		}
	}
	slices.Sort(due)
	return due
}

// TakeNote returns what is to be told of a model.
func (g *Models) TakeNote(name string, most int64) limit.Note {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	m := g.modelStateOf(name)
	n := m.note
	n.Most, n.Set, n.Want, n.Held = most, m.set.Calls, g.wantOf(m), g.heldOf(name)
	n.Probe = m.scope.Breaker.Open && m.scope.Breaker.Prober == "" && n.Opened == 0 && n.Want > 0 && g.sched.Grants.callSlots > 0 && !g.sched.now().Before(m.until)
	m.note, m.urgent = limit.Note{}, false
	return n
}

// PutBackNote keeps what could not be told.
func (g *Models) PutBackNote(name string, n limit.Note) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	m := g.modelStateOf(name)
	m.note.Successes += n.Successes
	m.note.Pause, m.note.Opened = max(m.note.Pause, n.Pause), max(m.note.Opened, n.Opened)
	m.note.Closed = m.note.Closed || n.Closed
	if n.Refused {
		m.note.Refused, m.note.Guess, m.note.Seen = true, n.Guess, n.Seen
	}
	if m.note.Told == (mapreduce.Rates{}) {
		m.note.Told = n.Told
	}
}

// ApplyScope takes what the fleet knows of a model, and returns when there is
// something to do about it again, zero being never, and the jobs that may hold more
// units, or fewer, than before. What others began is timed from now; if nobody else is
// left who could have, it is over.
func (g *Models) ApplyScope(name string, s *limit.Scope, now time.Time) (again time.Time, concerned []mapreduce.JobID) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	m, held := g.modelStateOf(name), g.mayHoldOf(name)
	before, first := m.scope, !m.looked
	stale := first && len(s.Shares) < 2
	if s.Pauses > before.Pauses && !stale {
		if end := now.Add(s.Pause); end.After(m.frozen) {
			m.frozen = end
		}
	}
	m.scope, m.share, m.looked = *s, s.Shares[g.sched.node], true
	switch {
	case m.note.Opened > 0: // opened here meanwhile, which the fleet is yet to learn
		m.scope.Breaker.Open, m.scope.Breaker.Prober = true, ""
	case !s.Breaker.Open && (before.Breaker.Open || first):
		for _, session := range g.sched.Sessions.bound {
			delete(session.breakers, name)
		}
	case s.Breaker.Turns != before.Breaker.Turns && s.Breaker.Open && s.Breaker.Prober == "":
		end := now.Add(s.Breaker.For)
		if stale {
			end = now
		}
		g.closeModelUntil(m, end)
	}
	g.distributeShares(m, now)
	for _, r := range g.sched.runs {
		g.sched.fairQueue.add(r)
	}
	g.sched.wake.Broadcast()
	for id, n := range g.mayHoldOf(name) {
		if n != held[id] {
			concerned = append(concerned, id)
		}
	}
	return m.nextEvent(now), concerned
}

// nextEvent is when a model has something to do by its clock.
func (m *modelState) nextEvent(now time.Time) time.Time {
	end := m.frozen
	if m.scope.Breaker.Open && m.scope.Breaker.Prober == "" && m.until.After(end) {
		end = m.until
	}
	if end.After(now) {
		return end
	}
	return time.Time{}
}

// dealAll gives every worker its share of every model.
func (g *Models) dealAll(now time.Time) {
	for _, m := range g.states {
		g.distributeShares(m, now)
	}
}

// distributeShares gives workers their shares of what this node may ask of a model, by what
// they hold of it. If nothing limits it any more, they are told so once.
func (g *Models) distributeShares(m *modelState, now time.Time) {
	limited := m.hasLimits(now)
	if !limited && !m.told {
		return
	}
	m.told = limited
	var to []*Session
	var weights []int64
	for _, s := range g.sched.Sessions.rotate() {
		if slices.Contains(s.offer.Providers, m.providerName()) {
			to = append(to, s)
			weights = append(weights, 8*g.sched.Sessions.holdsOf(s, m.name)+int64(s.Slots)/4+1)
		}
	}
	parts := limit.Divide(m.share.Parts, weights)
	slots := limit.Divide(m.share.Slots, weights)
	for i, s := range to {
		share := mapreduce.LimitShare{Name: m.name, Part: 1}
		if limited {
			share.Rates, share.Left, share.For = m.effectiveRates(), m.leftNow(now), g.lease
			share.Part = float64(parts[i]) / float64(limit.Whole)
			share.Pause = max(0, m.frozen.Sub(now))
			share.OpenFor = m.openFor(g.sched.node, now)
		}
		if m.scope.Room > 0 {
			share.Calls = max(1, slots[i])
		}
		s.Peer.Send(&mapreduce.ToWorker{Limits: []mapreduce.LimitShare{share}})
	}
}

// openFor is for how long workers of this node are to make no call. Who probes
// lets one through; others wait for what comes of it.
func (m *modelState) openFor(node mapreduce.NodeID, now time.Time) time.Duration {
	if !m.scope.Breaker.Open || m.isProbeNode(node) {
		return 0
	}
	return max(m.until.Sub(now), time.Millisecond)
}

// leftNow is about what is left of the rates: what the vendor said, and what has
// come since. Before it has said anything in this process, all. Of rates of which
// it says nothing, half: who comes anew cannot know what others have taken, and as
// one after the other comes, each to a smaller part, these halves add up to about
// what a vendor lets through at once.
func (m *modelState) leftNow(now time.Time) mapreduce.Rates {
	left := func(left, told, rate int64) int64 {
		switch {
		case told == 0:
			return rate / 2
		case m.leftAt.IsZero():
			return rate
		}
		return min(left+int64(float64(told)*now.Sub(m.leftAt).Minutes()), rate)
	}
	rates, told := m.effectiveRates(), m.scope.Rates
	return mapreduce.Rates{
		Requests: left(m.left.Requests, told.Requests, rates.Requests),
		Input:    left(m.left.Input, told.Input, rates.Input),
		Output:   left(m.left.Output, told.Output, rates.Output),
	}
}

// LookAgain makes a model due whose pause, or whose breaker's time, is over.
func (g *Models) LookAgain(name string) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	g.modelStateOf(name).urgent = true
	g.Changed.Wake()
}

// LookAtAll makes all models due of which others may have something to tell.
func (g *Models) LookAtAll() {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	for _, m := range g.states {
		if m.looked && m.share != (limit.Share{}) {
			m.urgent = true
			g.Changed.Wake()
		}
	}
}
