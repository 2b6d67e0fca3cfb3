package lifecycle

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/cluster"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// sleepersPage is how many units that back off, and how many parked ones, one poll
// of a job looks at.
const sleepersPage = 1000

// FindSleepers times the units of a job that back off, and further ones of those that
// are parked, from now for those that are seen for the first time.
func (m *Manager) FindSleepers(ctx context.Context, id mapreduce.JobID) error {
	refs, next, err := m.jobs.Queue.Sleepers(ctx, id, m.scheduler.SleepersAfter(id), sleepersPage)
	if err != nil {
		return err
	}
	m.scheduler.SleepersSeen(id, next)
	for _, ref := range refs {
		m.ScheduleWakeUp(id, ref)
	}
	return nil
}

// ScheduleWakeUp wakes a unit when it has slept long enough from now, unless its sleep is
// timed already.
func (m *Manager) ScheduleWakeUp(id mapreduce.JobID, ref records.SleeperRef) {
	m.signals.SleepUntil(time.Now().Add(ref.For), cluster.Sleeper{Job: id, Sleeper: ref.Sleeper})
}

// wakeBatch is how many units are woken in one transaction.
const wakeBatch = 200

// wakeUnits puts units that have slept long enough into their queue.
func (m *Manager) wakeUnits(ctx context.Context, id mapreduce.JobID, units []records.Sleeper) {
	for batch := range slices.Chunk(units, wakeBatch) {
		woken, err := m.jobs.Queue.Wakeup(ctx, id, batch)
		if err != nil && errs.KindOf(err) != errs.NotFound {
			m.supervisor.LogFailure(ctx, "waking units; trying again", err, "job", id, "units", len(batch))
			if cluster.IsPermanent(err) && m.supervisor.FailJob(ctx, id, err) {
				continue // a resume sees to them
			}
			for _, s := range batch {
				m.ScheduleWakeUp(id, records.SleeperRef{Sleeper: s, For: time.Second})
			}
		}

		m.scheduler.Enqueue(id, woken)
	}
}

// TimerLoop calls what is due.
func (m *Manager) TimerLoop(ctx context.Context) {
	var calls sync.WaitGroup
	defer calls.Wait()

	room := make(chan struct{}, timekept)
	call := func(fn func()) {
		// The loop waits while as many calls run as may.
		room <- struct{}{}
		calls.Go(func() {
			defer func() { <-room }()
			fn()
		})
	}

	for {
		due := m.signals.TakeTimers(time.Now())
		for _, fn := range due.Calls {
			call(func() {
				m.supervisor.LogFailure(ctx, "what was due at a time", m.supervisor.ContainPanic(ctx, "a timer", func() error { fn(ctx); return nil }))
			})
		}

		for id, units := range due.Units {
			call(func() { m.supervisor.ForJob(ctx, id, "waking units", func() { m.wakeUnits(ctx, id, units) }) })
		}

		if len(due.Calls)+len(due.Units) > 0 {
			continue
		}

		t := time.NewTimer(due.Next)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-m.signals.TimerSignal.C():
		case <-t.C:
		}
		t.Stop()
	}
}

// timekept is how many calls TimerLoop makes at once: many workers may be lost in one
// moment.
const timekept = 16
