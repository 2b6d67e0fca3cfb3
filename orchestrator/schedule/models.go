package schedule

import (
	"math"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/notify"
	"github.com/coditect/mapreduce/orchestrator/schedule/model"
	"github.com/coditect/mapreduce/store/jobs/limit"
)

// Models are what may be asked of models: limits, pauses and breakers. The scheduler's mu
// guards them.
type Models struct {
	sched *Scheduler

	states  map[string]*model.State // by provider and model
	limits  func(name string) model.Limits
	lease   time.Duration // that shares of their limits are good for
	Changed notify.Signal // models have something to tell the fleet, or to ask it
}

// modelStateOf returns what is known of a model. The caller holds the scheduler's mu.
func (g *Models) modelStateOf(name string) *model.State {
	m := g.states[name]
	if m == nil {
		m = model.New(name, g.sched.node, g.limits(name))
		g.states[name] = m
	}
	return m
}

// knownModel returns what is known of a model that a worker names, if a job here asks it,
// or asked it; nil of any other. A name that a worker made up must not be remembered, or
// passed on.
func (g *Models) knownModel(name string) *model.State {
	if m := g.states[name]; m != nil {
		return m
	}
	if u := g.sched.uses[name]; u == nil || u.asking == 0 {
		return nil
	}
	return g.modelStateOf(name)
}

// A modelUse is what the jobs on the scheduler have to do with a model. There may be
// thousands of jobs, and each unit that ends may change what they may ask of it.
type modelUse struct {
	jobs   map[mapreduce.JobID]*Job
	asking int   // of these jobs ask it
	held   int64 // units that this node holds of those whose first model it is
	spare  int64 // units that this node holds of the others, which may fall over to it
}

// enterModel counts a job, whose spec has been set and whose units are not counted, among
// those of its model. The caller holds b.mu.
func (b *Scheduler) enterModel(r *Job) {
	r.models = r.spec.ModelNames()
	r.model = r.models[0]

	for _, name := range r.models {
		u := b.uses[name]
		if u == nil {
			u = &modelUse{jobs: make(map[mapreduce.JobID]*Job)}
			b.uses[name] = u
		}
		u.jobs[r.ID] = r
		if r.asks {
			u.asking++
		}
	}

	b.addAsking(r, 1)
}

// leaveModel takes a job whose units are not counted off those of its model, if it has
// one. The caller holds b.mu.
func (b *Scheduler) leaveModel(r *Job) {
	if len(r.models) == 0 {
		return
	}

	b.addAsking(r, -1)
	for _, name := range r.models {
		u := b.uses[name]
		delete(u.jobs, r.ID)
		if r.asks {
			u.asking--
		}
		if len(u.jobs) == 0 {
			delete(b.uses, name)
		}
	}

	r.model, r.models = "", nil
}

// addHeldOf counts n more units that this node holds of a job among those of its models. The caller
// holds b.mu.
func (b *Scheduler) addHeldOf(r *Job, n int) {
	for i, name := range r.models {
		if i == 0 {
			b.uses[name].held += int64(n)
		} else {
			b.uses[name].spare += int64(n)
		}
	}
}

// addAsking counts a job, if it may run and asks models, n times more among those of its
// provider. The caller holds b.mu.
func (b *Scheduler) addAsking(r *Job, n int) {
	if !r.running || !r.asks {
		return
	}
	provider := r.spec.Provider
	if b.asking[provider] += n; b.asking[provider] == 0 {
		delete(b.asking, provider)
	}
}

// jobsOf returns the jobs of a model. The caller holds the scheduler's mu.
func (g *Models) jobsOf(name string) map[mapreduce.JobID]*Job {
	if u := g.sched.uses[name]; u != nil {
		return u.jobs
	}
	return nil
}

// forgetUnused forgets the models that no job here asks any more, and of which there is
// nothing to tell.
func (g *Models) forgetUnused(now time.Time) {
	for name, m := range g.states {
		if g.sched.uses[name] == nil && m.IsUnused(now) {
			delete(g.states, name)
			for _, s := range g.sched.Sessions.bound {
				delete(s.breakers, name)
			}
		}
	}
}

// heldOf counts the units that this node holds of the jobs whose first model it is. The caller holds
// the scheduler's mu, as for all that follows here.
func (g *Models) heldOf(name string) int64 {
	if u := g.sched.uses[name]; u != nil {
		return u.held
	}
	return 0
}

// wantOf is how many calls at once this node has use for. Any unit may fall over to a later model of
// its job, and then has no time to ask for a share of it.
func (g *Models) wantOf(m *model.State) int64 {
	want := g.heldOf(m.Name)
	if u := g.sched.uses[m.Name]; u != nil {
		want += u.spare
	}

	if g.sched.Grants.callSlots == 0 {
		return want // nor has it for the turn to probe
	}

	for _, r := range g.jobsOf(m.Name) {
		if r.running && (len(r.queue) > 0 || !r.drained) {
			return max(want, g.sched.Sessions.providerSlots(m.Provider()))
		}
	}
	return want
}

