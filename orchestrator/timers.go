package orchestrator

import (
	"context"
	"sync"
	"time"
)

// timerLoop calls what is due.
func (o *Orchestrator) timerLoop(ctx context.Context) {
	var calls sync.WaitGroup
	defer calls.Wait()
	room := make(chan struct{}, timekept)
	call := func(fn func()) {
		room <- struct{}{}
		calls.Go(func() {
			defer func() { <-room }()
			fn()
		})
	}
	for {
		due := o.signals.TakeTimers(time.Now())
		for _, fn := range due.Calls {
			call(func() {
				o.supervisor.LogFailure(ctx, "what was due at a time", o.supervisor.ContainPanic(ctx, "a timer", func() error { fn(ctx); return nil }))
			})
		}
		for id, units := range due.Units {
			call(func() { o.supervisor.ForJob(ctx, id, "waking units", func() { o.wakeUnits(ctx, id, units) }) })
		}
		if len(due.Calls)+len(due.Units) > 0 {
			continue
		}
		t := time.NewTimer(due.Next)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-o.signals.TimerSignal.C():
		case <-t.C:
		}
		t.Stop()
	}
}

// timekept is how many calls the timekeeper makes at once: many workers may be
// lost in one moment.
const timekept = 16
