package mapreduce

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/coditect/mapreduce/api/errs"
)

// A Currency is what the budget of a job is in. A job has one budget, and what it reserves, is charged
// and is granted is in the same currency. It never changes.
type Currency uint8

// The currencies.
const (
	InTokens  Currency = iota
	InDollars          // in millionths of a US dollar, so that all sums are whole numbers
)

// Text returns an amount with its unit: "1200 tokens", or "$0.25".
func (c Currency) Text(amount int64) string {
	if c == InDollars {
		return DollarText(amount)
	}
	return fmt.Sprintf("%d tokens", amount)
}

// Flag is how users set a budget in the currency.
func (c Currency) Flag() string {
	if c == InDollars {
		return "--max-cost"
	}
	return "--budget"
}

// Field is the name of a budget in the currency in errors.
func (c Currency) Field() string {
	if c == InDollars {
		return "max_cost"
	}
	return "budget"
}

// Of returns what of tokens and cost counts in the currency.
func (c Currency) Of(t Tokens, costMicros int64) int64 {
	if c == InDollars {
		return costMicros
	}
	return t.Total()
}

// TokenBudget returns the budget of a job if it is in tokens, which quotas of tenants count; else 0.
func (s *JobSpec) TokenBudget() int64 { return s.budgetIn(InTokens) }

// MaxCost returns the budget of a job in millionths of a US dollar if it is in dollars; else 0.
func (s *JobSpec) MaxCost() int64 { return s.budgetIn(InDollars) }

func (s *JobSpec) budgetIn(c Currency) int64 {
	if s.BudgetIn != c {
		return 0
	}
	return s.Budget
}

// dollarForm has at most six digits after the point: nothing smaller than a millionth is counted.
var dollarForm = regexp.MustCompile(`^\$?(\d{1,9})(?:\.(\d{1,6}))?$`)

// ParseDollars returns a sum in millionths of a US dollar, as "5", "$5" or "0.25" say it.
func ParseDollars(text string) (int64, error) {
	m := dollarForm.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return 0, errs.New(errs.Invalid, "%.40q is no sum of US dollars such as 5 or 0.25: up to 9 digits, a point and up to 6 more", text)
	}
	return strconv.ParseInt(m[1]+m[2]+strings.Repeat("0", 6-len(m[2])), 10, 64)
}

// ParseBudget returns a budget as one field of a form has it: a number of tokens, or a sum with a "$".
func ParseBudget(text string) (int64, Currency, error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "$") {
		micros, err := ParseDollars(text)
		return micros, InDollars, err
	}

	tokens, err := strconv.ParseInt(text, 10, 64)
	if err != nil || tokens < 0 {
		return 0, InTokens, errs.New(errs.Invalid, "%.40q is no number of tokens, and no sum such as $5", text)
	}
	return tokens, InTokens, nil
}

// BudgetText returns a budget as ParseBudget reads it.
func (c Currency) BudgetText(amount int64) string {
	if c == InDollars {
		return DollarText(amount)
	}
	return strconv.FormatInt(amount, 10)
}

// DollarText returns millionths of a US dollar as text, exactly, with at least two digits after the
// point: "$0.25", "$0.000125".
func DollarText(micros int64) string {
	sign, n := "", uint64(micros)
	if micros < 0 {
		sign, n = "-", -n
	}
	digits := strings.TrimRight(fmt.Sprintf("%06d", n%1e6), "0")
	return fmt.Sprintf("%s$%d.%s", sign, n/1e6, digits+strings.Repeat("0", max(0, 2-len(digits))))
}
