// Package condition reads and decides the conditions of stages: tests of the number and
// the size of what a stage reads.
package condition

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Condition is a test of the number and size of a stage's inputs, or of those of a
// stage before it. The zero Condition always holds.
type Condition struct {
	all [][]comparison // of each list one has to hold; all of them
}

// A comparison holds one number of the inputs against another.
type comparison struct {
	stage  string // whose outputs are compared in place of the inputs; "" for none
	tokens bool   // compares the tokens of the inputs, else their count
	op     string
	number int64
	budget bool // compares with the budget, else with number
}

// maxNumber bounds the numbers of comparisons: any JSON implementation keeps them exactly.
const maxNumber = 1 << 53

// maxComparisons bounds a condition.
const maxComparisons = 8

var operators = []string{"<=", ">=", "==", "!=", "<", ">"}

// Parse reads a condition: "count OP N" or "tokens OP N", several joined by
// " and ", or several by " or ". "STAGE.count" and "STAGE.tokens" are those of what an
// earlier stage made, as a stage that reads it counts its inputs; 0 if it was skipped. OP is <, <=, >, >=, == or !=. N is a whole number, or for tokens "budget":
// as many as one call of a reduce may read. Empty text is the condition that always
// holds. A condition that never holds is an error.
func Parse(text string) (Condition, error) {
	var c Condition
	if text == "" {
		return c, nil
	}

	parts, either := strings.Split(text, " and "), strings.Split(text, " or ")
	if len(parts) > 1 && len(either) > 1 {
		return c, fmt.Errorf("%.80q joins some comparisons by and, others by or; use one of them", text)
	}

	if len(parts)+len(either)-1 > maxComparisons {
		return c, fmt.Errorf("has %d comparisons; at most %d are accepted", len(parts)+len(either)-1, maxComparisons)
	}
	if len(either) > 1 {
		parts = either
	}

	for _, part := range parts {
		one, err := parseComparison(part)
		if err != nil {
			return Condition{}, err
		}

		// One of the alternatives has to hold, so they are one list.
		if len(either) > 1 && len(c.all) > 0 {
			c.all[0] = append(c.all[0], one)
			continue
		}
		c.all = append(c.all, []comparison{one})
	}

	if !c.isPossible() {
		return Condition{}, fmt.Errorf("%q is never true", text)
	}
	return c, nil
}

const form = `a condition is "count OP N" or "tokens OP N", several joined by " and " or by " or ", where OP is <, <=, >, >=, == or !=, and N a whole number, or budget for tokens`

func parseComparison(text string) (c comparison, err error) {
	text = strings.TrimSpace(text)
	if m := ofStage.FindString(text); m != "" {
		c.stage = strings.TrimSuffix(m, ".")
		text = text[len(m):]
	}

	rest, tokens := strings.CutPrefix(text, "tokens")
	if !tokens {
		var count bool
		if rest, count = strings.CutPrefix(text, "count"); !count {
			return c, fmt.Errorf("%.60q compares neither count nor tokens: %s", text, form)
		}
	}

	rest = strings.TrimSpace(rest)
	at := slices.IndexFunc(operators, func(op string) bool { return strings.HasPrefix(rest, op) })
	if at < 0 {
		return c, fmt.Errorf("%.60q has no comparison that is known: %s", text, form)
	}

	c.tokens, c.op = tokens, operators[at]
	number := strings.TrimSpace(rest[len(c.op):])
	if number == "budget" && tokens {
		c.budget = true
		return c, nil
	}

	c.number, err = strconv.ParseInt(number, 10, 64)
	if err != nil || c.number > maxNumber || c.number < -maxNumber {
		return c, fmt.Errorf("%.60q compares with %.40q: %s", text, number, form)
	}
	return c, nil
}

// ofStage matches the name of a stage before what is compared of it.
var ofStage = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}\.`)

// Stages returns the names of the earlier stages that the condition compares, each once.
func (c Condition) Stages() []string {
	var names []string
	for _, either := range c.all {
		for _, one := range either {
			if one.stage != "" && !slices.Contains(names, one.stage) {
				names = append(names, one.stage)
			}
		}
	}
	return names
}

// Size is the number and the tokens of inputs.
type Size struct{ Count, Tokens int64 }

// Holds reports whether the condition holds of so many inputs with so many tokens in
// all, where one call of a reduce may read budget tokens. A budget of 0 is no limit.
// Nothing is known of other stages: see HoldsAfter.
func (c Condition) Holds(count, tokens, budget int64) bool {
	return c.HoldsAfter(Size{count, tokens}, nil, budget)
}

// HoldsAfter is Holds where stages ran before, by their names.
func (c Condition) HoldsAfter(inputs Size, stages map[string]Size, budget int64) bool {
	if budget == 0 {
		budget = math.MaxInt64
	}

	for _, either := range c.all {
		if !slices.ContainsFunc(either, func(one comparison) bool {
			size := inputs
			if one.stage != "" {
				size = stages[one.stage]
			}
			return one.holdsFor(size.Count, size.Tokens, budget)
		}) {
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
	return slices.ContainsFunc(c.all, func(either []comparison) bool {
		return slices.ContainsFunc(either, func(one comparison) bool { return one.budget })
	})
}

// isPossible reports whether the condition holds of any inputs under any budget. Count
// and tokens are compared apart. Where comparisons can be satisfied at all, they can
// by numbers that are about as near to 0, or to a number that is named, as there are
// comparisons.
func (c Condition) isPossible() bool {
	// One alternative that is possible will do.
	if len(c.all) == 1 && len(c.all[0]) > 1 {
		return slices.ContainsFunc(c.all[0], func(one comparison) bool { return Condition{[][]comparison{{one}}}.isPossible() })
	}

	compared := make(map[string][]comparison) // by what is compared, each by itself
	near := []int64{0}
	for _, either := range c.all {
		one := either[0]
		key := fmt.Sprint(one.stage, one.tokens)
		compared[key] = append(compared[key], one)
		if !one.budget {
			near = append(near, one.number)
		}
	}

	candidates := neighbouringValues(near, int64(len(c.all))+2)
	for _, all := range compared {
		if !slices.ContainsFunc(candidates, func(budget int64) bool {
			return budget > 0 && slices.ContainsFunc(candidates, func(n int64) bool {
				return !slices.ContainsFunc(all, func(one comparison) bool { return !one.holdsFor(n, n, budget) })
			})
		}) {
			return false
		}
	}

	return true
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
