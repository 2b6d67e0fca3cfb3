// Package notify signals changes of jobs to the loops of an orchestrator and to clients
// that watch. Nothing in it is needed after a crash. Polls find the changes that it
// misses.
package notify

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

// Jobs say that something is due, to whoever waits for it. Each kind is a
// set: saying a thing twice is saying it once.
type Jobs struct {
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
func (j *Jobs) MarkDue(id mapreduce.JobID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requestLook(id, true)
}

// requestLook asks for a look at a job. The caller holds j.mu.
func (j *Jobs) requestLook(id mapreduce.JobID, whole bool) {
	if j.dueJobs == nil {
		j.dueJobs = make(map[mapreduce.JobID]bool)
	}
	j.dueJobs[id] = j.dueJobs[id] || whole
	j.DueSignal.Wake()
}

// TakeDue returns the jobs that are due, each with whether it is to be looked at as a
// whole, and not only for reduces whose inputs have ended.
func (j *Jobs) TakeDue() map[mapreduce.JobID]bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	due := j.dueJobs
	j.dueJobs = nil
	return due
}

// A Failure is why a job is to end, as of an epoch.
type Failure struct {
	Epoch int64  // of the job; records.AnyEpoch is any
	Why   string // for the job's owner
}

// RequestFailure asks for a job to be failed. Of several reasons, the one of the newest epoch
// counts: the job is past the others.
func (j *Jobs) RequestFailure(id mapreduce.JobID, f Failure) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failures == nil {
		j.failures = make(map[mapreduce.JobID]Failure)
	}
	if known, ok := j.failures[id]; !ok || known.Epoch <= f.Epoch {
		j.failures[id] = f
	}
	j.requestLook(id, true)
}

// PendingFailure returns why a job is to be failed, if it is.
func (j *Jobs) PendingFailure(id mapreduce.JobID) (f Failure, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f, ok = j.failures[id]
	return f, ok
}

// ClearFailure notes that a job need not be failed any more for a reason.
func (j *Jobs) ClearFailure(id mapreduce.JobID, f Failure) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failures[id] == f {
		delete(j.failures, id)
	}
}

// SetResume notes that a job is to be resumed.
func (j *Jobs) SetResume(id mapreduce.JobID, r mapreduce.Resume) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.pendingResumes == nil {
		j.pendingResumes = make(map[mapreduce.JobID]mapreduce.Resume)
	}
	j.pendingResumes[id] = r
}

// PendingResume returns how a job is to be resumed, if it is.
func (j *Jobs) PendingResume(id mapreduce.JobID) (mapreduce.Resume, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r, ok := j.pendingResumes[id]
	return r, ok
}

// ClearResume notes that a job is not to be resumed.
func (j *Jobs) ClearResume(id mapreduce.JobID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.pendingResumes, id)
}

// NoteEndedInputs asks for a look at reduces of which inputs have ended.
func (j *Jobs) NoteEndedInputs(id mapreduce.JobID, refs []records.WaitRef) {
	if len(refs) == 0 {
		return
	}
	j.KeepEndedInputs(id, refs)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requestLook(id, false)
}

// KeepEndedInputs keeps reduces whose inputs have ended for the next look at a job.
func (j *Jobs) KeepEndedInputs(id mapreduce.JobID, refs []records.WaitRef) {
	j.mu.Lock()
	defer j.mu.Unlock()

	if j.endedInputs == nil {
		j.endedInputs = make(map[mapreduce.JobID]map[records.WaitRef]bool)
	}
	if j.endedInputs[id] == nil {
		j.endedInputs[id] = make(map[records.WaitRef]bool, len(refs))
	}

	for _, r := range refs {
		j.endedInputs[id][r] = true
	}
}

// RequestTreeLook asks for a look at all reduces of a job's tree.
func (j *Jobs) RequestTreeLook(id mapreduce.JobID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.inheritedTrees == nil {
		j.inheritedTrees = make(map[mapreduce.JobID]bool)
	}
	j.inheritedTrees[id] = true
}

// TakeTreeLook reports whether all reduces of a job's tree are to be looked at, and
// forgets that.
func (j *Jobs) TakeTreeLook(id mapreduce.JobID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	found := j.inheritedTrees[id]
	delete(j.inheritedTrees, id)
	return found
}

