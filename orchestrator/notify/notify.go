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
func (n *Jobs) MarkDue(id mapreduce.JobID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requestLook(id, true)
}

// requestLook asks for a look at a job. The caller holds n.mu.
func (n *Jobs) requestLook(id mapreduce.JobID, whole bool) {
	if n.dueJobs == nil {
		n.dueJobs = make(map[mapreduce.JobID]bool)
	}
	n.dueJobs[id] = n.dueJobs[id] || whole
	n.DueSignal.Wake()
}

// TakeDue returns the jobs that are due, each with whether it is to be looked at as a
// whole, and not only for reduces whose inputs have ended.
func (n *Jobs) TakeDue() map[mapreduce.JobID]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	due := n.dueJobs
	n.dueJobs = nil
	return due
}

// A Failure is why a job is to end, as of an epoch.
type Failure struct {
	Epoch int64  // of the job; records.AnyEpoch is any
	Why   string // for the job's owner
}

// RequestFailure asks for a job to be failed. Of several reasons, the one of the newest epoch
// counts: the job is past the others.
func (n *Jobs) RequestFailure(id mapreduce.JobID, f Failure) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failures == nil {
		n.failures = make(map[mapreduce.JobID]Failure)
	}
	if known, ok := n.failures[id]; !ok || known.Epoch <= f.Epoch {
		n.failures[id] = f
	}
	n.requestLook(id, true)
}

// PendingFailure returns why a job is to be failed, if it is.
func (n *Jobs) PendingFailure(id mapreduce.JobID) (f Failure, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f, ok = n.failures[id]
	return f, ok
}

// ClearFailure notes that a job need not be failed any more for a reason.
func (n *Jobs) ClearFailure(id mapreduce.JobID, f Failure) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failures[id] == f {
		delete(n.failures, id)
	}
}

// SetResume notes that a job is to be resumed.
func (n *Jobs) SetResume(id mapreduce.JobID, r mapreduce.Resume) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pendingResumes == nil {
		n.pendingResumes = make(map[mapreduce.JobID]mapreduce.Resume)
	}
	n.pendingResumes[id] = r
}

// PendingResume returns how a job is to be resumed, if it is.
func (n *Jobs) PendingResume(id mapreduce.JobID) (mapreduce.Resume, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r, ok := n.pendingResumes[id]
	return r, ok
}

// ClearResume notes that a job is not to be resumed.
func (n *Jobs) ClearResume(id mapreduce.JobID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pendingResumes, id)
}

// NoteEndedInputs asks for a look at reduces of which inputs have ended.
func (n *Jobs) NoteEndedInputs(id mapreduce.JobID, refs []records.WaitRef) {
	if len(refs) == 0 {
		return
	}
	n.KeepEndedInputs(id, refs)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requestLook(id, false)
}

// KeepEndedInputs keeps reduces whose inputs have ended for the next look at a job.
func (n *Jobs) KeepEndedInputs(id mapreduce.JobID, refs []records.WaitRef) {
	n.mu.Lock()
	defer n.mu.Unlock()

	if n.endedInputs == nil {
		n.endedInputs = make(map[mapreduce.JobID]map[records.WaitRef]bool)
	}
	if n.endedInputs[id] == nil {
		n.endedInputs[id] = make(map[records.WaitRef]bool, len(refs))
	}

	for _, r := range refs {
		n.endedInputs[id][r] = true
	}
}

// RequestTreeLook asks for a look at all reduces of a job's tree.
func (n *Jobs) RequestTreeLook(id mapreduce.JobID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.inheritedTrees == nil {
		n.inheritedTrees = make(map[mapreduce.JobID]bool)
	}
	n.inheritedTrees[id] = true
}

// TakeTreeLook reports whether all reduces of a job's tree are to be looked at, and
// forgets that.
func (n *Jobs) TakeTreeLook(id mapreduce.JobID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	found := n.inheritedTrees[id]
	delete(n.inheritedTrees, id)
	return found
}

// TakeEndedInputs returns the reduces of a job that are to be looked at.
func (n *Jobs) TakeEndedInputs(id mapreduce.JobID) []records.WaitRef {
	n.mu.Lock()
	defer n.mu.Unlock()
	refs := slices.Collect(maps.Keys(n.endedInputs[id]))
	delete(n.endedInputs, id)
	slices.SortFunc(refs, func(a, b records.WaitRef) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Index, b.Index))
	})
	return refs
}

