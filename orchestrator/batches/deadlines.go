package batches

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/placement"
	kept "github.com/coditect/mapreduce/store/jobs/batches"
)

// A roomFunc says what an account at a provider may have of batches of a model.
type roomFunc = func(provider, model string) protocol.BatchRoom

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

	return func(provider, model string) (r protocol.BatchRoom) {
		if room != nil {
			r = room(provider, model)
		}
		if r.Lines == 0 || most < r.Lines {
			r.Lines = most
		}
		return r
	}
}

// rescue has lines of a job that runs asked in real time that may not wait any longer for a batch. It reports whether
// it changed anything, and whether lines are left that may go in no batch. f is nil of a job without a deadline.
func (b *Batches) rescue(ctx context.Context, id mapreduce.JobID, s *kept.Standing, f *forecast) (changed, more bool, err error) {
	if f == nil || !s.State.Running() {
		return false, false, nil
	}
	most := placement.MayWait(f.work, f.offer, f.left(time.Now()))
	if s.Open <= most {
		return false, false, nil
	}

	// What is left after so many transactions is due with the next look: other jobs wait for theirs.
	for range maxPlans {
		var res *kept.Result
		err := b.supervisor.RetryStoreCall(ctx, "ending batches for a deadline", func() (err error) {
			res, err = b.jobs.Batches.Rescue(ctx, id, most)
			return err
		})
		if err != nil {
			return changed, false, err
		}
		b.apply(ctx, id, res)
		if !res.Changed {
			return changed, false, nil
		}
		changed = true
	}
	return changed, true, nil
}

// TierOf returns the tier in which the calls of a unit are made of a job with a deadline, as the parameter of that
// name has it, and the tier of those of them that no batch can answer; "" of another job. Where not all units may
// wait for a batch, which of them may is drawn by their names, so that it is the same for each attempt. What is not
// known for want of the store is not waited for: the unit is asked at once.
func (b *Batches) TierOf(ctx context.Context, id mapreduce.JobID, spec *mapreduce.JobSpec, unit mapreduce.UnitID) (tier, realTime string) {
	if spec.Deadline.IsZero() {
		return "", ""
	}
	f, err := b.forecasts.of(ctx, id)
	if err != nil {
		b.supervisor.LogFailure(ctx, "reading what is left of a job with a deadline", err, "job", id)
	}
	if f == nil {
		return parameters.Standard, parameters.Standard
	}

	left := f.left(time.Now())
	realTime = placement.RealTimeTier(f.work, f.offer, left)
	if waits := placement.MayJoin(f.work, f.offer, left); waits > 0 && share(unit) < float64(waits)/float64(f.work.Units) {
		return parameters.Batch, realTime
	}
	return realTime, realTime
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
	f, err := b.forecasts.of(ctx, id)
	if err != nil || f == nil {
		return time.Time{}, err
	}
	open, err := b.jobs.Batches.Open(ctx, id)
	if err != nil || open == 0 {
		return time.Time{}, err
	}
	return f.deadline.Add(-placement.Until(f.work, f.offer, min(open, f.work.Units))), nil
}
