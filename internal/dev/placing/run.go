package main

import (
	"math"
	"time"

	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/internal/placement"
)

// look is how long what is due may not be noticed.
const look = 12 * time.Second

// A part is a batch that is under way.
type part struct {
	units  float64
	second bool          // its calls are the second ones of these units
	at     time.Duration // when it returns
	gone   time.Duration // when its cancellation has ended; 0 of one that is not cancelled
	number int
}

// A run is a job as it goes by the policy, or with all calls in real time.
type run struct {
	*job
	group *group
	plain bool // all calls are made in real time

	begun bool
	queue float64 // calls that are bought in real time
	parts []part  // in the order in which they were made
	pace  float64 // calls a second, now
	cost  float64
	ended time.Duration // 0 while it has not
}

// follow runs the jobs of a group side by side. It returns what each cost, and when it ended.
func follow(g *group, plain bool) []*run {
	runs := make([]*run, len(g.jobs))
	for i, j := range g.jobs {
		runs[i] = &run{job: j, group: g, plain: plain}
	}

	for now := time.Duration(0); ; {
		for _, r := range runs {
			if !r.begun && r.begins <= now {
				r.begin(runs, now)
			}
		}
		for _, r := range runs {
			if r.isOpen() && !plain {
				r.endSome(runs, now)
			}
		}

		next, over := g.next(runs, now)
		if over {
			return runs
		}
		for _, r := range runs {
			r.advance(runs, now, next)
		}
		now = next
	}
}

func (r *run) isOpen() bool { return r.begun && r.ended == 0 }

// begin puts the units in batches that may wait, and has the others asked at once.
func (r *run) begin(runs []*run, now time.Duration) {
	r.begun, r.queue = true, r.calls()
	if r.plain {
		return
	}
	w := r.forecast(runs, now)
	waits := placement.MayJoin(w, r.offer, r.due()-now)
	r.queue = float64(r.work.Units-waits) * (1 + r.again)
	for i := 0; waits > 0; i++ {
		n := min(waits, r.size)
		r.parts, waits = append(r.parts, part{units: float64(n), at: now + r.takes[i], number: i}), waits-n
	}
}

// left is the work that is left of a job, as the program knows it.
func (r *run) left() placement.Work {
	w, all := r.work, r.queue/(1+r.again)
	for _, p := range r.parts {
		all += p.units
	}
	w.Units = int64(math.Ceil(all - 1e-6))
	return w
}

// alone is the work of a job as it was at its beginning.
func (r *run) alone() placement.Work {
	w := r.work
	w.AtOnce = min(w.AtOnce, r.group.slots)
	return w
}

// forecast is what is left of a job, with what the others leave it.
func (r *run) forecast(runs []*run, now time.Duration) placement.Work {
	var others []placement.Claim
	for _, other := range runs {
		if other != r && other.isOpen() {
			others = append(others, other.claim(now))
		}
	}
	return r.claim(now).Among(others, placement.Bounds{Calls: r.group.slots})
}

func (r *run) claim(now time.Duration) placement.Claim {
	return placement.Claim{Tenant: r.tenant, Model: "m", Work: r.left(), Offer: r.offer, Left: r.due() - now}
}

// open is how many units wait in batches that are not being cancelled.
func (r *run) open() (units float64) {
	for _, p := range r.parts {
		if p.gone == 0 {
			units += p.units
		}
	}
	return units
}

// endSome cancels batches while more units wait than may: the last first.
func (r *run) endSome(runs []*run, now time.Duration) {
	may := float64(placement.MayWait(r.forecast(runs, now), r.offer, r.due()-now))
	for i := len(r.parts) - 1; i >= 0 && r.open() > may+1e-6; i-- {
		if p := &r.parts[i]; p.gone == 0 {
			p.gone = now + r.cancels[p.number%len(r.cancels)]
		}
	}
}

