package schedule

import (
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// A Runnable is a job that may run, as far as its demand for workers goes.
type Runnable struct {
	Job         mapreduce.JobID
	Tenant      mapreduce.TenantID
	Model       string // "provider/model"; empty if its units ask none
	Needs       mapreduce.Requirements
	Parallelism int64
	Spec        *mapreduce.JobSpec
	// FailsFast says that units of the job run, and fail, while the breaker of the model
	// is open.
	FailsFast bool
}

// Runnable returns the jobs that may run and have work for workers.
func (b *Scheduler) Runnable() []Runnable {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Runnable
	for id, r := range b.runs {
		if !r.running || r.spec == nil || r.assembles {
			continue
		}
		one := Runnable{
			Job: id, Tenant: r.tenant, Needs: r.needs, Parallelism: int64(r.spec.Parallelism), Spec: r.spec,
			FailsFast: r.spec.OnBreaker == mapreduce.BreakerSkip,
		}
		if r.asks {
			one.Model = breakerOf(r.spec)
		}
		all = append(all, one)
	}
	return all
}

// An Allowance is how many calls at once one model bears now, as far as this node knows.
type Allowance struct {
	Calls int64           // that were found to be borne, or are configured; 0 is no limit
	Rates mapreduce.Rates // a minute; 0 is no limit
	Rests bool            // the vendor refused calls a moment ago
	Open  bool            // the breaker is: one call may probe
	Pace  Pace            // of its calls
}

// A Pace is what calls of a model took, as reports said that came to this node.
type Pace struct {
	Calls   int64
	Seconds float64 // of one call; like the others a mean in which later calls count more
	In, Out float64 // tokens of one call
}

// paceWeight is the weight of the latest report in a Pace.
const paceWeight = 0.05

// note counts the calls of a report.
func (p *Pace) note(rep *mapreduce.Report) {
	if rep.Calls <= 0 || rep.Latency <= 0 {
		return
	}
	n := float64(rep.Calls)
	w := max(paceWeight, 1/float64(p.Calls+1))
	p.Calls++
	p.Seconds += w * (rep.Latency.Seconds()/n - p.Seconds)
	p.In += w * (float64(rep.Tokens.In)/n - p.In)
	p.Out += w * (float64(rep.Tokens.Out)/n - p.Out)
}

// notePace notes how long the calls of a report took. The caller holds the scheduler's mu.
func (g *Models) notePace(r *Job, rep *mapreduce.Report) {
	if r.spec == nil || !r.asks {
		return
	}
	if m := g.states[breakerOf(r.spec)]; m != nil {
		m.pace.note(rep)
	}
}

// Allowances returns what this node knows of the models that its jobs ask, by
// "provider/model".
func (g *Models) Allowances(now time.Time) map[string]Allowance {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	all := make(map[string]Allowance, len(g.states))
	for name, m := range g.states {
		a := Allowance{Calls: int64(m.scope.Room), Rates: m.effectiveRates(), Rests: now.Before(m.frozen), Open: m.scope.Breaker.Open, Pace: m.pace}
		if m.set.Calls > 0 && (a.Calls == 0 || m.set.Calls < a.Calls) {
			a.Calls = m.set.Calls
		}
		all[name] = a
	}
	return all
}