// TakeEndedInputs returns the reduces of a job that are to be looked at.
func (j *Jobs) TakeEndedInputs(id mapreduce.JobID) []records.WaitRef {
	j.mu.Lock()
	defer j.mu.Unlock()
	refs := slices.Collect(maps.Keys(j.endedInputs[id]))
	delete(j.endedInputs, id)
	slices.SortFunc(refs, func(a, b records.WaitRef) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Index, b.Index))
	})
	return refs
}

// NotifyWatchers wakes those who watch a job, and has its new checkpoints sealed.
func (j *Jobs) NotifyWatchers(id mapreduce.JobID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.unsealed == nil {
		j.unsealed = make(map[mapreduce.JobID]bool)
	}
	j.unsealed[id] = true
	j.wakeWatchers(id)
}

// WakeWatchers has those who watch a job look again, for what its units say of themselves.
func (j *Jobs) WakeWatchers(id mapreduce.JobID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.wakeWatchers(id)
}

// wakeWatchers wakes those who watch a job. The caller holds j.mu.
func (j *Jobs) wakeWatchers(id mapreduce.JobID) {
	if w := j.watchers[id]; w != nil {
		close(w.changed)
		delete(j.watchers, id)
	}
}

// A jobWatchers is what those wait for who watch a job.
type jobWatchers struct {
	changed chan struct{} // closes at the next change
	waiting int
}

// TakeUnsealed returns the jobs to seal whose turn it is.
func (j *Jobs) TakeUnsealed(turn func(mapreduce.JobID) bool) []mapreduce.JobID {
	j.mu.Lock()
	defer j.mu.Unlock()
	var due []mapreduce.JobID
	for id := range j.unsealed {
		if turn(id) {
			due = append(due, id)
			delete(j.unsealed, id)
		}
	}
	return due
}

// Watch returns a channel that closes at the job's next change. Whoever stops
// waiting calls done.
func (j *Jobs) Watch(id mapreduce.JobID) (changed <-chan struct{}, done func()) {
	j.mu.Lock()
	defer j.mu.Unlock()

	if j.watchers == nil {
		j.watchers = make(map[mapreduce.JobID]*jobWatchers)
	}

	w := j.watchers[id]
	if w == nil {
		w = &jobWatchers{changed: make(chan struct{})}
		j.watchers[id] = w
	}

	w.waiting++
	return w.changed, func() { j.unwatchJob(id, w) }
}

func (j *Jobs) unwatchJob(id mapreduce.JobID, w *jobWatchers) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if w.waiting--; w.waiting == 0 && j.watchers[id] == w {
		delete(j.watchers, id)
	}
}

// CallAt has fn called when t has come.
func (j *Jobs) CallAt(t time.Time, fn func(context.Context)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	heap.Push(&j.timers, timer{at: t, fn: fn})
	j.TimerSignal.Wake()
}

// A Sleeper is a unit that waits until its time has come.
type Sleeper struct {
	Job             mapreduce.JobID
	records.Sleeper // the unit of the job, and its attempt
}

// SleepUntil has a unit woken when t has come, unless its sleep is timed already.
func (j *Jobs) SleepUntil(t time.Time, s Sleeper) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.sleeping[s] {
		return
	}
	if j.sleeping == nil {
		j.sleeping = make(map[Sleeper]bool)
	}

	j.sleeping[s] = true
	heap.Push(&j.timers, timer{at: t, sleeper: s})
	j.TimerSignal.Wake()
}

// A Due is what is due at a time.
type Due struct {
	Calls []func(context.Context)               // to be called
	Units map[mapreduce.JobID][]records.Sleeper // that have slept long enough
	Next  time.Duration                         // until there is more
}

// TakeTimers returns what is due at now.
func (j *Jobs) TakeTimers(now time.Time) Due {
	j.mu.Lock()
	defer j.mu.Unlock()
	due := Due{Units: make(map[mapreduce.JobID][]records.Sleeper), Next: time.Hour}

	for len(j.timers) > 0 && !j.timers[0].at.After(now) {
		t := heap.Pop(&j.timers).(timer)
		if t.fn != nil {
			due.Calls = append(due.Calls, t.fn)
			continue
		}
		delete(j.sleeping, t.sleeper)
		due.Units[t.sleeper.Job] = append(due.Units[t.sleeper.Job], t.sleeper.Sleeper)
	}

	if len(j.timers) > 0 {
		due.Next = j.timers[0].at.Sub(now)
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
