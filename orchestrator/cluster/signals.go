package cluster

import (
	"cmp"
	"container/heap"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// Signals tell the loops of an orchestrator, and clients that watch, what has changed of
// jobs. Each kind is a set: saying a thing twice is saying it once. Nothing of them is needed
// after a crash. Polls find the changes that they miss.
type Signals struct {
	mu             sync.Mutex               // guards the variables below
	dueJobs        map[mapreduce.JobID]bool // true: the whole job; false: reduces with ended inputs alone
	failures       map[mapreduce.JobID]Failure
	endedInputs    map[mapreduce.JobID]map[records.WaitRef]bool // reduces whose inputs have ended
	inheritedTrees map[mapreduce.JobID]bool                     // trees of which other nodes may have forgotten some
	unsealed       map[mapreduce.JobID]bool                     // has checkpoints that are not sealed
	pendingResumes map[mapreduce.JobID]mapreduce.Resume         // that wait for units in their way
	watchers       map[mapreduce.JobID]*jobWatchers
	timers         timers
	sleeping       map[Sleeper]bool // in timers
	Feeds          Feeds            // what running units of watched jobs say; guards itself
	DueSignal      Signal           // there are due jobs
	TimerSignal    Signal           // the next timer is another
}

// A Signal wakes one waiter; signals that nobody waits for are kept, as one.
type Signal struct {
	once sync.Once
	c    chan struct{}
}

// C returns the channel from which one waiter receives each signal.
func (s *Signal) C() <-chan struct{} {
	s.once.Do(func() { s.c = make(chan struct{}, 1) })
	return s.c
}

// Wake wakes the waiter, or keeps the signal for the next one.
func (s *Signal) Wake() {
	s.C()
	select {
	case s.c <- struct{}{}:
	default:
	}
}

// MarkDue asks for a look at how far a job is.
func (s *Signals) MarkDue(id mapreduce.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requestLook(id, true)
}

// requestLook asks for a look at a job. The caller holds s.mu.
func (s *Signals) requestLook(id mapreduce.JobID, whole bool) {
	if s.dueJobs == nil {
		s.dueJobs = make(map[mapreduce.JobID]bool)
	}
	s.dueJobs[id] = s.dueJobs[id] || whole
	s.DueSignal.Wake()
}

// TakeDue returns the jobs that are due, each with whether it is to be looked at as a
// whole, and not only for reduces whose inputs have ended.
func (s *Signals) TakeDue() map[mapreduce.JobID]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := s.dueJobs
	s.dueJobs = nil
	return due
}

// A Failure is why a job is to end, as of an epoch.
type Failure struct {
	Epoch int64  // of the job; records.AnyEpoch is any
	Why   string // for the job's owner
}

// RequestFailure asks for a job to be failed. Of several reasons, the one of the newest epoch
// counts: the job is past the others.
func (s *Signals) RequestFailure(id mapreduce.JobID, f Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures == nil {
		s.failures = make(map[mapreduce.JobID]Failure)
	}
	if known, ok := s.failures[id]; !ok || known.Epoch <= f.Epoch {
		s.failures[id] = f
	}
	s.requestLook(id, true)
}

// PendingFailure returns why a job is to be failed, if it is.
func (s *Signals) PendingFailure(id mapreduce.JobID) (f Failure, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok = s.failures[id]
	return f, ok
}

// ClearFailure notes that a job need not be failed any more for a reason.
func (s *Signals) ClearFailure(id mapreduce.JobID, f Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failures[id] == f {
		delete(s.failures, id)
	}
}

// SetResume notes that a job is to be resumed.
func (s *Signals) SetResume(id mapreduce.JobID, r mapreduce.Resume) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pendingResumes == nil {
		s.pendingResumes = make(map[mapreduce.JobID]mapreduce.Resume)
	}
	s.pendingResumes[id] = r
}

// PendingResume returns how a job is to be resumed, if it is.
func (s *Signals) PendingResume(id mapreduce.JobID) (mapreduce.Resume, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.pendingResumes[id]
	return r, ok
}

// ClearResume notes that a job is not to be resumed.
func (s *Signals) ClearResume(id mapreduce.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pendingResumes, id)
}

// NoteEndedInputs asks for a look at reduces of which inputs have ended.
func (s *Signals) NoteEndedInputs(id mapreduce.JobID, refs []records.WaitRef) {
	if len(refs) == 0 {
		return
	}
	s.KeepEndedInputs(id, refs)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requestLook(id, false)
}

// KeepEndedInputs keeps reduces whose inputs have ended for the next look at a job.
func (s *Signals) KeepEndedInputs(id mapreduce.JobID, refs []records.WaitRef) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.endedInputs == nil {
		s.endedInputs = make(map[mapreduce.JobID]map[records.WaitRef]bool)
	}
	if s.endedInputs[id] == nil {
		s.endedInputs[id] = make(map[records.WaitRef]bool, len(refs))
	}

	for _, r := range refs {
		s.endedInputs[id][r] = true
	}
}

// RequestTreeLook asks for a look at all reduces of a job's tree.
func (s *Signals) RequestTreeLook(id mapreduce.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inheritedTrees == nil {
		s.inheritedTrees = make(map[mapreduce.JobID]bool)
	}
	s.inheritedTrees[id] = true
}

