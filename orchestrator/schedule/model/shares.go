package model

import (
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/limit"
)

// isLimited reports whether there is anything that workers have to keep to.
func (m *State) isLimited(now time.Time) bool {
	return m.Rates() != (mapreduce.Rates{}) || m.scope.Room > 0 || m.scope.Breaker.Open || now.Before(m.frozen)
}

// IsDealt reports whether workers are to be sent their shares: something limits them, or
// did when they were sent the last.
func (m *State) IsDealt(now time.Time) bool { return m.told || m.isLimited(now) }

// Deal divides what this node may ask of the model among workers by their weights. Shares
// are good for lease. If nothing limits the model any more, they say so.
func (m *State) Deal(weights []int64, lease time.Duration, now time.Time) []mapreduce.LimitShare {
	m.told = m.isLimited(now)
	parts := limit.Divide(m.share.Parts, weights)
	slots := limit.Divide(m.share.Slots, weights)

	all := make([]mapreduce.LimitShare, len(weights))
	for i := range all {
		share := mapreduce.LimitShare{Name: m.Name, Part: 1}
		if m.told {
			share.Rates, share.Left, share.For = m.Rates(), m.leftNow(now), lease
			share.Part = float64(parts[i]) / float64(limit.Whole)
			share.Pause = max(0, m.frozen.Sub(now))
			share.OpenFor, share.Probe = m.openFor(lease, now), m.IsProber()
		}

		if m.scope.Room > 0 {
			share.Calls = max(1, slots[i])
		}

		all[i] = share
	}
	return all
}

// openFor is for how long workers of this node are to make no call. A node that probes lets
// one call through; the others wait for its outcome.
func (m *State) openFor(lease time.Duration, now time.Time) time.Duration {
	if !m.scope.Breaker.Open || m.IsProber() {
		return 0
	}
	return max(0, m.until.Sub(now)) + lease
}

// Lifted returns the share of a worker that has come while nothing limits the model, as it
// may still keep to a share of another node. It returns false if workers have shares that
// limit them, or if this node does not know. A node without a share looks before it gives
// out units, and then sends its workers theirs.
func (m *State) Lifted(now time.Time) (mapreduce.LimitShare, bool) {
	return mapreduce.LimitShare{Name: m.Name, Part: 1}, m.HasShare() && !m.IsDealt(now)
}

// leftNow is about what is left of the rates: what the vendor said, and what has
// come since. Before it has said anything in this process, all. Of rates of which
// it says nothing, half: who comes anew cannot know what others have taken, and as
// one after the other comes, each to a smaller part, these halves add up to about
// what a vendor lets through at once.
func (m *State) leftNow(now time.Time) mapreduce.Rates {
	left := func(left, told, rate int64) int64 {
		switch {
		case told == 0:
			return rate / 2
		case m.leftAt.IsZero():
			return rate
		}
		return min(left+int64(float64(told)*now.Sub(m.leftAt).Minutes()), rate)
	}

	rates, told := m.Rates(), m.scope.Rates
	return mapreduce.Rates{
		Requests: left(m.left.Requests, told.Requests, rates.Requests),
		Input:    left(m.left.Input, told.Input, rates.Input),
		Output:   left(m.left.Output, told.Output, rates.Output),
	}
}
