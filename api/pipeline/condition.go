package pipeline

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Condition is a test of the number and size of a stage's inputs. The zero Condition
// always holds.
type Condition struct {
	all []comparison
}

// A comparison holds one number of the inputs against another.
type comparison struct {
	tokens bool // compares the tokens of the inputs, else their count
	op     string
	number int64
	budget bool // compares with the budget, else with number
}

// maxComparisons bounds a condition.
const maxComparisons = 8

var operators = []string{"<=", ">=", "==", "!=", "<", ">"}

// ParseCondition reads a condition: "count OP N" or "tokens OP N", several joined by
// " and ". OP is <, <=, >, >=, == or !=. N is a whole number, or for tokens "budget":
// as many as one call of a reduce may read. Empty text is the condition that always
// holds. A condition that never holds is an error.
func ParseCondition(text string) (Condition, error) {
	var c Condition
	if text == "" {
		return c, nil
	}
	parts := strings.Split(text, " and ")
	if len(parts) > maxComparisons {
		return c, fmt.Errorf("has %d comparisons; at most %d are accepted", len(parts), maxComparisons)
	}
	for _, part := range parts {
		one, err := parseComparison(part)
		if err != nil {
			return Condition{}, err
		}
		c.all = append(c.all, one)
	}
	if !c.isPossible() {
		return Condition{}, fmt.Errorf("%q is never true", text)
	}
	return c, nil
}

const conditionForm = `a condition is "count OP N" or "tokens OP N", several joined by " and ", where OP is <, <=, >, >=, == or !=, and N a whole number, or budget for tokens`

func parseComparison(text string) (c comparison, err error) {
	text = strings.TrimSpace(text)
	rest, tokens := strings.CutPrefix(text, "tokens")
	if !tokens {
		var count bool
		if rest, count = strings.CutPrefix(text, "count"); !count {
			return c, fmt.Errorf("%.60q compares neither count nor tokens: %s", text, conditionForm)
		}
	}
	rest = strings.TrimSpace(rest)
	at := slices.IndexFunc(operators, func(op string) bool { return strings.HasPrefix(rest, op) })
	if at < 0 {
		return c, fmt.Errorf("%.60q has no comparison that is known: %s", text, conditionForm)
	}
	c = comparison{tokens: tokens, op: operators[at]}
	number := strings.TrimSpace(rest[len(c.op):])
	if number == "budget" && tokens {
		c.budget = true
		return c, nil
	}
	c.number, err = strconv.ParseInt(number, 10, 64)
	if err != nil || c.number > maxNumber || c.number < -maxNumber {
		return c, fmt.Errorf("%.60q compares with %.40q: %s", text, number, conditionForm)
	}
	return c, nil
}

// Holds reports whether the condition holds of so many inputs with so many tokens in
// all, where one call of a reduce may read budget tokens. A budget of 0 is no limit.
func (c Condition) Holds(count, tokens, budget int64) bool {
	if budget == 0 {
		budget = math.MaxInt64
	}
	for _, one := range c.all {
		if !one.holdsFor(count, tokens, budget) {
			return false
		}
	}
	return true
}

func (c comparison) holdsFor(count, tokens, budget int64) bool {
	left, right := count, c.number
	if c.tokens {
		left = tokens
	}
	if c.budget {
		right = budget
	}
	switch c.op {
	case "<":
		return left < right
	case "<=":
		return left <= right
	case ">":
		return left > right
	case ">=":
		return left >= right
	case "==":
		return left == right
	}
	return left != right
}

// Budget reports whether the condition depends on the budget.
func (c Condition) Budget() bool {
	return slices.ContainsFunc(c.all, func(one comparison) bool { return one.budget })
}

// isPossible reports whether the condition holds of any inputs under any budget. Count
// and tokens are compared apart. Where comparisons can be satisfied at all, they can
// by numbers that are about as near to 0, or to a number that is named, as there are
// comparisons.
func (c Condition) isPossible() bool {
	var counts, tokens []comparison
	near := []int64{0}
	for _, one := range c.all {
		if one.tokens {
			tokens = append(tokens, one)
		} else {
			counts = append(counts, one)
		}
		if !one.budget {
			near = append(near, one.number)
		}
	}
	candidates := neighbouringValues(near, int64(len(c.all))+2)
	return slices.ContainsFunc(candidates, func(n int64) bool {
		return Condition{counts}.Holds(n, 0, 1)
	}) && slices.ContainsFunc(candidates, func(budget int64) bool {
		return budget > 0 && slices.ContainsFunc(candidates, func(n int64) bool { return Condition{tokens}.Holds(0, n, budget) })
	})
}

// neighbouringValues returns the numbers that are not negative and at most so far from one of near.
func neighbouringValues(near []int64, far int64) []int64 {
	var all []int64
	for _, n := range near {
		for i := n - far; i <= n+far; i++ {
			if i >= 0 {
				all = append(all, i)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
