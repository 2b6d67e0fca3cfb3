package batches

import (
	"context"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/internal/placement"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/orchestrator/schedule/model"
	kept "github.com/coditect/mapreduce/store/jobs/batches"
)

// A forecast is what is left of a job with a deadline, as it was known a moment ago. It never changes.
type forecast struct {
	deadline time.Time
	work     placement.Work
	offer    placement.Offer
	made     time.Time
}

// forecastOf returns what is left of a job; nil if it has no deadline.
func (b *Batches) forecastOf(ctx context.Context, id mapreduce.JobID) (*forecast, error) {
	now := time.Now()
	b.mu.Lock()
	f := b.forecasts[id]
	b.mu.Unlock()
	switch {
	case f != nil && f.deadline.IsZero(): // which never changes
		return nil, nil
	case f != nil && now.Sub(f.made) < b.config.Fresh:
		return f, nil
	}

	compiled, err := b.specs.Job(ctx, id)
	if err != nil {
		return nil, err
	}
	if compiled.Spec.Deadline.IsZero() {
		b.keepForecast(id, &forecast{made: now})
		return nil, nil
	}
	job, err := b.jobs.View.Job(ctx, id)
	if err != nil {
		return nil, err
	}

	spec := compiled.Spec
	took, err := b.jobs.Batches.Turnarounds(ctx, spec.Provider+"/"+spec.Model)
	if err != nil {
		return nil, err
	}
	pace := b.scheduler.Models.Allowances(now)[spec.Provider+"/"+spec.Model]
	f = &forecast{
		deadline: spec.Deadline, offer: b.config.Offer(spec), made: now,
		work: workOf(job, len(compiled.Graph.Pipeline().Stages), b.config.Rates(spec), pace, b.config.MaxCalls),
	}
	if len(took) > 0 {
		f.offer.Soonest = slices.Min(took)
	}
	f.work.AtOnce = min(f.work.AtOnce, b.affordable(job))
	b.keepForecast(id, f)
	return f, nil
}

// Forecasts that nobody asked for in forecastsFor are forgotten once there are more than mostForecasts.
const (
	mostForecasts = 256
	forecastsFor  = time.Minute
)

func (b *Batches) keepForecast(id mapreduce.JobID, f *forecast) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.forecasts) >= mostForecasts {
		for other, old := range b.forecasts {
			if f.made.Sub(old.made) > forecastsFor {
				delete(b.forecasts, other)
			}
		}
	}
	b.forecasts[id] = f
}

// fewCalls is how many calls have to be known before what they took counts for more than what plans assume.
const fewCalls = 5

// workOf returns what is left of a job with so many stages, by what plans assume of its calls and what was
// measured of its model.
func workOf(job *mapreduce.Job, stages int, r plan.Rates, a model.Allowance, maxCalls int) placement.Work {
	units, each, took := job.TotalUnits, int64(1), r.CallTime
	if p := job.Plan; p != nil {
		units = max(units, p.Units)
		each = max(1, (p.Calls-1)/max(1, p.Units)+1)
		if r.WriteRate > 0 {
			took += time.Duration(float64(p.Tokens.Out) / float64(max(1, p.Calls)) / r.WriteRate * float64(time.Second))
		}
	}
	if a.Pace.Calls >= fewCalls {
		took = time.Duration(a.Pace.Seconds * float64(time.Second))
	}

	// Units that only compute count as calls, too: that is on the safe side.
	w := placement.Work{
		Calls: max(1, units-job.CompletedUnits-job.FailedUnits) * each, Call: took, Minute: a.Rates.Requests,
		AtOnce: int64(min(job.Spec.Parallelism, maxCalls)),
	}
	w.Chain = min(w.Calls, int64(stages)*each+1)
	if a.Calls > 0 {
		w.AtOnce = min(w.AtOnce, a.Calls)
	}
	return w
}

