package orchestrator

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// notices say that something is due, to whoever waits for it. Each kind is a
// set: saying a thing twice is saying it once.
type notices struct {
	mu       sync.Mutex // guards the variables below
	advance  map[mapreduce.JobID]bool
	failures map[mapreduce.JobID]string
	dirty    map[mapreduce.JobID]bool // has checkpoints that are not sealed
	watchers map[mapreduce.JobID]chan struct{}
	timers   timers
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
	if n.advance == nil {
		n.advance = make(map[mapreduce.JobID]bool)
	}
	n.advance[id] = true
	n.advances.give()
}

// takeDue returns the jobs that are due.
func (n *notices) takeDue() map[mapreduce.JobID]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	due := n.advance
	n.advance = nil
	return due
}

// fail asks for a job to be failed.
func (n *notices) fail(id mapreduce.JobID, why string) {
	n.mu.Lock()
	if n.failures == nil {
		n.failures = make(map[mapreduce.JobID]string)
	}
	n.failures[id] = why
	n.mu.Unlock()
	n.due(id)
}

func (n *notices) takeFailure(id mapreduce.JobID) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	why := n.failures[id]
	delete(n.failures, id)
	return why
}

// changed tells those who watch a job, and the sealer.
func (n *notices) changed(id mapreduce.JobID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dirty == nil {
		n.dirty = make(map[mapreduce.JobID]bool)
	}
	n.dirty[id] = true
	if c := n.watchers[id]; c != nil {
		close(c)
		delete(n.watchers, id)
	}
}

func (n *notices) takeDirty() map[mapreduce.JobID]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	dirty := n.dirty
	n.dirty = nil
	return dirty
}

// watch returns a channel that closes at the job's next change.
func (n *notices) watch(id mapreduce.JobID) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.watchers == nil {
		n.watchers = make(map[mapreduce.JobID]chan struct{})
	}
	c := n.watchers[id]
	if c == nil {
		c = make(chan struct{})
		n.watchers[id] = c
	}
	return c
}

// at has fn called by the timekeeper when t has come.
func (n *notices) at(t time.Time, fn func(context.Context)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	heap.Push(&n.timers, timer{t, fn})
	n.times.give()
}

// takeTimers returns what is due at now, and how long until the next.
func (n *notices) takeTimers(now time.Time) (due []func(context.Context), next time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.timers) > 0 && !n.timers[0].at.After(now) {
		due = append(due, heap.Pop(&n.timers).(timer).fn)
	}
	if len(n.timers) == 0 {
		return due, time.Hour
	}
	return due, n.timers[0].at.Sub(now)
}

type timer struct {
	at time.Time
	fn func(context.Context)
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

// timekeeper calls what is due, one at a time.
func (o *Orchestrator) timekeeper(ctx context.Context) {
	for {
		due, next := o.notices.takeTimers(time.Now())
		for _, fn := range due {
			fn(ctx)
		}
		if len(due) > 0 {
			continue
		}
		t := time.NewTimer(next)
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