// modelRoom is how many more units of r the limits of its models let begin, all of them together. While
// this node has no share of one, it asks for it, and none may there.
func (g *Models) modelRoom(r *Job) int {
	if r.spec == nil || !r.asks {
		return math.MaxInt
	}

	room := int64(0)
	for _, name := range r.models {
		m := g.modelStateOf(name)
		if !m.HasShare() {
			if !m.IsUrgent() && g.wantOf(m) > 0 {
				m.MarkUrgent()
				g.Changed.Wake()
			}
			continue
		}

		most := m.MayRun(r.spec, g.sched.now())
		if most == math.MaxInt64 {
			return math.MaxInt
		}
		room += most - g.heldOf(name)
	}

	return int(max(0, room))
}

// mayHold is how many units of r this node may hold at once by the limits of calls
// and of its model. It has no use for more slots of the job, and others may: those
// who probe, or have the rest of what the fleet may call at once.
func (g *Models) mayHold(r *Job) int64 {
	if r.spec == nil || !r.asks {
		return math.MaxInt64
	}

	most := int64(0)
	for _, name := range r.models {
		more := g.modelStateOf(name).MayHold(r.spec)
		if more == math.MaxInt64 {
			return g.sched.Grants.callSlots
		}
		most += more
	}

	return min(g.sched.Grants.callSlots, most)
}

// mayHoldOf returns that of each running job of a model, as far as the job goes.
func (g *Models) mayHoldOf(name string) map[mapreduce.JobID]int64 {
	of := make(map[mapreduce.JobID]int64)
	for id, r := range g.jobsOf(name) {
		if r.running && r.asks {
			of[id] = min(g.mayHold(r), int64(r.spec.Parallelism))
		}
	}
	return of
}

// hearLimits takes what a worker says of models, and reports whether other nodes have to
// know at once.
func (g *Models) hearLimits(notes []mapreduce.LimitNote, now time.Time) (urgent bool) {
	for i := range notes {
		if m := g.knownModel(notes[i].Name); m != nil {
			urgent = m.Hear(&notes[i], now) || urgent
		}
	}
	return urgent
}

// hearManners takes what a worker says that servers refuse, passes it on to the other
// workers, and reports whether other nodes have to know.
func (g *Models) hearManners(from *Session, all []mapreduce.ModelManners) (urgent bool) {
	for i := range all {
		if m := g.knownModel(all[i].Name); m != nil && m.HearManners(&all[i]) {
			g.tellManners(m, all[i:i+1], from)
			urgent = true
		}
	}
	return urgent
}

// tellManners sends the workers that can ask a model what its servers refuse, but for the
// one that said so.
func (g *Models) tellManners(m *model.State, all []mapreduce.ModelManners, but *Session) {
	if len(all) == 0 {
		return
	}
	for _, s := range g.sched.Sessions.bound {
		if s != but && slices.Contains(s.offer.Providers, m.Provider()) {
			s.Peer.Send(&mapreduce.ToWorker{Manners: all})
		}
	}
}

// hearBreakers takes what a worker says of its breakers, and reports whether the
// fleet's has to be opened.
func (g *Models) hearBreakers(breakers []mapreduce.BreakerState, now time.Time) (urgent bool) {
	for _, br := range breakers {
		m := g.knownModel(br.Name)
		if m == nil {
			continue
		}
		if until, opened := m.HearBreaker(br.OpenFor, now); opened {
			g.closeModelUntil(m.Name, until)
			urgent = true
		}
	}
	return urgent
}

// closeModelUntil keeps the units of a model from workers until then.
func (g *Models) closeModelUntil(name string, until time.Time) {
	for _, s := range g.sched.Sessions.bound {
		s.breakers[name] = until
	}
}

// noteProbeOutcome takes how a unit ended of a model whose breaker is probed here, and
// reports whether the fleet has to know.
func (g *Models) noteProbeOutcome(r *Job, rep *mapreduce.Report, now time.Time) bool {
	if r.spec == nil {
		return false
	}

	urgent := false
	names := r.spec.ModelNames()
	for _, name := range names {
		m := g.states[name]
		if m == nil {
			continue
		}

		// A report of a unit that could ask several models may say nothing of this one.
		told, says := rep, true
		if len(names) > 1 {
			told, says = outcomeOf(rep, name)
		}
		if !says {
			continue
		}

		until, news := m.EndProbe(told, now)
		if !until.IsZero() {
			g.closeModelUntil(name, until)
		}
		urgent = urgent || news
	}

	return urgent
}

// outcomeOf returns what the report of a unit that could ask several models says of one of them: that
// it answered, or that it failed. It is false if the report says neither.
func outcomeOf(rep *mapreduce.Report, model string) (*mapreduce.Report, bool) {
	of := &mapreduce.Report{Calls: rep.Calls}

	switch {
	case mapreduce.Answered(rep.Models, model):
		of.Outcome = mapreduce.Done
	case slices.Contains(rep.Failing, model):
		of.Outcome, of.Class = mapreduce.Errored, mapreduce.Retryable
	default:
		return nil, false
	}

	of.Calls = max(of.Calls, 1)
	return of, true
}

