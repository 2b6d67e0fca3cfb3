package model

import (
	"math"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store/jobs/limit"
)

// A standing is how this node stands with a model: what its owner set, what the fleet knew of
// it at the latest look, and what part of that is this node's.
type standing struct {
	node  mapreduce.NodeID
	set   Limits
	scope limit.Scope
	share limit.Share
}

// Rates are the lower of those that the vendor told and those that are configured.
func (s *standing) Rates() mapreduce.Rates {
	lower := func(told, set int64) int64 {
		if told == 0 || set == 0 {
			return max(told, set)
		}
		return min(told, set)
	}

	told, set := s.scope.Rates, s.set.Rates
	return mapreduce.Rates{
		Requests: lower(told.Requests, set.Requests), Input: lower(told.Input, set.Input), Output: lower(told.Output, set.Output),
	}
}

// IsProber reports whether it is this node that may make one call to see whether
// all is well again.
func (s *standing) IsProber() bool { return s.scope.Breaker.Open && s.scope.Breaker.Prober == s.node }

// HasShare reports whether this node has a share of the limits.
func (s *standing) HasShare() bool { return s.share != (limit.Share{}) }

// MayHold returns how many slots of a job this node has use for by the limits;
// math.MaxInt64 is no limit. Others may have the rest: those who probe, or have more of
// what the fleet may call at once.
func (s *standing) MayHold(spec *mapreduce.JobSpec) int64 {
	switch {
	case s.HoldsBack(spec):
		return s.probes()
	case s.scope.Room > 0 && s.share.Slots < s.share.Want: // else it has what it wants, be that little
		return s.share.Slots
	}
	return math.MaxInt64
}

// probes returns how many units may probe here.
func (s *standing) probes() int64 {
	if s.IsProber() {
		return 1
	}
	return 0
}

// HoldsBack reports whether a job waits until the model's breaker is closed again.
func (s *standing) HoldsBack(spec *mapreduce.JobSpec) bool {
	return s.scope.Breaker.Open && spec.OnBreaker != mapreduce.BreakerSkip
}
