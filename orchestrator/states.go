package orchestrator

import (
	"context"
	"sync"

	"github.com/coditect/mapreduce/api/mapreduce"
)

// stateBacklog bounds the states, and reports behind them, that wait to be kept.
// Beyond that the stream of their session waits.
const stateBacklog = 16

// stateKeeper stores what agents have done beside the stream that brings it: a store
// that is slow to do so delays no report but those of the same attempts, for which
// the state has to be there first.
type stateKeeper struct {
	queue chan *mapreduce.FromWorker // each has one state, or one report

	mu      sync.Mutex             // guards the variable below
	waiting map[mapreduce.Held]int // in queue, by attempt
}

func newStateKeeper() *stateKeeper {
	return &stateKeeper{queue: make(chan *mapreduce.FromWorker, stateBacklog), waiting: make(map[mapreduce.Held]int)}
}

// attemptOf names the attempt of a message in the queue.
func attemptOf(m *mapreduce.FromWorker) mapreduce.Held {
	if len(m.States) > 0 {
		h := m.States[0].Held
		h.Running = false
		return h
	}
	r := &m.Reports[0]
	return mapreduce.Held{Job: r.Job, Unit: r.Unit, Attempt: r.Attempt}
}

// putMessage queues a message.
func (k *stateKeeper) putMessage(ctx context.Context, m *mapreduce.FromWorker) error {
	k.countQueued(attemptOf(m), 1)
	select {
	case k.queue <- m:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (k *stateKeeper) countQueued(h mapreduce.Held, n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.waiting[h] += n; k.waiting[h] == 0 {
		delete(k.waiting, h)
	}
}

// hasQueued reports whether something of an attempt is queued.
func (k *stateKeeper) hasQueued(h mapreduce.Held) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.waiting[h] > 0
}

// deferReports queues the states of a message that came before its other parts, and takes
// out the reports that have to wait for what is queued.
func (k *stateKeeper) deferReports(ctx context.Context, m *mapreduce.FromWorker) error {
	var now []mapreduce.Report
	for _, r := range m.Reports { // which stand before states in a message
		behind := &mapreduce.FromWorker{Reports: []mapreduce.Report{r}}
		if !k.hasQueued(attemptOf(behind)) {
			now = append(now, r)
		} else if err := k.putMessage(ctx, behind); err != nil {
			return err
		}
	}
	m.Reports = now
	for _, s := range m.States {
		if err := k.putMessage(ctx, &mapreduce.FromWorker{States: []mapreduce.AgentState{s}}); err != nil {
			return err
		}
	}
	return nil
}

// keepStates deals with what a session's keeper has queued, until its stream ends. An
// error is that of the stream.
func (o *Orchestrator) keepStates(ctx context.Context, s *session) error {
	for {
		select {
		case m := <-s.states.queue:
			attempt := attemptOf(m) // before a report is taken out of it, to be checked later
			if err := o.keepNext(ctx, s, m); err != nil {
				return err
			}
			s.states.countQueued(attempt, -1)
		case <-ctx.Done():
			return nil
		}
	}
}

func (o *Orchestrator) keepNext(ctx context.Context, s *session, m *mapreduce.FromWorker) error {
	if len(m.Reports) > 0 {
		_, err := o.hearReports(ctx, s, m)
		return err
	}
	return o.supervisor.RetryStoreCall(ctx, "keeping what an agent has done", func() error {
		_, err := o.jobs.Content.KeepState(ctx, m.States[0])
		return err
	})
}