// Due returns the models of which the fleet is to be told or asked: those
// with news, or all that are in use.
func (g *Models) Due(all bool) []string {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()

	// A model that was not asked before has no state yet.
	for name, u := range g.sched.uses {
		if u.asking > 0 {
			g.modelStateOf(name)
		}
	}

	if all {
		g.forgetUnused(g.sched.now())
	}

	var due []string
	for name, m := range g.states {
		if m.IsUrgent() || all && !(m.IsSilent() && g.wantOf(m) == 0) {
			due = append(due, name)
		}
	}

	slices.Sort(due)
	return due
}

// TakeNote returns the note on a model for the fleet.
func (g *Models) TakeNote(name string, most int64) limit.Note {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	m := g.modelStateOf(name)
	return m.TakeNote(most, g.wantOf(m), g.heldOf(name), g.sched.Grants.callSlots > 0, g.sched.now())
}

// PutBackNote keeps what could not be told.
func (g *Models) PutBackNote(name string, n limit.Note) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	g.modelStateOf(name).PutBack(n)
}

// ApplyScope takes what the fleet knows of a model, and returns when there is
// something to do about it again, zero being never, and the jobs that may hold more
// units, or fewer, than before. See model.State.Look for what others began.
func (g *Models) ApplyScope(name string, s *limit.Scope, now time.Time) (again time.Time, concerned []mapreduce.JobID) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()

	m, held := g.modelStateOf(name), g.mayHoldOf(name)
	probed := m.IsProber()

	switch until, closed := m.Look(s, now); {
	// Units may begin: the breaker has closed, or it is this node's turn to probe.
	case closed, m.IsProber() && !probed:
		for _, session := range g.sched.Sessions.bound {
			delete(session.breakers, name)
		}
	case !until.IsZero():
		g.closeModelUntil(name, until)
	}

	if m.IsUrgent() {
		g.Changed.Wake()
	}
	g.tellManners(m, m.LookAtManners(s), nil)
	g.distributeShares(m, now)

	for _, r := range g.jobsOf(name) {
		g.sched.fairQueue.add(r)
	}
	g.sched.wake.Broadcast()

	for id, n := range g.mayHoldOf(name) {
		if n != held[id] {
			concerned = append(concerned, id)
		}
	}
	return m.NextEvent(now), concerned
}

// dealAll gives every worker its share of every model.
func (g *Models) dealAll(now time.Time) {
	for _, m := range g.states {
		g.distributeShares(m, now)
	}
}

// welcome tells s, which is new, of which models there are no limits, and what their servers refuse,
// and gives every worker its share of the others.
func (g *Models) welcome(s *Session, now time.Time) {
	var lifted []mapreduce.LimitShare
	var refused []mapreduce.ModelManners
	for _, m := range g.states {
		if slices.Contains(s.offer.Providers, m.Provider()) {
			refused = append(refused, m.Manners()...)
		}
		if share, ok := m.Lifted(now); ok && slices.Contains(s.offer.Providers, m.Provider()) {
			lifted = append(lifted, share)
		}
	}

	if len(lifted)+len(refused) > 0 {
		s.Peer.Send(&mapreduce.ToWorker{Limits: lifted, Manners: refused})
	}

	g.dealAll(now)
}

// distributeShares gives workers their shares of what this node may ask of a model, by what
// they hold of it. If nothing limits it any more, they get a share that says so, once.
func (g *Models) distributeShares(m *model.State, now time.Time) {
	if !m.IsDealt(now) {
		return
	}

	var to []*Session
	var weights []int64
	for _, s := range g.sched.Sessions.rotate() {
		if slices.Contains(s.offer.Providers, m.Provider()) {
			to = append(to, s)
			// Mostly by what a worker holds, and a little by its slots, as it may be given
			// more.
			weights = append(weights, 8*g.sched.Sessions.holdsOf(s, m.Name)+int64(s.Slots)/4+1)
		}
	}

	for i, share := range m.Deal(weights, g.lease, now) {
		to[i].Peer.Send(&mapreduce.ToWorker{Limits: []mapreduce.LimitShare{share}})
	}
}

// LookAgain makes a model due whose pause, or whose breaker's time, is over.
func (g *Models) LookAgain(name string) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	g.modelStateOf(name).MarkUrgent()
	g.Changed.Wake()
}

// lookAgainFor makes the model of a job due that is new, or has come to another stage: what
// this node may ask of the model may be what others had use for. The caller holds the
// scheduler's mu.
func (g *Models) lookAgainFor(r *Job) {
	for _, name := range r.models {
		if m := g.states[name]; m != nil && r.asks && m.HasShare() {
			m.MarkUrgent()
			g.Changed.Wake()
		}
	}
}

// LookAtAll makes all models due of which others may have something to tell.
func (g *Models) LookAtAll() {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	for _, m := range g.states {
		if m.HasShare() {
			m.MarkUrgent()
			g.Changed.Wake()
		}
	}
}
