package plan

import "github.com/coditect/mapreduce/api/mapreduce"

// OutcomeOf returns what became of a unit.
func OutcomeOf(u *mapreduce.Unit) Outcome {
	return Outcome{State: u.State, Attempts: u.Attempts, Tokens: u.Tokens, CostMicros: u.CostMicros, Elapsed: u.Elapsed}
}