// next returns when something is due next, and whether nothing is.
func (g *group) next(runs []*run, now time.Duration) (next time.Duration, over bool) {
	g.share(runs)
	next, over = now+365*24*time.Hour, true
	for _, r := range runs {
		if !r.begun {
			next, over = min(next, r.begins), false
			continue
		}
		if r.ended > 0 {
			continue
		}

		over = false
		for _, p := range r.parts {
			next = min(next, p.at)
			if p.gone > 0 {
				next = min(next, p.gone)
			}
		}
		if open := r.open(); open > 0 && !r.plain {
			next = min(next, r.due()-placement.Until(r.forecast(runs, now), r.offer, int64(math.Ceil(open)))+look)
		}
		if r.queue > 0 { // which tier is chosen for it changes with time
			next = min(next, now+time.Minute, now+time.Duration(r.queue/r.pace*float64(time.Second)))
		}
	}
	return max(next, now+time.Second), over
}

// share sets the pace of each job: slots go by turns of tenants and then of their jobs, and the tokens of a minute by
// slots.
func (g *group) share(runs []*run) {
	wants := make(map[string]float64)
	for _, r := range runs {
		if r.pace = 0; r.isOpen() && r.queue > 0 {
			wants[r.tenant] += float64(r.work.AtOnce)
		}
	}

	tokens := 0.0
	parts := divide(float64(g.slots), wants)
	for tenant := range wants {
		own := make(map[string]float64)
		for _, r := range runs {
			if r.isOpen() && r.queue > 0 && r.tenant == tenant {
				own[r.name] = float64(r.work.AtOnce)
			}
		}
		of := divide(parts[tenant], own)
		for _, r := range runs {
			if n, buys := of[r.name]; buys {
				r.pace = n / r.takesReally.Seconds()
				tokens += 60 * r.pace * r.tokens
			}
		}
	}
	if g.tokens > 0 && tokens > g.tokens {
		for _, r := range runs {
			r.pace *= g.tokens / tokens
		}
	}
}

// divide divides so much among those who want it, as evenly as they want it.
func divide(all float64, wants map[string]float64) map[string]float64 {
	out, left := make(map[string]float64), len(wants)
	for left > 0 {
		even, served := all/float64(left), false
		for name, want := range wants {
			if _, has := out[name]; !has && want <= even {
				out[name], served = want, true
				all, left = all-want, left-1
				break
			}
		}
		if served {
			continue
		}
		for name := range wants {
			if _, has := out[name]; !has {
				out[name] = even
			}
		}
		break
	}
	return out
}

// advance has time pass for a job.
func (r *run) advance(runs []*run, now, to time.Duration) {
	if !r.isOpen() {
		return
	}
	if r.queue > 0 {
		w := r.forecast(runs, now)
		flex := r.offer.Flex && (r.plain || placement.RealTimeTier(w, r.offer, r.due()-now) == parameters.FlexFirst)
		done := min(r.queue, r.pace*(to-now).Seconds())
		r.cost += r.bought(done, flex)
		if r.queue -= done; r.queue < 1e-6 {
			r.queue = 0
		}
	}

	var kept, returned []part
	for _, p := range r.parts {
		switch {
		case p.at <= to: // also of one that was being cancelled
			r.cost += p.units * byBatch
			returned = append(returned, p)
		case p.gone > 0 && p.gone <= to:
			if r.queue += p.units; !p.second {
				r.queue += p.units * r.again
			}
		default:
			kept = append(kept, p)
		}
	}
	r.parts = kept
	for _, p := range returned {
		if !p.second && r.again > 0 {
			r.goOn(runs, p, to)
		}
	}

	if r.queue == 0 && len(r.parts) == 0 {
		r.ended = to + r.thenReally + r.takesReally
	}
}

// goOn has the second calls of a batch go in another, or asked at once.
func (r *run) goOn(runs []*run, p part, now time.Duration) {
	units := p.units * r.again
	w := r.forecast(runs, now)
	w.Units += int64(math.Ceil(units)) // these have not ended
	if float64(placement.MayJoin(w, r.offer, r.due()-now)) < r.open()+units {
		r.queue += units
		return
	}
	r.parts = append(r.parts, part{units: units, second: true, at: now + r.takesAgain[p.number], number: p.number})
}
