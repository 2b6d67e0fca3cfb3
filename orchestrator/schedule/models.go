package schedule

import (
	"math"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/schedule/model"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store/jobs/limit"
)

// Models are what may be asked of models: limits, pauses and breakers. The scheduler's mu
// guards them.
type Models struct {
	sched *Scheduler

	states  map[string]*model.State // by provider and model
	limits  func(name string) model.Limits
	lease   time.Duration  // that shares of their limits are good for
	Changed cluster.Signal // models have something to tell the fleet, or to ask it
}

// modelStateOf returns what is known of a model. The caller holds the scheduler's mu.
func (m *Models) modelStateOf(name string) *model.State {
	s := m.states[name]
	if s == nil {
		s = model.New(name, m.sched.node, m.limits(name))
		m.states[name] = s
	}
	return s
}

// knownModel returns what is known of a model that a worker names, if a job here asks it,
// or asked it; nil of any other. A name that a worker made up must not be remembered, or
// passed on.
func (m *Models) knownModel(name string) *model.State {
	if s := m.states[name]; s != nil {
		return s
	}
	if !m.sched.jobs.isAsked(name) {
		return nil
	}
	return m.modelStateOf(name)
}

// forgetUnused forgets the models that no job here asks any more, and of which there is
// nothing to tell.
func (m *Models) forgetUnused(now time.Time) {
	for name, s := range m.states {
		if len(m.sched.jobs.ofModel(name)) == 0 && s.IsUnused(now) {
			delete(m.states, name)
			m.sched.workers.CloseBreaker(name)
		}
	}
}

// wantOf is how many calls at once this node has use for. Any unit may fall over to a later model of
// its job, and then has no time to ask for a share of it.
func (m *Models) wantOf(s *model.State) int64 {
	want := m.sched.jobs.heldOf(s.Name) + m.sched.jobs.spareOf(s.Name)
	if m.sched.calls.Slots() == 0 { // nor has it use for the turn to probe
		return want
	}

	if m.sched.jobs.hasWaiting(s.Name) {
		return max(want, m.sched.workers.ProviderSlots(s.Provider()))
	}
	return want
}

// modelRoom is how many more units of j the limits of its models let begin, all of them together. While
// this node has no share of one, it asks for it, and none may there.
func (m *Models) modelRoom(j *Job) int {
	if j.spec == nil || !j.asks {
		return math.MaxInt
	}

	room := int64(0)
	for _, name := range j.models {
		s := m.modelStateOf(name)
		if !s.HasShare() {
			if !s.IsUrgent() && m.wantOf(s) > 0 {
				s.MarkUrgent()
				m.Changed.Wake()
			}
			continue
		}

		most := s.MayRun(j.spec, m.sched.now())
		if most == math.MaxInt64 {
			return math.MaxInt
		}
		room += most - m.sched.jobs.heldOf(name)
	}

	return int(max(0, room))
}

// mayHold is how many units of j this node may hold at once by the limits of calls
// and of its model. It has no use for more slots of the job, and others may: those
// who probe, or have the rest of what the fleet may call at once.
func (m *Models) mayHold(j *Job) int64 {
	if j.spec == nil || !j.asks {
		return math.MaxInt64
	}

	most := int64(0)
	for _, name := range j.models {
		more := m.modelStateOf(name).MayHold(j.spec)
		if more == math.MaxInt64 {
			return m.sched.calls.Slots()
		}
		most += more
	}

	return min(m.sched.calls.Slots(), most)
}

// mayHoldOf returns that of each running job of a model, as far as the job goes.
func (m *Models) mayHoldOf(name string) map[mapreduce.JobID]int64 {
	of := make(map[mapreduce.JobID]int64)
	for id, j := range m.sched.jobs.ofModel(name) {
		if j.running && j.asks {
			of[id] = min(m.mayHold(j), int64(j.spec.Parallelism))
		}
	}
	return of
}

// hearLimits takes what a worker says of models, and reports whether other nodes have to
// know at once.
func (m *Models) hearLimits(notes []protocol.LimitNote, now time.Time) (urgent bool) {
	for i := range notes {
		if s := m.knownModel(notes[i].Name); s != nil {
			urgent = s.Hear(&notes[i], now) || urgent
		}
	}
	return urgent
}

