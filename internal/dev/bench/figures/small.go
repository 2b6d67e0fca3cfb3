package figures

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/coditect/mapreduce/internal/dev/bench/rig"
)

// SmallJobs is how fast jobs of one document are taken in, from the call until its answer.
type SmallJobs struct {
	Jobs    int
	Took    time.Duration // of all, submitted by some callers at once
	Alone   time.Duration // of a tenth of them, submitted one after the other
	Cluster bool
}

// smallCallers is how many callers submit at once, each as soon as it has its last answer.
const smallCallers = 32

// PerSecond returns the jobs submitted a second.
func (s *SmallJobs) PerSecond() float64 { return rig.PerSecond(s.Jobs, s.Took) }

// MeasureSmallJobs measures it.
func MeasureSmallJobs(ctx context.Context, l *Lab) (*SmallJobs, error) {
	small := &SmallJobs{Jobs: l.Small, Cluster: l.Cluster != ""}
	return small, l.WithSystem(func(s *rig.System) error {
		start := time.Now()
		if err := submitSmall(ctx, s, small.Jobs, smallCallers); err != nil {
			return err
		}
		small.Took = time.Since(start)

		start = time.Now()
		err := submitSmall(ctx, s, small.Jobs/10, 1)
		small.Alone = time.Since(start)
		return err
	})
}

// submitSmall submits n jobs of one document, by some callers at once.
func submitSmall(ctx context.Context, s *rig.System, n, callers int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(callers)
	for range n {
		group.Go(func() error {
			_, err := s.SubmitDocuments(ctx, rig.NoopSpec(rig.BusySlots), 1)
			return err
		})
	}
	return group.Wait()
}

// Rows returns the report.
func (s *SmallJobs) Rows() []Row {
	goal := atLeast(1000)
	if s.Cluster {
		goal = nil
	}
	return []Row{{"submission, jobs of one document", s.PerSecond(), "jobs/s", goal, fmt.Sprintf(
		"%d callers at once; one alone %s jobs/s", smallCallers, Number(rig.PerSecond(s.Jobs/10, s.Alone)))}}
}
