package batches

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/internal/placement"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/orchestrator/schedule/model"
	"github.com/coditect/mapreduce/store/jobs"
)

// forecasts are what is left of jobs with a deadline, as it was read a moment ago. They change nothing.
type forecasts struct {
	config    Config
	jobs      *jobs.Jobs
	scheduler *schedule.Scheduler
	specs     *jobspec.Finder

	mu        sync.Mutex // guards the variables below
	standings map[mapreduce.JobID]*standing
	slots     peak // of the fleet
}

// A forecast is what is left of a job with a deadline, as it was known a moment ago. It never changes.
type forecast struct {
	deadline time.Time
	work     placement.Work // with what other jobs leave it
	offer    placement.Offer
}

// left is how much time is left.
func (f *forecast) left(now time.Time) time.Duration { return f.deadline.Sub(now) }

// A standing is what is left of a job with a deadline by itself: as if no other asked models. But for the forecast
// that was made of it last it never changes.
type standing struct {
	tenant   mapreduce.TenantID
	model    string    // "provider/model" that its units ask now
	deadline time.Time // zero of a job that has none
	work     placement.Work
	offer    placement.Offer
	bears    model.Allowance // of the model
	most     int64           // calls at once of all jobs, as configured
	made     time.Time

	forecast atomic.Pointer[forecast]
}

// of returns what is left of a job; nil if it has no deadline.
func (f *forecasts) of(ctx context.Context, id mapreduce.JobID) (*forecast, error) {
	own, err := f.standingOf(ctx, id)
	if err != nil || own == nil || own.deadline.IsZero() {
		return nil, err
	}
	if made := own.forecast.Load(); made != nil {
		return made, nil
	}

	others, err := f.rivalsOf(ctx, id)
	if err != nil {
		return nil, err
	}
	slots, err := f.fleetSlots(ctx)
	if err != nil {
		return nil, err
	}
	made := own.among(others, slots, time.Now())
	own.forecast.Store(made)
	return made, nil
}

// standingOf returns how a job stands by itself.
func (f *forecasts) standingOf(ctx context.Context, id mapreduce.JobID) (*standing, error) {
	now := time.Now()
	f.mu.Lock()
	s := f.standings[id]
	f.mu.Unlock()
	if s != nil && now.Sub(s.made) < f.config.Fresh {
		return s, nil
	}

	compiled, err := f.specs.Job(ctx, id)
	if err != nil {
		return nil, err
	}
	s = &standing{made: now, deadline: compiled.Spec.Deadline}
	if !s.deadline.IsZero() {
		if err := f.fill(ctx, id, s, compiled); err != nil {
			return nil, err
		}
	}
	f.keep(id, s)
	return s, nil
}

// Standings that nobody asked for in standingsFor are forgotten once there are more than mostStandings.
const (
	mostStandings = 256
	standingsFor  = time.Minute
)

func (f *forecasts) keep(id mapreduce.JobID, s *standing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.standings) >= mostStandings {
		for other, old := range f.standings {
			if s.made.Sub(old.made) > standingsFor {
				delete(f.standings, other)
			}
		}
	}
	f.standings[id] = s
}

