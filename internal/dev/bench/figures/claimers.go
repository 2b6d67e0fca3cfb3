package figures

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
	"github.com/coditect/mapreduce/orchestrator"
)

// Claimers is how often the transactions of many orchestrators conflict that
// claim units on one store, each for a worker of its own.
type Claimers struct {
	Count   int
	One     Contention // all of them work on one job
	Several Contention // each has submitted one, and all of them work on all
}

// A Contention is what a load of units that do nothing came to.
type Contention struct {
	Jobs, Units int
	Took        time.Duration // from the first job's readiness to the end of the last map level
	Claimants   int           // orchestrators that claimed any
	Commits     int64         // transactions that wrote
	Conflicts   int64         // runs of transactions that had to be made again
	Claims      int64         // of the commits, those that claimed
	Refused     int64         // of the conflicts, those of claims
}

// Rate returns the conflicts a commit.
func (c *Contention) Rate() float64 { return float64(c.Conflicts) / float64(c.Commits) }

// claimerSlots is how many slots each worker has: with 16 of them, 64 are busy.
const claimerSlots = 4

// MeasureClaimers measures it.
func MeasureClaimers(ctx context.Context, l *Lab) (*Claimers, error) {
	n := l.Units / 4
	c := &Claimers{Count: l.Claimers, One: Contention{Jobs: 1, Units: n}, Several: Contention{Jobs: l.Claimers, Units: n}}
	for _, load := range []*Contention{&c.One, &c.Several} {
		if err := l.InPlace(func(p rig.Place) error { return load.measureSystems(ctx, p, c.Count, l.Beat) }); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// measureSystems opens so many systems on one store, and has them share the load once
// they have heard of each other.
func (c *Contention) measureSystems(ctx context.Context, p rig.Place, claimers int, beat time.Duration) (err error) {
	kv, err := p.OpenStore()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kv.Close()) }()

	systems := make([]*rig.System, 0, claimers)
	defer func() {
		for _, s := range systems {
			err = errors.Join(err, s.Close())
		}
	}()

	for range claimers {
		s, err := rig.OpenOn(rig.UnclosedStore{Store: kv}, p, orchestrator.Config{Heartbeat: beat})
		if err != nil {
			return err
		}
		systems = append(systems, s)
		if _, err := s.RunWorker(&rig.Bencher{Output: 2}, claimerSlots, rig.PrefetchFor(claimerSlots)); err != nil {
			return err
		}
	}

	// After two heartbeats all have heard of each other.
	if err := clock.Sleep(ctx, 2*beat); err != nil {
		return err
	}

	return c.shareLoad(ctx, systems)
}

func (c *Contention) shareLoad(ctx context.Context, systems []*rig.System) error {
	ids := make([]mapreduce.JobID, c.Jobs)
	before := c.sumStats(systems)
	for i := range ids {
		var err error
		if ids[i], err = systems[i].SubmitDocuments(ctx, rig.NoopSpec(rig.BusySlots), c.Units/c.Jobs); err != nil {
			return err
		}
	}

	for i, id := range ids {
		err := systems[i].AwaitJob(ctx, id, func(j *mapreduce.Job) bool { return j.Level > 0 })
		if err != nil {
			return err
		}
	}

	// Only the map level counts, so the figures are taken before the reduces end.
	c.Took = time.Since(systems[0].Observer.ReadyAt(ids[0]))
	now := c.sumStats(systems)
	c.Commits, c.Conflicts = now.Commits-before.Commits, now.Conflicts-before.Conflicts
	c.Claims, c.Refused = now.Claims-before.Claims, now.Refused-before.Refused
	c.Claimants = now.Claimants

	for i, id := range ids {
		if err := systems[i].AwaitComplete(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// sumStats adds up what the systems' transactions have come to so far. As they go on, a
// part is read before the whole that it is of.
func (c *Contention) sumStats(systems []*rig.System) (sum Contention) {
	for _, s := range systems {
		n := int64(s.Observer.Claims.Len())
		sum.Claims += n
		if n > 0 {
			sum.Claimants++
		}
		sum.Commits += s.Jobs.DB().Stats().Commits.Load()
		sum.Refused += s.Observer.Refused.Load()
		sum.Conflicts += s.Observer.Conflicts.Load() // not the database's, which counts a conflict a little later
	}
	return sum
}

// Rows returns the report.
func (c *Claimers) Rows() []Row {
	row := func(what string, load *Contention) Row {
		return Row{
			fmt.Sprintf("conflicts of %d claimers on %s", c.Count, what), 100 * load.Rate(), "% of commits", atMost(1), fmt.Sprintf(
				"%d conflicts, %d commits; of claims, %d and %d, by %d orchestrators; %s units/s", load.Conflicts, load.Commits,
				load.Refused, load.Claims, load.Claimants, Number(rig.PerSecond(load.Units, load.Took))),
		}
	}

	return []Row{row("one job", &c.One), row(fmt.Sprintf("%d jobs", c.Several.Jobs), &c.Several)}
}
