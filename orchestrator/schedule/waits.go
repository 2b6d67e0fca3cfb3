package schedule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// Waits says what keeps the units of a job from running here though some wait and none runs, for
// people and by name; "" if nothing does, as far as this node knows. What it says does not change with
// the clock alone.
func (s *Scheduler) Waits(id mapreduce.JobID) string {
	s.mu.Lock()
	defer s.mu.Unlock()

	j := s.jobs.find(id)
	if j == nil || !j.running || j.assembles || j.spec == nil || j.held > 0 || j.queue.IsEmpty() {
		return ""
	}
	now := s.now()

	if s.workers.Len() == 0 {
		return "no worker is connected to this server: the job waits until one is"
	}
	if missing := s.workers.Lacking(j.needs); missing != "" {
		return fmt.Sprintf("no worker has the %s, which the job needs now: it waits until one does", missing)
	}
	if why := s.Models.holdUp(j, now); why != "" {
		return why
	}
	if budget := j.spec.Budget; budget > 0 && j.grant.LackedFor(0, now) {
		return fmt.Sprintf("what is left of the budget of %s is not enough for the next unit, or is reserved for others: it goes on when they end, or with a larger budget", j.spec.BudgetIn.Text(budget))
	}
	if calls := s.calls.Slots(); j.asks && calls > 0 && s.jobs.calling >= calls {
		return fmt.Sprintf("all %d calls of models that this server may make at once are made for other jobs", calls)
	}
	if free, slots, _ := s.workers.Reachable(&j.wants, now); slots > 0 && free == 0 {
		return fmt.Sprintf("all %d slots of the workers that can run it are taken by other jobs", slots)
	}
	return ""
}

// holdUp says why none of a job's models takes a call now; "" if one does, or if it asks none. The
// caller holds the scheduler's mu.
func (m *Models) holdUp(j *Job, now time.Time) string {
	if !j.asks || len(j.models) == 0 {
		return ""
	}

	all := make([]string, 0, len(j.models))
	for _, name := range j.models {
		s := m.states[name]
		if s == nil {
			return ""
		}
		v := s.View(now)
		switch {
		case v.BreakerOpen && s.HoldsBack(j.spec):
			all = append(all, fmt.Sprintf("the circuit breaker of %s is open, after failed calls: units wait until one call has worked", name))
		case v.Pause > 0:
			all = append(all, fmt.Sprintf("%s takes no calls until %s, as its vendor asked for", name, now.Add(v.Pause).UTC().Format("15:04:05 MST")))
		case v.Calls > 0 && m.sched.jobs.heldOf(name) >= s.MayRun(j.spec, now):
			all = append(all, fmt.Sprintf("%s takes %d calls at once, and other units make them", name, v.Calls))
		default:
			return ""
		}
	}
	return strings.Join(slices.Compact(all), "; ")
}
