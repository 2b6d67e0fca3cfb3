package scaler

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/orchestrator/schedule/model"
	"github.com/coditect/mapreduce/store/jobs"
)

// A Config says what a Scaler rests on. All of it must be set.
type Config struct {
	MaxCalls int64 // of models at once, over the whole fleet
	// Rates returns what is assumed of the calls of a job before any was made.
	Rates func(*mapreduce.JobSpec) plan.Rates
}

// A Scaler counts the units that could run. Its methods are safe for concurrent use.
type Scaler struct {
	config    Config
	jobs      *jobs.Jobs
	scheduler *schedule.Scheduler

	turn chan struct{} // held by who counts, and guards the variables below
	last []protocol.Demand
	at   time.Time
}

// New returns a scaler for the jobs that a scheduler knows.
func New(j *jobs.Jobs, s *schedule.Scheduler, c Config) *Scaler {
	return &Scaler{config: c, jobs: j, scheduler: s, turn: make(chan struct{}, 1)}
}

// freshFor is how long a count is good for: autoscalers ask for one pool after the other.
const freshFor = time.Second

// Demand implements protocol.Demander, for all tenants: it returns the demand of each job that
// may run, in the order of their ids, at most freshFor old. Package access leaves to a caller
// what it may see. The count of a tenant's own jobs shows others only by the limits that all
// share.
func (s *Scaler) Demand(ctx context.Context, _ mapreduce.Principal) ([]protocol.Demand, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}

	if now := time.Now(); s.last == nil || now.Sub(s.at) >= freshFor {
		all, err := s.count(ctx)
		if err != nil {
			return nil, err
		}
		s.last, s.at = all, now
	}
	return slices.Clone(s.last), nil
}

// count reads what waits, and divides the limits among the jobs.
func (s *Scaler) count(ctx context.Context) ([]protocol.Demand, error) {
	runnable := s.scheduler.Runnable()
	slices.SortFunc(runnable, func(a, b schedule.Runnable) int { return cmp.Compare(a.Job, b.Job) })
	demands := make([]protocol.Demand, 0, len(runnable))
	claims := make([]Claim, 0, len(runnable))
	specs := make(map[string]*mapreduce.JobSpec)

	for _, r := range runnable {
		w, err := s.jobs.Grants.Waiting(ctx, r.Job, r.Parallelism)
		if errors.Is(err, errs.NotFound) {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return nil, err
		}

		demands = append(demands, protocol.Demand{Job: r.Job, Tenant: r.Tenant, Model: r.Model, Needs: r.Needs, Running: w.Running})
		claims = append(claims, Claim{
			Model: r.Model, Running: w.Running, Wanted: min(r.Parallelism, w.Running+min(w.Ready, w.Paid)), Exempt: r.FailsFast,
		})
		specs[r.Model] = r.Spec
	}

	for i, units := range Divide(claims, Limits{Calls: s.config.MaxCalls, Models: s.modelLimits(claims, specs)}) {
		demands[i].Units = units
	}
	return demands, nil
}

// modelLimits returns how many units at once each model bears now. A model that rests, or
// whose breaker is open, bears what runs and no more, but one unit to try it with.
func (s *Scaler) modelLimits(claims []Claim, specs map[string]*mapreduce.JobSpec) map[string]int64 {
	limits := make(map[string]int64)
	for model, a := range s.scheduler.Models.Allowances(time.Now()) {
		spec := specs[model]
		if spec == nil {
			continue // no job asks it now
		}

		most := lower(a.Calls, CallsAtOnce(Rates{float64(a.Rates.Requests), float64(a.Rates.Input), float64(a.Rates.Output)}, s.callOf(a.Pace, spec)))
		if a.Rests || a.Open {
			running := int64(0)
			for _, c := range claims {
				if c.Model == model {
					running += c.Running
				}
			}
			most = lower(max(1, running), most)
		}

		if most > 0 {
			limits[model] = most
		}
	}
	return limits
}

// fewCalls is how many calls have to be known before what they took counts for more than
// what plans assume.
const fewCalls = 5

// callOf returns what a call takes: as measured here, or as plans assume.
func (s *Scaler) callOf(p model.Pace, spec *mapreduce.JobSpec) Call {
	if p.Calls >= fewCalls {
		return Call{Seconds: p.Seconds, In: p.In, Out: p.Out}
	}
	r := s.config.Rates(spec)
	return Call{Seconds: r.CallTime.Seconds(), In: float64(r.Prompt)}
}