// fill reads how a job with a deadline stands.
func (f *forecasts) fill(ctx context.Context, id mapreduce.JobID, s *standing, compiled *jobspec.Compiled) error {
	job, err := f.jobs.View.Job(ctx, id)
	if err != nil {
		return err
	}
	ctl, err := f.jobs.View.Control(ctx, id)
	if err != nil {
		return err
	}

	// Its deadline may have been moved since it was compiled.
	stages := jobspec.NewStages(compiled, ctl)
	spec := job.Spec
	if now := stages.Current(); now != nil {
		spec = jobspec.ForStage(spec, now)
	}
	s.tenant, s.model, s.deadline, s.most = spec.Tenant, nameOf(&spec), spec.Deadline, int64(f.config.MaxCalls)

	took, err := f.jobs.Batches.Turnarounds(ctx, s.model)
	if err != nil {
		return err
	}
	if s.offer = f.config.Offer(&job.Spec); len(took) > 0 {
		s.offer.Soonest = slices.Min(took)
	}
	s.offer.FlexTakes = min(placement.FlexTakes, spec.UnitTimeout/2) // as workers have it

	bears := f.scheduler.Models.Allowances(s.made)
	s.bears = bears[s.model]
	call := f.callOf(job, &spec, s.bears.Pace)
	s.work = placement.Work{
		Units: max(1, job.TotalUnits-job.CompletedUnits-job.FailedUnits), Each: call.each, Call: call.took,
		AtOnce: int64(spec.Parallelism), Minute: call.minute(s.bears.Rates),
	}
	if p := job.Plan; p != nil {
		calls := float64(max(0, cmp.Or(p.Asking, p.Units)-(job.TotalUnits-ctl.ParseUnits))) * call.each
		s.work.Then = f.after(int64(math.Ceil(calls)), job, stages.Later(), bears)
	} else {
		s.work.Then = f.after(1, job, stages.Later(), bears)
	}

	affordable := f.affordable(job)
	s.work.AtOnce, s.work.Short = min(s.work.AtOnce, affordable), affordable < s.work.Units
	return nil
}

// nameOf returns the model that a job asks first, "provider/model".
func nameOf(spec *mapreduce.JobSpec) string { return spec.Provider + "/" + spec.Model }

// fewCalls is how many calls have to be known before what they took counts for more than what plans assume.
const fewCalls = 5

// A call is what one of a job takes.
type call struct {
	each    float64 // of a unit
	took    time.Duration
	in, out float64 // tokens
}

// callOf returns what a call takes of a job, by its plan and by what was measured of its model.
func (f *forecasts) callOf(job *mapreduce.Job, spec *mapreduce.JobSpec, pace model.Pace) call {
	r := f.config.Rates(spec)
	c := call{each: 1, took: r.CallTime, in: float64(r.Prompt + int64(spec.MaxTokensPerUnit)), out: float64(r.Answer)}
	if r.Rounds > 0 || r.Short != nil {
		c.each = 2
	}

	if p := job.Plan; p != nil && p.Calls > 0 {
		c.each = max(1, float64(p.Calls)/float64(max(1, cmp.Or(p.Asking, p.Units))))
		c.in, c.out = float64(p.Tokens.In)/float64(p.Calls), float64(p.Tokens.Out)/float64(p.Calls)
		if r.WriteRate > 0 {
			c.took += time.Duration(c.out / r.WriteRate * float64(time.Second))
		}
	}

	if pace.Calls >= fewCalls {
		c.took, c.in, c.out = time.Duration(pace.Seconds*float64(time.Second)), pace.In, pace.Out
	}
	return c
}