// TakeTreeLook reports whether all reduces of a job's tree are to be looked at, and
// forgets that.
func (s *Signals) TakeTreeLook(id mapreduce.JobID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.inheritedTrees[id]
	delete(s.inheritedTrees, id)
	return found
}

// TakeEndedInputs returns the reduces of a job that are to be looked at.
func (s *Signals) TakeEndedInputs(id mapreduce.JobID) []records.WaitRef {
	s.mu.Lock()
	defer s.mu.Unlock()
	refs := slices.Collect(maps.Keys(s.endedInputs[id]))
	delete(s.endedInputs, id)
	slices.SortFunc(refs, func(a, b records.WaitRef) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Index, b.Index))
	})
	return refs
}

// NotifyWatchers wakes those who watch a job, and has its new checkpoints sealed.
func (s *Signals) NotifyWatchers(id mapreduce.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unsealed == nil {
		s.unsealed = make(map[mapreduce.JobID]bool)
	}
	s.unsealed[id] = true
	s.wakeWatchers(id)
}

// WakeWatchers has those who watch a job look again, for what its units say of themselves.
func (s *Signals) WakeWatchers(id mapreduce.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakeWatchers(id)
}

// wakeWatchers wakes those who watch a job. The caller holds s.mu.
func (s *Signals) wakeWatchers(id mapreduce.JobID) {
	if w := s.watchers[id]; w != nil {
		close(w.changed)
		delete(s.watchers, id)
	}
}

// A jobWatchers is what those wait for who watch a job.
type jobWatchers struct {
	changed chan struct{} // closes at the next change
	waiting int
}

// TakeUnsealed returns the jobs to seal whose turn it is.
func (s *Signals) TakeUnsealed(turn func(mapreduce.JobID) bool) []mapreduce.JobID {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due []mapreduce.JobID
	for id := range s.unsealed {
		if turn(id) {
			due = append(due, id)
			delete(s.unsealed, id)
		}
	}
	return due
}

// Watch returns a channel that closes at the job's next change. Whoever stops
// waiting calls done.
func (s *Signals) Watch(id mapreduce.JobID) (changed <-chan struct{}, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.watchers == nil {
		s.watchers = make(map[mapreduce.JobID]*jobWatchers)
	}

	w := s.watchers[id]
	if w == nil {
		w = &jobWatchers{changed: make(chan struct{})}
		s.watchers[id] = w
	}

	w.waiting++
	return w.changed, func() { s.unwatchJob(id, w) }
}

func (s *Signals) unwatchJob(id mapreduce.JobID, w *jobWatchers) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.waiting--; w.waiting == 0 && s.watchers[id] == w {
		delete(s.watchers, id)
	}
}

// CallAt has fn called when t has come.
func (s *Signals) CallAt(t time.Time, fn func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	heap.Push(&s.timers, timer{at: t, fn: fn})
	s.TimerSignal.Wake()
}

// A Sleeper is a unit that waits until its time has come.
type Sleeper struct {
	Job             mapreduce.JobID
	records.Sleeper // the unit of the job, and its attempt
}

// SleepUntil has a unit woken when t has come, unless its sleep is timed already.
func (s *Signals) SleepUntil(t time.Time, sleeper Sleeper) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sleeping[sleeper] {
		return
	}
	if s.sleeping == nil {
		s.sleeping = make(map[Sleeper]bool)
	}

	s.sleeping[sleeper] = true
	heap.Push(&s.timers, timer{at: t, sleeper: sleeper})
	s.TimerSignal.Wake()
}

// WakeLater has a unit of a job woken when it has slept long enough from now, unless its
// sleep is timed already.
func (s *Signals) WakeLater(id mapreduce.JobID, ref records.SleeperRef) {
	s.SleepUntil(time.Now().Add(ref.For), Sleeper{Job: id, Sleeper: ref.Sleeper})
}

// A Due is what is due at a time.
type Due struct {
	Calls []func(context.Context)               // to be called
	Units map[mapreduce.JobID][]records.Sleeper // that have slept long enough
	Next  time.Duration                         // until there is more
}

// TakeTimers returns what is due at now.
func (s *Signals) TakeTimers(now time.Time) Due {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := Due{Units: make(map[mapreduce.JobID][]records.Sleeper), Next: time.Hour}

	for len(s.timers) > 0 && !s.timers[0].at.After(now) {
		t := heap.Pop(&s.timers).(timer)
		if t.fn != nil {
			due.Calls = append(due.Calls, t.fn)
			continue
		}
		delete(s.sleeping, t.sleeper)
		due.Units[t.sleeper.Job] = append(due.Units[t.sleeper.Job], t.sleeper.Sleeper)
	}

	if len(s.timers) > 0 {
		due.Next = s.timers[0].at.Sub(now)
	}
	return due
}

// A timer is a call, or a unit whose sleep ends.
type timer struct {
	at      time.Time
	fn      func(context.Context)
	sleeper Sleeper
}

// timers is a heap by time.
type timers []timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)        { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	*t = old[:len(old)-1]
	return last
}