// hearManners takes what a worker says that servers refuse, passes it on to the other
// workers, and reports whether other nodes have to know.
func (m *Models) hearManners(from *workers.Session, all []protocol.ModelManners) (urgent bool) {
	for i := range all {
		if s := m.knownModel(all[i].Name); s != nil && s.HearManners(&all[i]) {
			m.tellManners(s, all[i:i+1], from)
			urgent = true
		}
	}
	return urgent
}

// tellManners sends the workers that can ask a model what its servers refuse, but for the
// one that said so.
func (m *Models) tellManners(s *model.State, all []protocol.ModelManners, but *workers.Session) {
	if len(all) > 0 {
		m.sched.workers.Tell(s.Provider(), &protocol.ToWorker{Manners: all}, but)
	}
}

// noteMetBreaker keeps the units of a model from session, which has handed one back because a breaker
// is open. That is not for longer than a lease: the worker tells of the breaker in its
// heartbeats, or knows of it by this node, which may have told it meanwhile that it has closed.
func (m *Models) noteMetBreaker(session *workers.Session, rep *protocol.Report) {
	until := session.Seen().Add(min(rep.RetryAfter, m.lease))
	if m.knownModel(rep.Breaker) != nil && until.After(session.BreakerUntil(rep.Breaker)) {
		session.NoteBreaker(rep.Breaker, until)
	}
}

// hearBreakers takes what a worker says of its breakers, which keep units of these models
// from it. It reports whether the fleet's has to be opened.
func (m *Models) hearBreakers(session *workers.Session, breakers []protocol.BreakerState) (urgent bool) {
	for _, br := range breakers {
		s := m.knownModel(br.Name)
		if s == nil {
			continue
		}

		session.NoteBreaker(br.Name, session.Seen().Add(br.OpenFor))
		if until, opened := s.HearBreaker(br.OpenFor, session.Seen()); opened {
			m.sched.workers.OpenBreaker(s.Name, until)
			urgent = true
		}
	}
	return urgent
}

// noteProbeOutcome takes how a unit ended of a model whose breaker is probed here, and
// reports whether the fleet has to know.
func (m *Models) noteProbeOutcome(j *Job, rep *protocol.Report, now time.Time) bool {
	if j.spec == nil {
		return false
	}

	urgent := false
	names := j.spec.ModelNames()
	for _, name := range names {
		s := m.states[name]
		if s == nil {
			continue
		}

		// A report of a unit that could ask several models may say nothing of this one.
		told, says := rep, true
		if len(names) > 1 {
			told, says = model.OutcomeOf(rep, name)
		}
		if !says {
			continue
		}

		until, news := s.EndProbe(told, now)
		if !until.IsZero() {
			m.sched.workers.OpenBreaker(name, until)
		}
		urgent = urgent || news
	}

	return urgent
}

// Due returns the models of which the fleet is to be told or asked: those
// with news, or all that are in use.
func (m *Models) Due(all bool) []string {
	m.sched.mu.Lock()
	defer m.sched.mu.Unlock()

	// A model that was not asked before has no state yet.
	for _, name := range m.sched.jobs.askedModels() {
		m.modelStateOf(name)
	}

	if all {
		m.forgetUnused(m.sched.now())
	}

	var due []string
	for name, s := range m.states {
		if s.IsUrgent() || all && !(s.IsSilent() && m.wantOf(s) == 0) {
			due = append(due, name)
		}
	}

	slices.Sort(due)
	return due
}

// TakeNote returns the note on a model for the fleet.
func (m *Models) TakeNote(name string, most int64) limit.Note {
	m.sched.mu.Lock()
	defer m.sched.mu.Unlock()
	s := m.modelStateOf(name)
	return s.TakeNote(most, m.wantOf(s), m.sched.jobs.heldOf(name), m.sched.calls.Slots() > 0, m.sched.now())
}

// PutBackNote keeps what could not be told.
func (m *Models) PutBackNote(name string, n limit.Note) {
	m.sched.mu.Lock()
	defer m.sched.mu.Unlock()
	m.modelStateOf(name).PutBack(n)
}