// minute returns how many such calls limits let begin in a minute; 0 if there is no limit.
func (c call) minute(limits mapreduce.Rates) int64 {
	least := math.Inf(1)
	for _, one := range [][2]float64{{float64(limits.Requests), 1}, {float64(limits.Input), c.in}, {float64(limits.Output), c.out}} {
		if rate, each := one[0], one[1]; rate > 0 && each > 0 {
			least = min(least, rate/each)
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return max(1, int64(least))
}

// after returns how long what comes after the units at hand takes in real time, whichever of the later stages makes
// the calls that the plan has beyond those: as if the slowest made all of them, and each other at least one.
func (f *forecasts) after(calls int64, job *mapreduce.Job, later []*pipeline.Stage, bears map[string]model.Allowance) time.Duration {
	var all, rest, slowest time.Duration // of all calls at the slowest, of one call at each, and of one at the slowest
	for _, stage := range later {
		spec := jobspec.ForStage(job.Spec, stage)
		a := bears[nameOf(&spec)]
		c := f.callOf(job, &spec, a.Pace)
		w := placement.Work{
			Units: max(1, calls), Call: c.took, Minute: c.minute(a.Rates),
			AtOnce: lower(int64(spec.Parallelism), int64(f.config.MaxCalls), a.Calls),
		}

		one := w.RealTime(1)
		rest += one
		if took := w.RealTime(w.Units); took >= all {
			all, slowest = took, one
		}
	}
	return all + rest - slowest
}

// affordable is how many calls a job can have reserved at once of what is left of its budget, each of which needs
// about as much as a call of its plan may; it has no less than one.
func (f *forecasts) affordable(job *mapreduce.Job) int64 {
	spec := &job.Spec
	tokens := int64(spec.MaxTokensPerUnit)
	if p := job.Plan; p != nil && p.Calls > 0 {
		tokens = p.Tokens.In / p.Calls
	}
	left, each := spec.Budget-spec.BudgetIn.Of(job.TotalTokens, job.CostMicros), f.config.Estimate(spec, tokens)
	if spec.Budget == 0 || each <= 0 {
		return math.MaxInt64
	}
	return max(1, left/each)
}

// mostRivals bounds the jobs of which it is read how they stand; of others it is taken that they ask all the while.
const mostRivals = 128

// rivalsOf returns the other jobs that ask models, or may have to by a deadline of theirs.
func (f *forecasts) rivalsOf(ctx context.Context, id mapreduce.JobID) (all []placement.Claim, err error) {
	runnable := f.scheduler.Runnable()
	slices.SortFunc(runnable, func(a, b schedule.Runnable) int { return cmp.Compare(a.Job, b.Job) })
	for _, r := range runnable {
		// What waits for its batches as long as they take is no rival, and neither is what waits for a person.
		if r.Job == id || r.Model == "" || r.Spec.Deadline.IsZero() && (r.Needs.Batched || !r.Busy) {
			continue
		}

		claim := placement.Claim{Tenant: string(r.Tenant), Model: r.Model, Work: placement.Work{Units: 1, AtOnce: r.Parallelism}, Left: placement.Ever}
		if !r.Spec.Deadline.IsZero() && len(all) < mostRivals {
			s, err := f.standingOf(ctx, r.Job)
			if errs.KindOf(err) == errs.NotFound {
				continue // it was deleted meanwhile
			}
			if err != nil {
				return nil, err
			}
			claim = s.claim(time.Now())
		}
		all = append(all, claim)
	}
	return all, nil
}

// claim returns what a job with a deadline has use for.
func (s *standing) claim(now time.Time) placement.Claim {
	return placement.Claim{Tenant: string(s.tenant), Model: s.model, Work: s.work, Offer: s.offer, Left: s.deadline.Sub(now)}
}

// among returns what is left of a job beside others in a fleet with so many slots; 0 if these are not known.
func (s *standing) among(others []placement.Claim, slots int64, now time.Time) *forecast {
	w := s.claim(now).Among(others, placement.Bounds{Calls: lower(s.most, slots), Model: s.bears.Calls})
	return &forecast{deadline: s.deadline, work: w, offer: s.offer}
}

// lower returns the lowest of limits of which 0 is none.
func lower(limits ...int64) (least int64) {
	for _, n := range limits {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// slotsFor is for how long slots of workers count that are gone: whoever is away for a moment comes back, and a batch
// that was ended does not.
const slotsFor = 5 * time.Minute

// fleetSlots returns how many slots the workers of all orchestrators have for jobs that ask models; 0 if none is known.
func (f *forecasts) fleetSlots(ctx context.Context) (int64, error) {
	now := time.Now()
	f.mu.Lock()
	slots, fresh := f.slots.most(), now.Sub(f.slots.seen) < f.config.Fresh
	f.mu.Unlock()
	if fresh {
		return slots, nil
	}

	n, err := f.jobs.Grants.FleetWants(ctx)
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slots.note(n, now)
	return f.slots.most(), nil
}

// A peak is the most that was seen of a number of late.
type peak struct {
	now, before int64
	since, seen time.Time
}

func (p *peak) most() int64 { return max(p.now, p.before) }

func (p *peak) note(n int64, at time.Time) {
	if at.Sub(p.since) >= slotsFor {
		p.now, p.before, p.since = 0, p.now, at
	}
	p.now, p.seen = max(p.now, n), at
}
