package cluster

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/levels"
)

// Some transactions look at what all orchestrators hold or have done of a job, so
// that of those under way at once only one can win: grants of slots, the turn to
// the next level, seals. What makes one due, all see at the same time. So they let
// each other go first, in an order that is another for each job. It is a courtesy:
// nothing depends on it.

// maxPace bounds how long one waits for another that goes first, and maxAside how
// long for all of them. Who plans a level in many steps is looked at every lookPace,
// and not waited for any more once it has made none for maxStep.
const (
	maxPace  = 50 * time.Millisecond
	maxAside = 250 * time.Millisecond
	lookPace = 50 * time.Millisecond
	maxStep  = time.Second
)

// keepPace notes how long a transaction took.
func (m *Membership) keepPace(took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.transactionPace = min(took, maxPace)
}

// turnPrecedence returns how many others go first, of how many that live.
func (m *Membership) turnPrecedence(id mapreduce.JobID) (before, all int) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // it never fails
	m.mu.Lock()
	defer m.mu.Unlock()
	all = m.liveNodes + 1
	return (m.rank + int(h.Sum64()%uint64(all))) % all, all
}

// YieldTurn waits until those that go first should be done.
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

// GiveWay returns how far a job is whose level has ended, once nobody else turns it
// to the next. Who has planned a part of that, and does not go on, is not waited for.
func (m *Membership) GiveWay(ctx context.Context, id mapreduce.JobID, s *levels.Status) (*levels.Status, error) {
	if m.IsOnlyNode() {
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

// TurnToSeal is true of a job for one orchestrator after the other, so far as their
// clocks agree: together they seal it as often as one alone would.
func (m *Membership) TurnToSeal(id mapreduce.JobID) bool {
	before, all := m.turnPrecedence(id)
	return int(time.Now().UnixNano()/int64(m.config.Seal)%int64(all)) == before
}