// ApplyScope takes what the fleet knows of a model, and returns when there is
// something to do about it again, zero being never, and the jobs that may hold more
// units, or fewer, than before. See model.State.Look for what others began.
func (m *Models) ApplyScope(name string, scope *limit.Scope, now time.Time) (again time.Time, concerned []mapreduce.JobID) {
	m.sched.mu.Lock()
	defer m.sched.mu.Unlock()

	s, held := m.modelStateOf(name), m.mayHoldOf(name)
	probed := s.IsProber()

	switch until, closed := s.Look(scope, now); {
	// Units may begin: the breaker has closed, or it is this node's turn to probe.
	case closed, s.IsProber() && !probed:
		m.sched.workers.CloseBreaker(name)
	case !until.IsZero():
		m.sched.workers.OpenBreaker(name, until)
	}

	if s.IsUrgent() {
		m.Changed.Wake()
	}
	m.tellManners(s, s.LookAtManners(scope), nil)
	m.distributeShares(s, now)

	for _, j := range m.sched.jobs.ofModel(name) {
		m.sched.fairQueue.Add(j)
	}
	m.sched.wake.Broadcast()

	for id, n := range m.mayHoldOf(name) {
		if n != held[id] {
			concerned = append(concerned, id)
		}
	}
	return s.NextEvent(now), concerned
}

// dealAll gives every worker its share of every model.
func (m *Models) dealAll(now time.Time) {
	for _, s := range m.states {
		m.distributeShares(s, now)
	}
}

// welcome tells session, which is new, of which models there are no limits, and what their servers refuse,
// and gives every worker its share of the others.
func (m *Models) welcome(session *workers.Session, now time.Time) {
	var lifted []protocol.LimitShare
	var refused []protocol.ModelManners
	for _, s := range m.states {
		if session.HasProvider(s.Provider()) {
			refused = append(refused, s.Manners()...)
		}
		if share, ok := s.Lifted(now); ok && session.HasProvider(s.Provider()) {
			lifted = append(lifted, share)
		}
	}

	if len(lifted)+len(refused) > 0 {
		session.Peer.Send(&protocol.ToWorker{Limits: lifted, Manners: refused})
	}

	m.dealAll(now)
}

// distributeShares gives workers their shares of what this node may ask of a model, by what
// they hold of it. If nothing limits it any more, they get a share that says so, once.
func (m *Models) distributeShares(s *model.State, now time.Time) {
	if !s.IsDealt(now) {
		return
	}

	var to []*workers.Session
	var weights []int64
	for _, session := range m.sched.workers.Rotate() {
		if session.HasProvider(s.Provider()) {
			to = append(to, session)
			// Mostly by what a worker holds, and a little by its slots, as it may be given
			// more.
			weights = append(weights, 8*m.sched.jobs.heldBy(session, s.Name)+int64(session.Slots)/4+1)
		}
	}

	for i, share := range s.Deal(weights, m.lease, now) {
		to[i].Peer.Send(&protocol.ToWorker{Limits: []protocol.LimitShare{share}})
	}
}

// LookAgain makes a model due whose pause, or whose breaker's time, is over.
func (m *Models) LookAgain(name string) {
	m.sched.mu.Lock()
	defer m.sched.mu.Unlock()
	m.modelStateOf(name).MarkUrgent()
	m.Changed.Wake()
}

// lookAgainFor makes the model of a job due that is new, or has come to another stage: what
// this node may ask of the model may be what others had use for. The caller holds the
// scheduler's mu.
func (m *Models) lookAgainFor(j *Job) {
	for _, name := range j.models {
		if s := m.states[name]; s != nil && j.asks && s.HasShare() {
			s.MarkUrgent()
			m.Changed.Wake()
		}
	}
}

// LookAtAll makes all models due of which others may have something to tell.
func (m *Models) LookAtAll() {
	m.sched.mu.Lock()
	defer m.sched.mu.Unlock()
	for _, s := range m.states {
		if s.HasShare() {
			s.MarkUrgent()
			m.Changed.Wake()
		}
	}
}
