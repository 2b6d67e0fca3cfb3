package schedule

import (
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
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
	// Busy says that units of the job run here, or wait to.
	Busy bool
}

// Runnable returns the jobs that may run and have work for workers.
func (s *Scheduler) Runnable() []Runnable {
	s.mu.Lock()
	defer s.mu.Unlock()

	var all []Runnable
	for id, j := range s.jobs.byID {
		if !j.running || j.spec == nil || j.assembles {
			continue
		}

		one := Runnable{
			Job: id, Tenant: j.tenant, Needs: j.needs, Parallelism: int64(j.spec.Parallelism), Spec: j.spec,
			FailsFast: j.spec.OnBreaker == mapreduce.BreakerSkip, Busy: j.held > 0 || !j.queue.IsEmpty(),
		}

		if j.asks {
			one.Model = s.Models.askedNow(j)
		}

		all = append(all, one)
	}
	return all
}

// askedNow returns the first model of a job that answers, as far as this node knows; the first of all if
// none does. The caller holds the scheduler's mu.
func (m *Models) askedNow(j *Job) string {
	now := m.sched.now()
	for _, name := range j.models {
		if s := m.states[name]; s == nil || !s.HoldsBack(j.spec) && !s.IsRefusing(now) {
			return name
		}
	}
	return j.model
}

// notePace notes how long the calls of a report took. The caller holds the scheduler's mu.
func (m *Models) notePace(j *Job, rep *protocol.Report) {
	if j.spec == nil || !j.asks {
		return
	}
	if s := m.states[j.model]; s != nil && (len(j.models) == 1 || len(rep.Models) == 1 && mapreduce.Answered(rep.Models, j.model)) {
		s.Pace.Note(rep)
	}
}

// Allowances returns what this node knows of the models that its jobs ask, by
// "provider/model".
func (m *Models) Allowances(now time.Time) map[string]model.Allowance {
	m.sched.mu.Lock()
	defer m.sched.mu.Unlock()
	all := make(map[string]model.Allowance, len(m.states))
	for name, s := range m.states {
		all[name] = s.Allowance(now)
	}
	return all
}