// affordable is how many calls a job can have reserved at once of what is left of its budget, each of which needs
// about as much as a call of its plan may; it has no less than one.
func (b *Batches) affordable(job *mapreduce.Job) int64 {
	spec := &job.Spec
	tokens := int64(spec.MaxTokensPerUnit)
	if p := job.Plan; p != nil && p.Calls > 0 {
		tokens = p.Tokens.In / p.Calls
	}
	left, each := spec.Budget-spec.BudgetIn.Of(job.TotalTokens, job.CostMicros), b.config.Estimate(spec, tokens)
	if spec.Budget == 0 || each <= 0 {
		return math.MaxInt64
	}
	return max(1, left/each)
}

// left is how much time is left.
func (f *forecast) left(now time.Time) time.Duration { return f.deadline.Sub(now) }

// A roomFunc says what an account at a provider may have of batches of a model.
type roomFunc = func(provider, model string) mapreduce.BatchRoom

// roomOf returns what batches of a job may have, of what their account may: one has no more lines than may be ended
// together. f is nil of a job without a deadline, and room where no limits are known.
func (f *forecast) roomOf(room roomFunc) roomFunc {
	if f == nil {
		return room
	}
	most := placement.BatchOf(f.work, f.offer, f.left(time.Now()))
	if most == 0 {
		return room
	}

	return func(provider, model string) (r mapreduce.BatchRoom) {
		if room != nil {
			r = room(provider, model)
		}
		if r.Lines == 0 || most < r.Lines {
			r.Lines = most
		}
		return r
	}
}

// rescue has lines of a job that runs asked in real time that may not wait any longer for a batch, and reports
// whether it changed anything. f is nil of a job without a deadline.
func (b *Batches) rescue(ctx context.Context, id mapreduce.JobID, s *kept.Standing, f *forecast) (changed bool, err error) {
	if f == nil || !s.State.Running() {
		return false, nil
	}
	most := placement.MayWait(f.work, f.offer, f.left(time.Now()))
	if s.Open <= most {
		return false, nil
	}

	// What is left after so many transactions is due with the next look.
	for range maxPlans {
		var res *kept.Result
		err := b.supervisor.RetryStoreCall(ctx, "ending batches for a deadline", func() (err error) {
			res, err = b.jobs.Batches.Rescue(ctx, id, most)
			return err
		})
		if err != nil {
			return changed, err
		}
		b.apply(ctx, id, res)
		if !res.Changed {
			break
		}
	}
	return true, nil
}

// TierOf returns the tier in which the calls of a unit are made of a job with a deadline, as the parameter of
// that name has it; "" of another job. Where not all calls may wait for a batch, which of them may is drawn by
// their units, so that it is the same for each attempt. What is not known for want of the store is not waited
// for: the unit is asked at once.
func (b *Batches) TierOf(ctx context.Context, id mapreduce.JobID, spec *mapreduce.JobSpec, unit mapreduce.UnitID) string {
	if spec.Deadline.IsZero() {
		return ""
	}
	f, err := b.forecastOf(ctx, id)
	if err != nil || f == nil {
		b.supervisor.LogFailure(ctx, "reading what is left of a job with a deadline", err, "job", id)
		return parameters.Standard
	}

	left := f.left(time.Now())
	if waits := placement.MayJoin(f.work, f.offer, left); waits > 0 && share(unit) < float64(waits)/float64(f.work.Calls) {
		return parameters.Batch
	}
	return placement.RealTimeTier(f.work, f.offer, left)
}

// share is a number from 0 to 1 that is drawn by the name of a unit.
func share(unit mapreduce.UnitID) float64 {
	h := fnv.New32a()
	h.Write([]byte(unit))
	return float64(h.Sum32()) / (1 << 32)
}

// Until returns when the batches of a job with a deadline are ended, as it stands now; the zero time of another
// job, or of one of which nothing waits.
func (b *Batches) Until(ctx context.Context, id mapreduce.JobID) (time.Time, error) {
	f, err := b.forecastOf(ctx, id)
	if err != nil || f == nil {
		return time.Time{}, err
	}
	open, err := b.jobs.Batches.Open(ctx, id)
	if err != nil || open == 0 {
		return time.Time{}, err
	}
	return f.deadline.Add(-placement.Until(f.work, f.offer, min(open, f.work.Calls))), nil
}