// NotifyWatchers wakes those who watch a job, and has its new checkpoints sealed.
func (n *Jobs) NotifyWatchers(id mapreduce.JobID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.unsealed == nil {
		n.unsealed = make(map[mapreduce.JobID]bool)
	}
	n.unsealed[id] = true
	n.wakeWatchers(id)
}

// WakeWatchers has those who watch a job look again, for what its units say of themselves.
func (n *Jobs) WakeWatchers(id mapreduce.JobID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wakeWatchers(id)
}

// wakeWatchers wakes those who watch a job. The caller holds n.mu.
func (n *Jobs) wakeWatchers(id mapreduce.JobID) {
	if w := n.watchers[id]; w != nil {
		close(w.changed)
		delete(n.watchers, id)
	}
}

// A jobWatchers is what those wait for who watch a job.
type jobWatchers struct {
	changed chan struct{} // closes at the next change
	waiting int
}

// TakeUnsealed returns the jobs to seal whose turn it is.
func (n *Jobs) TakeUnsealed(turn func(mapreduce.JobID) bool) []mapreduce.JobID {
	n.mu.Lock()
	defer n.mu.Unlock()
	var due []mapreduce.JobID
	for id := range n.unsealed {
		if turn(id) {
			due = append(due, id)
			delete(n.unsealed, id)
		}
	}
	return due
}

// Watch returns a channel that closes at the job's next change. Whoever stops
// waiting calls done.
func (n *Jobs) Watch(id mapreduce.JobID) (changed <-chan struct{}, done func()) {
	n.mu.Lock()
	defer n.mu.Unlock()

	if n.watchers == nil {
		n.watchers = make(map[mapreduce.JobID]*jobWatchers)
	}

	w := n.watchers[id]
	if w == nil {
		w = &jobWatchers{changed: make(chan struct{})}
		n.watchers[id] = w
	}

	w.waiting++
	return w.changed, func() { n.unwatchJob(id, w) }
}

func (n *Jobs) unwatchJob(id mapreduce.JobID, w *jobWatchers) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if w.waiting--; w.waiting == 0 && n.watchers[id] == w {
		delete(n.watchers, id)
	}
}

// CallAt has fn called when t has come.
func (n *Jobs) CallAt(t time.Time, fn func(context.Context)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	heap.Push(&n.timers, timer{at: t, fn: fn})
	n.TimerSignal.Wake()
}

// A Sleeper is a unit that waits until its time has come.
type Sleeper struct {
	Job             mapreduce.JobID
	records.Sleeper // the unit of the job, and its attempt
}

// SleepUntil has a unit woken when t has come, unless its sleep is timed already.
func (n *Jobs) SleepUntil(t time.Time, s Sleeper) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sleeping[s] {
		return
	}
	if n.sleeping == nil {
		n.sleeping = make(map[Sleeper]bool)
	}

	n.sleeping[s] = true
	heap.Push(&n.timers, timer{at: t, sleeper: s})
	n.TimerSignal.Wake()
}

// A Due is what is due at a time.
type Due struct {
	Calls []func(context.Context)               // to be called
	Units map[mapreduce.JobID][]records.Sleeper // that have slept long enough
	Next  time.Duration                         // until there is more
}

// TakeTimers returns what is due at now.
func (n *Jobs) TakeTimers(now time.Time) Due {
	n.mu.Lock()
	defer n.mu.Unlock()
	due := Due{Units: make(map[mapreduce.JobID][]records.Sleeper), Next: time.Hour}

	for len(n.timers) > 0 && !n.timers[0].at.After(now) {
		t := heap.Pop(&n.timers).(timer)
		if t.fn != nil {
			due.Calls = append(due.Calls, t.fn)
			continue
		}
		delete(n.sleeping, t.sleeper)
		due.Units[t.sleeper.Job] = append(due.Units[t.sleeper.Job], t.sleeper.Sleeper)
	}

	if len(n.timers) > 0 {
		due.Next = n.timers[0].at.Sub(now)
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
