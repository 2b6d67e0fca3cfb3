package wire

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
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
	lastEventKind    = mapreduce.EventMarked
	lastCauseState   = mapreduce.CauseResolved
	lastReview       = mapreduce.ReviewWithdraw
	lastOutcome      = protocol.Parked
	lastVerdict      = protocol.Gone
	lastFailureClass = protocol.PermanentJob
	lastOnError      = mapreduce.FailFast
	lastOnBreaker    = mapreduce.BreakerSkip
	lastSeverity     = mapreduce.Wrong
	lastStrategy     = mapreduce.StrategyAdaptive
	lastCapture      = mapreduce.CaptureFull
	lastPageText     = mapreduce.PageTextFull
)

// knownOrZero converts an enumerator of a reply; those it does not know become zero.
func knownOrZero[E ~uint8, P ~int32](p P, last E) E {
	if p < 0 || p > P(last) {
		return 0
	}
	return E(p)
}

// decodeEnum converts an enumerator of a request, which must be one of the named.
func decodeEnum[E ~uint8, P ~int32](d *decoder, field string, p P, last E) E {
	if p < 1 || p > P(last) {
		d.refuseField(field, "has no value %d", p)
		return 0
	}
	return E(p)
}

// decodeEnumOrDefault converts an enumerator of a request that has a default.
func decodeEnumOrDefault[E ~uint8, P ~int32](d *decoder, field string, p P, last E) E {
	if p == 0 {
		return 0
	}
	return decodeEnum(d, field, p, last+1) - 1
}

// decodeStrategy converts a strategy of a request, whose zero is the default on both
// sides.
func decodeStrategy(d *decoder, field string, p pb.ReduceStrategy) mapreduce.Strategy {
	if p == 0 {
		return mapreduce.StrategyDefault
	}
	return decodeEnum(d, field, p, lastStrategy)
}

// encodeChoice converts an enumerator whose zero is the default.
func encodeChoice[P ~int32, E ~uint8](e E) P { return P(e) + 1 }

func encodeJobStates(in []mapreduce.JobState) []pb.JobState {
	return convertEach(in, func(s mapreduce.JobState) pb.JobState { return pb.JobState(s) })
}

func encodeUnitStates(in []mapreduce.UnitState) []pb.UnitState {
	return convertEach(in, func(s mapreduce.UnitState) pb.UnitState { return pb.UnitState(s) })
}

// decodeEnums converts a list of enumerators of a request.
func decodeEnums[E ~uint8, P ~int32](d *decoder, field string, in []P, last E) []E {
	if len(in) > int(last) {
		d.refuseField(field, "has more values than there are")
		return nil
	}
	return convertEach(in, func(p P) E { return decodeEnum(d, field, p, last) })
}
