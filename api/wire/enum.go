package wire

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// Most enumerations have the same numbers on both sides, zero being unknown.
// Those whose zero means something here are one higher in the messages, where
// zero takes that default.

// The last enumerators, beyond which numbers are refused or unknown.
const (
	lastJobState     = mapreduce.JobPaused
	lastUnitState    = mapreduce.UnitCancelled
	lastUnitKind     = mapreduce.KindDirect
	lastEventKind    = mapreduce.EventRetried
	lastOutcome      = mapreduce.Parked
	lastVerdict      = mapreduce.Gone
	lastFailureClass = mapreduce.PermanentJob
	lastOnError      = mapreduce.FailFast
	lastOnBreaker    = mapreduce.BreakerSkip
	lastSeverity     = mapreduce.Wrong
	lastStrategy     = mapreduce.StrategyAdaptive
	lastCapture      = mapreduce.CaptureFull
)

// known converts an enumerator of a reply; those it does not know become zero.
func known[E ~uint8, P ~int32](p P, last E) E {
	if p < 0 || p > P(last) {
		return 0
	}
	return E(p)
}

// member converts an enumerator of a request, which must be one of the named.
func member[E ~uint8, P ~int32](d *decoder, field string, p P, last E) E {
	if p < 1 || p > P(last) {
		d.refuse(field, "has no value %d", p)
		return 0
	}
	return E(p)
}

// choice converts an enumerator of a request that has a default.
func choice[E ~uint8, P ~int32](d *decoder, field string, p P, last E) E {
	if p == 0 {
		return 0
	}
	return member(d, field, p, last+1) - 1
}

// strategy converts a strategy of a request, whose zero is the default on both
// sides.
func strategy(d *decoder, field string, p pb.ReduceStrategy) mapreduce.Strategy {
	if p == 0 {
		return mapreduce.StrategyDefault
	}
	return member(d, field, p, lastStrategy)
}

// encodeChoice converts an enumerator whose zero is the default.
func encodeChoice[P ~int32, E ~uint8](e E) P { return P(e) + 1 }

func encodeJobStates(in []mapreduce.JobState) []pb.JobState {
	return convert(in, func(s mapreduce.JobState) pb.JobState { return pb.JobState(s) })
}

func encodeUnitStates(in []mapreduce.UnitState) []pb.UnitState {
	return convert(in, func(s mapreduce.UnitState) pb.UnitState { return pb.UnitState(s) })
}

// members converts a list of enumerators of a request.
func members[E ~uint8, P ~int32](d *decoder, field string, in []P, last E) []E {
	if len(in) > int(last) {
		d.refuse(field, "has more values than there are")
		return nil
	}
	return convert(in, func(p P) E { return member(d, field, p, last) })
}
