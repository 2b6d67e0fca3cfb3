package schedule

import (
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/schedule/model"
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
			one.Model = b.Models.askedNow(r)
		}

		all = append(all, one)
	}
	return all
}

// askedNow returns the first model of a job that answers, as far as this node knows; the first of all if
// none does. The caller holds the scheduler's mu.
func (g *Models) askedNow(r *Job) string {
	now := g.sched.now()
	for _, name := range r.models {
		if m := g.states[name]; m == nil || !m.HoldsBack(r.spec) && !m.IsRefusing(now) {
			return name
		}
	}
	return r.model
}

// notePace notes how long the calls of a report took. The caller holds the scheduler's mu.
func (g *Models) notePace(r *Job, rep *mapreduce.Report) {
	if r.spec == nil || !r.asks {
		return
	}
	if m := g.states[r.model]; m != nil && (len(r.models) == 1 || len(rep.Models) == 1 && mapreduce.Answered(rep.Models, r.model)) {
		m.Pace.Note(rep)
	}
}

// Allowances returns what this node knows of the models that its jobs ask, by
// "provider/model".
func (g *Models) Allowances(now time.Time) map[string]model.Allowance {
	g.sched.mu.Lock()
	defer g.sched.mu.Unlock()
	all := make(map[string]model.Allowance, len(g.states))
	for name, m := range g.states {
		all[name] = m.Allowance(now)
	}
	return all
}
