package model

import (
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store/jobs/limit"
)

// isLimited reports whether there is anything that workers have to keep to.
func (s *State) isLimited(now time.Time) bool {
	return s.Rates() != (mapreduce.Rates{}) || s.scope.Room > 0 || s.scope.Breaker.Open || now.Before(s.frozen)
}

// IsDealt reports whether workers are to be sent their shares: something limits them, or
// did when they were sent the last.
func (s *State) IsDealt(now time.Time) bool { return s.told || s.isLimited(now) }

// Deal divides what this node may ask of the model among workers by their weights. Shares
// are good for lease. If nothing limits the model any more, they say so.
func (s *State) Deal(weights []int64, lease time.Duration, now time.Time) []protocol.LimitShare {
	s.told = s.isLimited(now)
	parts := limit.Divide(s.share.Parts, weights)
	slots := limit.Divide(s.share.Slots, weights)

	all := make([]protocol.LimitShare, len(weights))
	for i := range all {
		share := protocol.LimitShare{Name: s.Name, Part: 1}
		if s.told {
			share.Rates, share.Left, share.For = s.Rates(), s.leftNow(now), lease
			share.Part = float64(parts[i]) / float64(limit.Whole)
			share.Pause = max(0, s.frozen.Sub(now))
			share.OpenFor, share.Probe = s.openFor(lease, now), s.IsProber()
		}

		if s.scope.Room > 0 {
			share.Calls = max(1, slots[i])
		}

		all[i] = share
	}
	return all
}

// openFor is for how long workers of this node are to make no call. A node that probes lets
// one call through; the others wait for its outcome.
func (s *State) openFor(lease time.Duration, now time.Time) time.Duration {
	if !s.scope.Breaker.Open || s.IsProber() {
		return 0
	}
	return max(0, s.until.Sub(now)) + lease
}

// Lifted returns the share of a worker that has come while nothing limits the model, as it
// may still keep to a share of another node. It returns false if workers have shares that
// limit them, or if this node does not know. A node without a share looks before it gives
// out units, and then sends its workers theirs.
func (s *State) Lifted(now time.Time) (protocol.LimitShare, bool) {
	return protocol.LimitShare{Name: s.Name, Part: 1}, s.HasShare() && !s.IsDealt(now)
}

// leftNow is about what is left of the rates: what the vendor said, and what has
// come since. Before it has said anything in this process, all. Of rates of which
// it says nothing, half: who comes anew cannot know what others have taken, and as
// one after the other comes, each to a smaller part, these halves add up to about
// what a vendor lets through at once.
func (s *State) leftNow(now time.Time) mapreduce.Rates {
	left := func(left, told, rate int64) int64 {
		switch {
		case told == 0:
			return rate / 2
		case s.leftAt.IsZero():
			return rate
		}
		return min(left+int64(float64(told)*now.Sub(s.leftAt).Minutes()), rate)
	}

	rates, told := s.Rates(), s.scope.Rates
	return mapreduce.Rates{
		Requests: left(s.left.Requests, told.Requests, rates.Requests),
		Input:    left(s.left.Input, told.Input, rates.Input),
		Output:   left(s.left.Output, told.Output, rates.Output),
	}
}
