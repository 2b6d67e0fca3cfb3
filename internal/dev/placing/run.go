package main

import (
	"time"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/internal/placement"
)

// look is how long what is due may not be noticed.
const look = 12 * time.Second

// A part is a batch that is under way.
type part struct {
	calls float64
	at    time.Duration // when it returns
	gone  time.Duration // when its cancellation has ended; 0 of one that is not cancelled
}

// A run is a job as it goes by the policy.
type run struct {
	*job
	now   time.Duration
	queue float64 // calls that are bought in real time
	parts []part  // in the order in which they were made
	cost  float64
}

// follow runs a job by the policy. It returns what it cost, and when it ended.
func follow(j *job) (cost float64, ended time.Duration) {
	r := &run{job: j}
	waits := placement.MayJoin(j.work, j.offer, j.deadline)
	r.queue = float64(j.work.Calls - waits)
	for i := 0; waits > 0; i++ {
		n := min(waits, j.size)
		r.parts, waits = append(r.parts, part{calls: float64(n), at: j.takes[i]}), waits-n
	}

	for r.queue > 0 || len(r.parts) > 0 {
		r.endSome()
		r.advance(r.next())
	}
	return r.cost, r.now + time.Duration(float64(j.work.AtOnce)/j.pace*float64(time.Second))
}

// open is how many calls wait in batches that are not being cancelled.
func (r *run) open() (calls float64) {
	for _, p := range r.parts {
		if p.gone == 0 {
			calls += p.calls
		}
	}
	return calls
}

// left is the work that is left.
func (r *run) left() placement.Work {
	w, all := r.work, r.queue
	for _, p := range r.parts {
		all += p.calls
	}
	w.Calls = int64(all + 0.999)
	return w
}

// endSome cancels batches while more calls wait than may: the last first.
func (r *run) endSome() {
	may := float64(placement.MayWait(r.left(), r.offer, r.deadline-r.now))
	for i := len(r.parts) - 1; i >= 0 && r.open() > may; i-- {
		if p := &r.parts[i]; p.gone == 0 {
			p.gone = r.now + r.cancels[i%len(r.cancels)]
		}
	}
}

// next returns when something is due next.
func (r *run) next() time.Duration {
	next := r.now + 365*24*time.Hour
	for _, p := range r.parts {
		next = min(next, p.at)
		if p.gone > 0 {
			next = min(next, p.gone)
		}
	}
	if open := r.open(); open > 0 {
		next = min(next, r.deadline-placement.Until(r.left(), r.offer, int64(open))+look)
	}
	if r.queue > 0 { // which tier is chosen for it changes with time
		next = min(next, r.now+time.Minute)
	}
	return max(next, r.now+time.Second)
}

// advance has time pass.
func (r *run) advance(to time.Duration) {
	tier := placement.RealTimeTier(r.left(), r.offer, r.deadline-r.now)
	done := min(r.queue, r.pace*(to-r.now).Seconds())
	r.cost += r.bought(done, tier == parameters.FlexFirst)
	if r.queue -= done; r.queue < 1e-6 {
		r.queue = 0
	}
	if r.queue == 0 && len(r.parts) == 0 {
		to = r.now + time.Duration(done/r.pace*float64(time.Second))
	}
	r.now = to

	kept := r.parts[:0]
	for _, p := range r.parts {
		switch {
		case p.at <= to: // also of one that was being cancelled
			r.cost += p.calls * byBatch
		case p.gone > 0 && p.gone <= to:
			r.queue += p.calls
		default:
			kept = append(kept, p)
		}
	}
	r.parts = kept
}
