package condition

import (
	"math"
	"slices"
)

// MayHold reports whether the condition holds of so many inputs with so many tokens,
// or of more of both.
func (c Condition) MayHold(count, tokens, budget int64) bool {
	if budget == 0 {
		budget = math.MaxInt64
	}
	for _, either := range c.all {
		if !slices.ContainsFunc(either, func(one comparison) bool { return one.mayHoldFor(count, tokens, budget) }) {
			return false
		}
	}
	return true
}

// mayHoldFor reports whether the comparison holds of so many or more.
func (c comparison) mayHoldFor(count, tokens, budget int64) bool {
	switch c.op {
	case "<", "<=", "==":
		if c.op == "==" {
			c.op = "<="
		}
		return c.holdsFor(count, tokens, budget)
	}
	return true
}
