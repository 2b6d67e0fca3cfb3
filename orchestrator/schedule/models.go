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

// knownModels returns what finds the models that one message of a worker names: what is
// known of one that a job here asks, or asked; nil of any other. Workers name models, and
// nobody is to be told of one, or remember it, because a worker made its name up. However
// many it makes up, the jobs are gone through once.
func (g *Models) knownModels() func(name string) *model.State {
	var asked map[string]bool
	return func(name string) *model.State {
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
		if !asked[name] && m.IsUnused(now) {
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
func (g *Models) wantOf(m *model.State) int64 {
	want := g.heldOf(m.Name)
	if g.sched.Grants.callSlots == 0 {
		return want // nor has it for the turn to probe
	}
	for _, r := range g.sched.runs {
		if r.spec != nil && r.running && breakerOf(r.spec) == m.Name && (len(r.queue) > 0 || !r.drained) {
			return max(want, g.sched.Sessions.providerSlots(m.Provider()))
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
	if !m.HasShare() {
		if !m.IsUrgent() && g.wantOf(m) > 0 {
			m.MarkUrgent()
			g.Changed.Wake()
		}
		return 0
	}
	most := m.MayRun(r.spec, g.sched.now())
	if most == math.MaxInt64 {
		return math.MaxInt
	}
	return int(max(0, most-g.heldOf(m.Name)))
}

// mayHold is how many units of r this node may hold at once by the limits of calls
// and of its model. It has no use for more slots of the job, and others may: those
// who probe, or have the rest of what the fleet may call at once.
func (g *Models) mayHold(r *Job) int64 {
	if r.spec == nil || !r.asks {
		return math.MaxInt64
	}
	return min(g.sched.Grants.callSlots, g.modelStateOf(breakerOf(r.spec)).MayHold(r.spec))
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
func (g *Models) hearLimits(known func(string) *model.State, notes []mapreduce.LimitNote, now time.Time) (urgent bool) {
	for i := range notes {
		if m := known(notes[i].Name); m != nil {
			urgent = m.Hear(&notes[i], now) || urgent
		}
	}
	return urgent
}

// hearBreakers takes what a worker says of its breakers, and reports whether the
// fleet's has to be opened.
func (g *Models) hearBreakers(known func(string) *model.State, breakers []mapreduce.BreakerState, now time.Time) (urgent bool) {
	for _, br := range breakers {
		m := known(br.Name)
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
	m := g.states[breakerOf(r.spec)]
	if m == nil {
		return false
	}
	until, news := m.EndProbe(rep, now)
	if !until.IsZero() {
		g.closeModelUntil(m.Name, until)
	}
	return news
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
		if m.IsUrgent() || all && !(m.IsSilent() && g.wantOf(m) == 0) {
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
// units, or fewer, than before. What others began is timed from now; if nobody else is
// left who could have, it is over.
func (g *Models) ApplyScope(name string, s *limit.Scope, now time.Time) (again time.Time, concerned []mapreduce.JobID) {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	m, held := g.modelStateOf(name), g.mayHoldOf(name)
	switch until, closed := m.Look(s, now); {
	case closed:
		for _, session := range g.sched.Sessions.bound {
			delete(session.breakers, name)
		}
	case !until.IsZero():
		g.closeModelUntil(name, until)
	}
	g.distributeShares(m, now)
	g.sched.activateAll()
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

// distributeShares gives workers their shares of what this node may ask of a model, by what
// they hold of it. If nothing limits it any more, they are told so once.
func (g *Models) distributeShares(m *model.State, now time.Time) {
	if !m.IsDealt(now) {
		return
	}
	var to []*Session
	var weights []int64
	for _, s := range g.sched.Sessions.rotate() {
		if slices.Contains(s.offer.Providers, m.Provider()) {
			to = append(to, s)
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
