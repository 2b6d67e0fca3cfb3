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

// notices say that something is due, to whoever waits for it. Each kind is a
// set: saying a thing twice is saying it once.
type notices struct {
	mu       sync.Mutex               // guards the variables below
	advance  map[mapreduce.JobID]bool // true: all of it; false: what was told is all
	failures map[mapreduce.JobID]failure
	tell     map[mapreduce.JobID]map[jobs.WaitRef]bool // reduces whose inputs have ended
	heirs    map[mapreduce.JobID]bool                  // trees of which other nodes may have forgotten some
	dirty    map[mapreduce.JobID]bool                  // has checkpoints that are not sealed
	resumes  map[mapreduce.JobID]mapreduce.Resume      // that wait for units in their way
	watchers map[mapreduce.JobID]*watched
	timers   timers
	sleeping map[sleeper]bool // in timers
	advances signal
	times    signal
}

// A signal wakes one waiter; signals that nobody waits for are kept, as one.
type signal struct {
	once sync.Once
	c    chan struct{}
}

func (s *signal) wait() <-chan struct{} {
	s.once.Do(func() { s.c = make(chan struct{}, 1) })
	return s.c
}

func (s *signal) give() {
	s.wait()
	select {
	case s.c <- struct{}{}:
	default:
	}
}

// due asks for a look at how far a job is.
func (n *notices) due(id mapreduce.JobID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.look(id, true)
}

// look asks for a look at a job. The caller holds n.mu.
func (n *notices) look(id mapreduce.JobID, whole bool) {
	if n.advance == nil {
		n.advance = make(map[mapreduce.JobID]bool)
	}
	n.advance[id] = n.advance[id] || whole
	n.advances.give()
}

// takeDue returns the jobs that are due, and whether it is more than to let go
// what was told.
func (n *notices) takeDue() map[mapreduce.JobID]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	due := n.advance
	n.advance = nil
	return due
}

// A failure is why a job is to end, as of an epoch.
type failure struct {
	epoch int64
	why   string
}

// fail asks for a job to be failed.
func (n *notices) fail(id mapreduce.JobID, f failure) {
	n.mu.Lock()
	if n.failures == nil {
		n.failures = make(map[mapreduce.JobID]failure)
	}
	n.failures[id] = f
	n.mu.Unlock()
	n.due(id)
}

func (n *notices) takeFailure(id mapreduce.JobID) (failure, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f, ok := n.failures[id]
	delete(n.failures, id)
	return f, ok
}

// intend notes that a job is to be resumed.
func (n *notices) intend(id mapreduce.JobID, r mapreduce.Resume) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.resumes == nil {
		n.resumes = make(map[mapreduce.JobID]mapreduce.Resume)
	}
	n.resumes[id] = r
}

// intended returns how a job is to be resumed, if it is.
func (n *notices) intended(id mapreduce.JobID) (mapreduce.Resume, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r, ok := n.resumes[id]
	return r, ok
}

// forgo notes that a job is not to be resumed.
func (n *notices) forgo(id mapreduce.JobID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.resumes, id)
}

// told asks for a look at reduces of which inputs have ended.
func (n *notices) told(id mapreduce.JobID, refs []jobs.WaitRef) {
	if len(refs) == 0 {
		return
	}
	n.keep(id, refs)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.look(id, false)
}

// keep has the next look at a job be one at reduces, too.
func (n *notices) keep(id mapreduce.JobID, refs []jobs.WaitRef) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.tell == nil {
		n.tell = make(map[mapreduce.JobID]map[jobs.WaitRef]bool)
	}
	if n.tell[id] == nil {
		n.tell[id] = make(map[jobs.WaitRef]bool, len(refs))
	}
	for _, r := range refs {
		n.tell[id][r] = true
	}
}

// inherit asks for a look at all reduces of a job's tree.
func (n *notices) inherit(id mapreduce.JobID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.heirs == nil {
		n.heirs = make(map[mapreduce.JobID]bool)
	}
	n.heirs[id] = true
}

func (n *notices) takeInherited(id mapreduce.JobID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	found := n.heirs[id]
	delete(n.heirs, id)
	return found
}

// takeTold returns the reduces of a job that are to be looked at.
func (n *notices) takeTold(id mapreduce.JobID) []jobs.WaitRef {
	n.mu.Lock()
	defer n.mu.Unlock()
	refs := slices.Collect(maps.Keys(n.tell[id]))
	delete(n.tell, id)
	slices.SortFunc(refs, func(a, b jobs.WaitRef) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(a.Index, b.Index))
	})
	return refs
}

// changed tells those who watch a job, and the sealer.
func (n *notices) changed(id mapreduce.JobID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dirty == nil {
		n.dirty = make(map[mapreduce.JobID]bool)
	}
	n.dirty[id] = true
	if w := n.watchers[id]; w != nil {
		close(w.changed)
		delete(n.watchers, id)
	}
}

// A watched job is one that somebody waits for.
type watched struct {
	changed chan struct{} // closes at the next change
	waiting int
}

// takeDirty returns the jobs to seal whose turn it is.
func (n *notices) takeDirty(turn func(mapreduce.JobID) bool) []mapreduce.JobID {
	n.mu.Lock()
	defer n.mu.Unlock()
	var due []mapreduce.JobID
	for id := range n.dirty {
		if turn(id) {
			due = append(due, id)
			delete(n.dirty, id)
		}
	}
	return due
}

// watch returns a channel that closes at the job's next change. Whoever stops
// waiting calls done.
func (n *notices) watch(id mapreduce.JobID) (changed <-chan struct{}, done func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.watchers == nil {
		n.watchers = make(map[mapreduce.JobID]*watched)
	}
	w := n.watchers[id]
	if w == nil {
		w = &watched{changed: make(chan struct{})}
		n.watchers[id] = w
	}
	w.waiting++
	return w.changed, func() { n.unwatch(id, w) }
}

func (n *notices) unwatch(id mapreduce.JobID, w *watched) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if w.waiting--; w.waiting == 0 && n.watchers[id] == w {
		delete(n.watchers, id)
	}
}

// at has fn called by the timekeeper when t has come.
func (n *notices) at(t time.Time, fn func(context.Context)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	heap.Push(&n.timers, timer{at: t, fn: fn})
	n.times.give()
}

// A sleeper is a unit that waits until its time has come.
type sleeper struct {
	job mapreduce.JobID
	jobs.Sleeper
}

// sleepUntil has a unit woken when t has come, unless its sleep is timed already.
func (n *notices) sleepUntil(t time.Time, s sleeper) {
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
	n.times.give()
}

// A dueNow is what the timekeeper has to do.
type dueNow struct {
	calls []func(context.Context)
	units map[mapreduce.JobID][]jobs.Sleeper // that have slept long enough
	next  time.Duration                      // until there is more
}

// takeTimers returns what is due at now.
func (n *notices) takeTimers(now time.Time) dueNow {
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

// timekeeper calls what is due.
func (o *Orchestrator) timekeeper(ctx context.Context) {
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
		due := o.notices.takeTimers(time.Now())
		for _, fn := range due.calls {
			call(func() {
				o.failed(ctx, "what was due at a time", o.contained(ctx, "a timer", func() error { fn(ctx); return nil }))
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
		case <-o.notices.times.wait():
		case <-t.C:
		}
		t.Stop()
	}
}
