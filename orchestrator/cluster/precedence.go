package cluster

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/lifecycle"
)

// Some transactions read what all orchestrators hold of a job or have done for it: grants
// of slots, the plan of the next level, seals. Of several such transactions at the same
// time only one can commit. All orchestrators learn at the same moment that one is due,
// so they wait for each other in an order that differs from job to job. The order is a
// courtesy: it saves conflicts, and nothing depends on it.

// An orchestrator waits at most maxPace for each one that goes first, and at most maxAside
// for all of them. If another one plans a level in many steps, it looks every lookPace how
// far the plan is, and goes on itself once there was no step for maxStep.
const (
	maxPace  = 50 * time.Millisecond
	maxAside = 250 * time.Millisecond
	lookPace = 50 * time.Millisecond
	maxStep  = time.Second
)

// keepPace notes how long this orchestrator's latest transaction took.
func (m *Membership) keepPace(took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.transactionPace, m.beatTook = min(took, maxPace), took
}

// turnPrecedence returns how many other orchestrators go first with a job, and how many
// are alive.
func (m *Membership) turnPrecedence(id mapreduce.JobID) (before, all int) {
	if m.config.NoPrecedence {
		return 0, 1
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // it never fails
	m.mu.Lock()
	defer m.mu.Unlock()
	all = m.liveNodes + 1
	return (m.rank + int(h.Sum64()%uint64(all))) % all, all
}

// YieldTurn waits for as long as the orchestrators that go first should need.
func (m *Membership) YieldTurn(ctx context.Context, id mapreduce.JobID) error {
	before, _ := m.turnPrecedence(id)
	if before == 0 {
		return nil
	}
	m.mu.Lock()
	pace := m.transactionPace
	m.mu.Unlock()
	return clock.Sleep(ctx, min(time.Duration(before)*pace, maxAside))
}

// GiveWay returns the status of a job whose level has ended, once no other orchestrator
// plans the next level. A planner that makes no step for maxStep is ignored.
func (m *Membership) GiveWay(ctx context.Context, id mapreduce.JobID, s *lifecycle.Status) (*lifecycle.Status, error) {
	if m.IsOnlyNode() || m.config.NoPrecedence {
		return s, nil
	}
	if err := m.YieldTurn(ctx, id); err != nil {
		return nil, err
	}

	above, moved := int64(0), time.Now()
	for {
		s, err := m.jobs.Levels.Status(ctx, id)
		if err != nil || !s.State.Running() || !s.Ended() || s.Next == 0 {
			return s, err
		}

		if s.Next != above {
			above, moved = s.Next, time.Now()
		} else if time.Since(moved) >= maxStep {
			return s, nil
		}

		if err := clock.Sleep(ctx, lookPace); err != nil {
			return nil, err
		}
	}
}

// TurnToSeal reports whether it is this orchestrator's turn to seal a job. As far as their
// clocks agree, it is each orchestrator's turn after the other's, so that all of them
// together seal a job as often as one alone would.
func (m *Membership) TurnToSeal(id mapreduce.JobID) bool {
	before, all := m.turnPrecedence(id)
	return int(time.Now().UnixNano()/int64(m.config.Seal)%int64(all)) == before
}
