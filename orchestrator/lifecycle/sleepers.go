package lifecycle

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/outcome/gate"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/jobs/review"
)

// sleepers wakes units whose time has come, and calls whatever else is due at a time.
type sleepers struct {
	jobs       *jobs.Jobs
	scheduler  *schedule.Scheduler
	signals    *cluster.Signals
	supervisor *cluster.Supervisor
	endWaits   func(context.Context, mapreduce.JobID, []records.Sleeper) ([]records.Candidate, []error, error)
}

// sleepersPage is how many units that back off, and how many parked ones, one poll
// of a job looks at.
const sleepersPage = 1000

// find times the units of a job that back off, and further ones of those that
// are parked, from now for those that are seen for the first time.
func (s *sleepers) find(ctx context.Context, id mapreduce.JobID) error {
	refs, next, err := s.jobs.Queue.Sleepers(ctx, id, s.scheduler.SleepersAfter(id), sleepersPage)
	if err != nil {
		return err
	}
	s.scheduler.SleepersSeen(id, next)
	for _, ref := range refs {
		s.signals.WakeLater(id, ref)
	}
	return nil
}

// wakeBatch is how many units are woken in one transaction.
const wakeBatch = 200

// wakeUnits puts units that have slept long enough into their queue. Those that waited for people are told what these
// have decided until now, which takes longer: they come last. Between two transactions others have their turn.
func (s *sleepers) wakeUnits(ctx context.Context, id mapreduce.JobID, units []records.Sleeper, giveWay func()) {
	var rest, waited []records.Sleeper
	for _, one := range units {
		if gate.IsHandle(one.Handle) {
			waited = append(waited, one)
		} else {
			rest = append(rest, one)
		}
	}

	for batch := range slices.Chunk(rest, wakeBatch) {
		woken, err := s.jobs.Queue.Wakeup(ctx, id, batch)
		s.wokeUp(ctx, id, batch, woken, err)
		giveWay()
	}
	for batch := range slices.Chunk(waited, review.MaxOverdue) {
		s.endSome(ctx, id, batch)
		giveWay()
	}
}

// endSome lets some units go on that waited for people. What goes wrong with one holds no other up.
func (s *sleepers) endSome(ctx context.Context, id mapreduce.JobID, batch []records.Sleeper) {
	woken, failed, err := s.endWaits(ctx, id, batch)
	var others []records.Sleeper
	for i, one := range batch {
		if failed[i] != nil {
			s.wokeUp(ctx, id, []records.Sleeper{one}, nil, failed[i])
		} else {
			others = append(others, one)
		}
	}
	s.wokeUp(ctx, id, others, woken, err)
}

// wokeUp tells the scheduler of units that were woken, and has those tried again that were not, for an error.
func (s *sleepers) wokeUp(ctx context.Context, id mapreduce.JobID, batch []records.Sleeper, woken []records.Candidate, err error) {
	if err != nil && errs.KindOf(err) != errs.NotFound {
		s.supervisor.LogFailure(ctx, "waking units; trying again", err, "job", id, "units", len(batch))
		if cluster.IsPermanent(err) && s.supervisor.FailJob(ctx, id, err) {
			return // a resume sees to them
		}
		for _, one := range batch {
			s.signals.WakeLater(id, records.SleeperRef{Sleeper: one, For: time.Second})
		}
	}

	s.scheduler.Enqueue(id, woken)
}

// loop calls what is due.
func (s *sleepers) loop(ctx context.Context) {
	var calls sync.WaitGroup
	defer calls.Wait()

	room := make(chan struct{}, timekept)
	giveWay := func() { // to whoever waits for room, and so does the loop
		<-room
		room <- struct{}{}
	}
	call := func(fn func()) {
		// The loop waits while as many calls run as may.
		room <- struct{}{}
		calls.Go(func() {
			defer func() { <-room }()
			fn()
		})
	}

	for {
		due := s.signals.TakeTimers(time.Now())
		for _, fn := range due.Calls {
			call(func() {
				s.supervisor.LogFailure(ctx, "what was due at a time", s.supervisor.ContainPanic(ctx, "a timer", func() error { fn(ctx); return nil }))
			})
		}

		for id, units := range due.Units {
			call(func() { s.supervisor.ForJob(ctx, id, "waking units", func() { s.wakeUnits(ctx, id, units, giveWay) }) })
		}

		if len(due.Calls)+len(due.Units) > 0 {
			continue
		}

		t := time.NewTimer(due.Next)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-s.signals.TimerSignal.C():
		case <-t.C:
		}
		t.Stop()
	}
}

// timekept is how many calls loop makes at once: many workers may be lost in one
// moment.
const timekept = 16
