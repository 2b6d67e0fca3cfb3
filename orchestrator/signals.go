package orchestrator

import (
	"cmp"
	"container/heap"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs"
)

// jobSignals say that something is due, to whoever waits for it. Each kind is a
// set: saying a thing twice is saying it once.
type jobSignals struct {
	mu             sync.Mutex               // guards the variables below
	dueJobs        map[mapreduce.JobID]bool // true: all of it; false: what was told is all
	failures       map[mapreduce.JobID]failure
	endedInputs    map[mapreduce.JobID]map[jobs.WaitRef]bool // reduces whose inputs have ended
	inheritedTrees map[mapreduce.JobID]bool                  // trees of which other nodes may have forgotten some
	unsealed       map[mapreduce.JobID]bool                  // has checkpoints that are not sealed
	pendingResumes map[mapreduce.JobID]mapreduce.Resume      // that wait for units in their way
	watchers       map[mapreduce.JobID]*jobWatchers
	timers         timers
	sleeping       map[sleeper]bool // in timers
	dueSignal      signal
	timerSignal    signal
}

// A signal wakes one waiter; signals that nobody waits for are kept, as one.
type signal struct {
	once sync.Once
	c    chan struct{}
}

func (s *signal) waitChannel() <-chan struct{} {
	s.once.Do(func() { s.c = make(chan struct{}, 1) })
	return s.c
}

func (s *signal) wakeWaiter() {
	s.waitChannel()
	select {
	case s.c <- struct{}{}:
	default:
	}
}

// markDue asks for a look at how far a job is.
func (n *jobSignals) markDue(id mapreduce.JobID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requestLook(id, true)
}

// requestLook asks for a look at a job. The caller holds n.mu.
func (n *jobSignals) requestLook(id mapreduce.JobID, whole bool) {
	if n.dueJobs == nil {
		n.dueJobs = make(map[mapreduce.JobID]bool)
	}
	n.dueJobs[id] = n.dueJobs[id] || whole
	n.dueSignal.wakeWaiter()
}

// takeDue returns the jobs that are due, and whether it is more than to let go
// what was told.
func (n *jobSignals) takeDue() map[mapreduce.JobID]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	due := n.dueJobs
	n.dueJobs = nil
	return due
}

// A failure is why a job is to end, as of an epoch.
type failure struct {
	epoch int64
	why   string
}

// requestFailure asks for a job to be failed.
func (n *jobSignals) requestFailure(id mapreduce.JobID, f failure) {
	n.mu.Lock()
	if n.failures == nil {
		n.failures = make(map[mapreduce.JobID]failure)
	}
	n.failures[id] = f
	n.mu.Unlock()
	n.markDue(id)
}

func (n *jobSignals) takeFailure(id mapreduce.JobID) (failure, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f, ok := n.failures[id]
	delete(n.failures, id)
	return f, ok
}

// setResume notes that a job is to be resumed.
func (n *jobSignals) setResume(id mapreduce.JobID, r mapreduce.Resume) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pendingResumes == nil {
		n.pendingResumes = make(map[mapreduce.JobID]mapreduce.Resume)
	}
	n.pendingResumes[id] = r
}

// pendingResume returns how a job is to be resumed, if it is.
func (n *jobSignals) pendingResume(id mapreduce.JobID) (mapreduce.Resume, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r, ok := n.pendingResumes[id]
	return r, ok
}

// clearResume notes that a job is not to be resumed.
func (n *jobSignals) clearResume(id mapreduce.JobID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pendingResumes, id)
}

// noteEndedInputs asks for a look at reduces of which inputs have ended.
func (n *jobSignals) noteEndedInputs(id mapreduce.JobID, refs []jobs.WaitRef) {
	if len(refs) == 0 {
		return
	}
	n.keepEndedInputs(id, refs)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requestLook(id, false)
}

// keepEndedInputs has the next look at a job be one at reduces, too.
func (n *jobSignals) keepEndedInputs(id mapreduce.JobID, refs []jobs.WaitRef) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.endedInputs == nil {
		n.endedInputs = make(map[mapreduce.JobID]map[jobs.WaitRef]bool)
	}
	if n.endedInputs[id] == nil {
		n.endedInputs[id] = make(map[jobs.WaitRef]bool, len(refs))
	}
	for _, r := range refs {
		n.endedInputs[id][r] = true
	}
}

// requestTreeLook asks for a look at all reduces of a job's tree.
func (n *jobSignals) requestTreeLook(id mapreduce.JobID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.inheritedTrees == nil {
		n.inheritedTrees = make(map[mapreduce.JobID]bool)
	}
	n.inheritedTrees[id] = true
}

func (n *jobSignals) takeInherited(id mapreduce.JobID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	found := n.inheritedTrees[id]
	delete(n.inheritedTrees, id)
	return found
}

