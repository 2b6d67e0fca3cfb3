package pipeline

import "math"

// MayHold reports whether the condition holds of so many inputs with so many tokens,
// or of more of both.
func (c Condition) MayHold(count, tokens, budget int64) bool {
	if budget == 0 {
		budget = math.MaxInt64
	}
	for _, one := range c.all {
		switch one.op {
		case "<", "<=", "==":
			atMost := one
			if one.op == "==" {
				atMost.op = "<="
			}
			if !atMost.holdsFor(count, tokens, budget) {
				return false
			}
		}
	}
	return true
}
