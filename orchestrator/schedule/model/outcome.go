package model

import (
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
)

// OutcomeOf returns what the report of a unit that could ask several models says of one of them: that
// it answered, or that it failed. It is false if the report says neither.
func OutcomeOf(rep *protocol.Report, model string) (*protocol.Report, bool) {
	of := &protocol.Report{Calls: rep.Calls}

	switch {
	case mapreduce.Answered(rep.Models, model):
		of.Outcome = protocol.Done
	case slices.Contains(rep.Failing, model):
		of.Outcome, of.Class = protocol.Errored, protocol.Retryable
	default:
		return nil, false
	}

	of.Calls = max(of.Calls, 1)
	return of, true
}