// takeTold returns the reduces of a job that are to be looked at.
func (n *jobSignals) takeTold(id mapreduce.JobID) []jobs.WaitRef {
	n.mu.Lock()
	defer n.mu.Unlock()
	refs := slices.Collect(maps.Keys(n.endedInputs[id]))
	delete(n.endedInputs, id)
	slices.SortFunc(refs, func(a, b jobs.WaitRef) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Index, b.Index))
	})
	return refs
}

// notifyWatchers tells those who watch a job, and the sealer.
func (n *jobSignals) notifyWatchers(id mapreduce.JobID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.unsealed == nil {
		n.unsealed = make(map[mapreduce.JobID]bool)
	}
	n.unsealed[id] = true
	if w := n.watchers[id]; w != nil {
		close(w.changed)
		delete(n.watchers, id)
	}
}

// A jobWatchers job is one that somebody waits for.
type jobWatchers struct {
	changed chan struct{} // closes at the next change
	waiting int
}

// takeDirty returns the jobs to seal whose turn it is.
func (n *jobSignals) takeDirty(turn func(mapreduce.JobID) bool) []mapreduce.JobID {
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

// watchJob returns a channel that closes at the job's next change. Whoever stops
// waiting calls done.
func (n *jobSignals) watchJob(id mapreduce.JobID) (changed <-chan struct{}, done func()) {
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

func (n *jobSignals) unwatchJob(id mapreduce.JobID, w *jobWatchers) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if w.waiting--; w.waiting == 0 && n.watchers[id] == w {
		delete(n.watchers, id)
	}
}

// callAt has fn called by the timekeeper when t has come.
func (n *jobSignals) callAt(t time.Time, fn func(context.Context)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	heap.Push(&n.timers, timer{at: t, fn: fn})
	n.timerSignal.wakeWaiter()
}

// A sleeper is a unit that waits until its time has come.
type sleeper struct {
	job mapreduce.JobID
	jobs.Sleeper
}

// sleepUntil has a unit woken when t has come, unless its sleep is timed already.
func (n *jobSignals) sleepUntil(t time.Time, s sleeper) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sleeping[s] {
		return
	}
	if n.sleeping == nil {
		n.sleeping = make(map[sleeper]bool)
	}
	n.sleeping[s] = true
	heap.Push(&n.timers, timer{at: t, sleeper: s})
	n.timerSignal.wakeWaiter()
}

// A dueNow is what the timekeeper has to do.
type dueNow struct {
	calls []func(context.Context)
	units map[mapreduce.JobID][]jobs.Sleeper // that have slept long enough
	next  time.Duration                      // until there is more
}

// takeTimers returns what is due at now.
func (n *jobSignals) takeTimers(now time.Time) dueNow {
	n.mu.Lock()
	defer n.mu.Unlock()
	due := dueNow{units: make(map[mapreduce.JobID][]jobs.Sleeper), next: time.Hour}
	for len(n.timers) > 0 && !n.timers[0].at.After(now) {
		t := heap.Pop(&n.timers).(timer)
		if t.fn != nil {
			due.calls = append(due.calls, t.fn)
			continue
		}
		delete(n.sleeping, t.sleeper)
		due.units[t.sleeper.job] = append(due.units[t.sleeper.job], t.sleeper.Sleeper)
	}
	if len(n.timers) > 0 {
		due.next = n.timers[0].at.Sub(now)
	}
	return due
}

// A timer is a call, or a unit whose sleep ends.
type timer struct {
	at      time.Time
	fn      func(context.Context)
	sleeper sleeper
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

// timekept is how many calls the timekeeper makes at once: many workers may be
// lost in one moment.
const timekept = 16

// timerLoop calls what is due.
func (o *Orchestrator) timerLoop(ctx context.Context) {
	var calls sync.WaitGroup
	defer calls.Wait()
	room := make(chan struct{}, timekept)
	call := func(fn func()) {
		room <- struct{}{}
		calls.Go(func() {
			defer func() { <-room }()
			fn()
		})
	}
	for {
		due := o.signals.takeTimers(time.Now())
		for _, fn := range due.calls {
			call(func() {
				o.logFailure(ctx, "what was due at a time", o.containPanic(ctx, "a timer", func() error { fn(ctx); return nil }))
			})
		}
		for id, units := range due.units {
			call(func() { o.forJob(ctx, id, "waking units", func() { o.wakeUnits(ctx, id, units) }) })
		}
		if len(due.calls)+len(due.units) > 0 {
			continue
		}
		t := time.NewTimer(due.next)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-o.signals.timerSignal.waitChannel():
		case <-t.C:
		}
		t.Stop()
	}
}
