package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/costs"
	"github.com/coditect/mapreduce/internal/placement"
)

// readDeadline returns the deadline that the flags give, or the pipeline; the zero time if they give none.
func (j *jobFlags) readDeadline(flags *pflag.FlagSet, now time.Time) (time.Time, error) {
	if !flags.Changed("deadline") {
		return time.Time{}, nil // the service looks in the pipeline
	}
	for _, other := range []string{"batch", parameters.Tier.Flag()} {
		if flags.Changed(other) {
			return time.Time{}, exit.UsageError("--deadline: chooses the tier of each call, by batch where there is time for it; leave out --%s", other)
		}
	}

	return parseDeadline(j.deadline, now)
}

// parseDeadline reads the value of --deadline.
func parseDeadline(text string, now time.Time) (time.Time, error) {
	at, err := clock.ParseDeadline(text, now)
	if err != nil {
		return time.Time{}, flagFault("deadline", err)
	}
	if !at.After(now) {
		return time.Time{}, exit.UsageError("--deadline: %s is past", at.Format(moment))
	}
	return at, nil
}

// moment is how times are shown.
const moment = "2006-01-02 15:04 MST"

// tierLines says what a job costs in each tier of its model, and of one with a deadline also when it ends so, and what
// is chosen.
func (p *planner) tierLines(spec *mapreduce.JobSpec, planned *mapreduce.Plan, tiers []costs.TierCost, now time.Time) (lines []string, err error) {
	deadline := planned.Deadline // which the pipeline may say
	if deadline.IsZero() {
		for _, t := range tiers {
			lines = append(lines, fmt.Sprintf("in the tier %s: %s expected", t.Tier, mapreduce.DollarText(t.Micros)))
		}
		return lines, nil
	}

	offers, err := p.app.Runners.Offers()
	if err != nil {
		return nil, err
	}
	offer := offers(spec)
	offer.FlexTakes = min(placement.FlexTakes, spec.UnitTimeout/2)
	if all := planned.Turnarounds; len(all) > 0 {
		offer.Soonest = slices.Min(all)
	}
	lines = deadlineLines(deadline.In(now.Location()), placedWork(&planned.Estimate), offer, tiers, now)
	return append(lines, turnaroundLine(planned.Turnarounds)...), nil
}

// turnaroundLine says how long batches took of late.
func turnaroundLine(all []time.Duration) []string {
	if len(all) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(all))
	shown := func(d time.Duration) time.Duration { return d.Round(time.Second) }
	return []string{fmt.Sprintf("batches of the model in the last day: %d, the quickest in %v, half of them within %v, the slowest in %v",
		len(sorted), shown(sorted[0]), shown(sorted[(len(sorted)-1)/2]), shown(sorted[len(sorted)-1]))}
}

// placedWork returns what a plan says of the calls of its job, as placement has it.
func placedWork(e *mapreduce.PlanEstimate) placement.Work {
	calls, atOnce := max(1, e.Expected.Calls), int64(max(1, e.Parallelism))
	rounds := (calls-1)/atOnce + 1
	return placement.Work{Units: calls, AtOnce: atOnce, Call: e.Makespan / time.Duration(rounds)}
}

// deadlineLines says what is chosen for a job with a deadline, and what each choice costs and when it ends.
func deadlineLines(deadline time.Time, w placement.Work, o placement.Offer, tiers []costs.TierCost, now time.Time) []string {
	left, takes := deadline.Sub(now), w.RealTime(w.Units)
	lines := []string{fmt.Sprintf("deadline: %s, in %v", deadline.Format(moment), left.Round(time.Second))}

	waits := placement.MayJoin(w, o, left)
	until := deadline.Add(-placement.Until(w, o, waits))
	switch {
	case waits == 0:
		lines = append(lines, fmt.Sprintf("chosen: all calls at once, tier %s, as no time is left in which a batch could be waited for", placement.RealTimeTier(w, o, left)))
	case waits < w.Units:
		lines = append(lines, fmt.Sprintf("chosen: %d of %d calls by batch, as no more could still be made in real time; what has not come by %s and later is made then", waits, w.Units, until.Format(moment)))
	default:
		lines = append(lines, fmt.Sprintf("chosen: by batch, and what has not come by %s is made in real time", until.Format(moment)))
	}

	var standard int64
	for _, t := range tiers {
		if t.Tier == parameters.Standard {
			standard = t.Micros
		}
	}
	end := now.Add(takes).Format(moment)
	for _, t := range tiers {
		cost := mapreduce.DollarText(t.Micros)
		switch t.Tier {
		case parameters.Batch:
			lines = append(lines, fmt.Sprintf("in the tier %s: %s expected, and %s if nothing comes in time; ends when the batch does, and by the deadline", t.Tier, cost, mapreduce.DollarText(standard)))
		case parameters.Flex:
			lines = append(lines, fmt.Sprintf("in the tier %s: %s expected; ends at about %s if there is room, and later or for more if there is not", t.Tier, cost, end))
		case parameters.Priority:
			lines = append(lines, fmt.Sprintf("in the tier %s: %s expected; ends at about %s, or sooner", t.Tier, cost, end))
		default:
			lines = append(lines, fmt.Sprintf("in the tier %s: %s expected; ends at about %s", t.Tier, cost, end))
		}
	}
	return lines
}
