package mapreduce

import (
	"slices"
	"strings"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/label"
)

// A Charge is what calls of one model in one tier took.
type Charge struct {
	Model      string // "provider/model", as it was asked; "" is not known
	Tier       string // that the answers named, as package parameters has it; "" is not known
	Calls      int64  // that were answered
	Tokens     Tokens
	CostMicros int64 // millionths of a US dollar
	Unpriced   int64 // of Tokens, those whose price is not known: they are not in CostMicros
}

// MaxCharges bounds the models and tiers that a report tells apart. What is beyond counts as not known.
const MaxCharges = 16

// BatchTier is the tier of calls that a batch has made.
const BatchTier = "batch"

// Add returns the sum of two charges of one model and tier.
func (c Charge) Add(o Charge) Charge {
	c.Calls += o.Calls
	c.Tokens = c.Tokens.Add(o.Tokens)
	c.CostMicros += o.CostMicros
	c.Unpriced += o.Unpriced
	return c
}

// IsZero reports whether nothing was taken.
func (c Charge) IsZero() bool {
	c.Model, c.Tier = "", ""
	return c == Charge{}
}

// IsPossible reports whether no number is negative, and no more tokens have no price than there are.
func (c Charge) IsPossible() bool {
	return min(c.Calls, c.Tokens.In, c.Tokens.Out, c.CostMicros, c.Unpriced) >= 0 && c.Unpriced <= c.Tokens.Total()
}

// AddCharge returns charges with one more, in which each model and tier stands once, in the order in which
// they came first. There are at most MaxCharges: what is beyond is left out.
func AddCharge(all []Charge, c Charge) []Charge {
	i := slices.IndexFunc(all, func(o Charge) bool { return o.Model == c.Model && o.Tier == c.Tier })
	switch {
	case i >= 0:
		all[i] = all[i].Add(c)
	case len(all) < MaxCharges && !c.IsZero():
		all = append(all, c)
	}
	return all
}

// WholeCharges returns charges that add up to the tokens and the cost of an attempt: what charges do not tell
// of these is of a model that is not known, and tokens of it without any cost are of a price that is not known.
// Charges that come to more are not believed at all.
func WholeCharges(charges []Charge, tokens Tokens, costMicros int64) []Charge {
	var told Charge
	possible := true
	for _, c := range charges {
		possible = possible && c.IsPossible()
		told = told.Add(c)
	}

	rest := Charge{Tokens: Tokens{In: tokens.In - told.Tokens.In, Out: tokens.Out - told.Tokens.Out}, CostMicros: costMicros - told.CostMicros}
	if !possible || !rest.IsPossible() {
		charges, rest = nil, Charge{Tokens: tokens, CostMicros: costMicros}
	}
	if rest.IsZero() {
		return charges
	}
	if rest.CostMicros == 0 { // nobody has measured them, so nobody has said that they were free
		rest.Unpriced = rest.Tokens.Total()
	}
	return append(slices.Clone(charges), rest)
}

// A CostDimension is by what costs are told apart: one of those below, or LabelDimension and the key of a
// label.
type CostDimension string

// The dimensions of costs.
const (
	ByDay    CostDimension = "day"   // of UTC, on which it was settled, as 2026-11-29
	ByMonth  CostDimension = "month" // as 2026-11
	ByTenant CostDimension = "tenant"
	ByModel  CostDimension = "model" // "provider/model", as it was asked
	ByTier   CostDimension = "tier"  // that the answers named

	LabelDimension = "label:" // before the key of a label: by its values
)

// Label returns the key of the label by whose values d tells costs apart, if it does.
func (d CostDimension) Label() (key string, is bool) {
	return strings.CutPrefix(string(d), LabelDimension)
}

// MaxCostDimensions bounds by how much costs are told apart at once.
const MaxCostDimensions = 8

// MaxCostRows bounds the rows of an answer.
const MaxCostRows = 10_000

// ParseCostDimensions returns the dimensions that texts name.
func ParseCostDimensions(texts []string) ([]CostDimension, error) {
	if len(texts) > MaxCostDimensions {
		return nil, errs.Field("by", "at most %d may be given, and these are %d", MaxCostDimensions, len(texts))
	}

	var all []CostDimension
	for _, text := range texts {
		d := CostDimension(text)
		key, isLabel := d.Label()
		switch {
		case isLabel:
			if err := label.Check(key, ""); err != nil {
				return nil, err
			}
		case !slices.Contains([]CostDimension{ByDay, ByMonth, ByTenant, ByModel, ByTier}, d):
			return nil, errs.Field("by", "%.80q is not one of day, month, tenant, model, tier and label:KEY", text)
		}
		if slices.Contains(all, d) {
			return nil, errs.Field("by", "%s is given twice", d)
		}
		all = append(all, d)
	}
	return all, nil
}

// A CostQuery says what of the costs is summed up, and by what it is told apart. Costs count on the day of
// UTC on which they were settled: when an attempt ended, or a batch answered.
type CostQuery struct {
	Tenant TenantID // empty means all
	Since  time.Time
	Until  time.Time      // a day that is counted too; of both, the zero time sets no bound
	Labels []label.Filter // all of which a job must have
	Models []string       // any of them, "provider/model"; none means all
	Tiers  []string       // any of them; none means all
	By     []CostDimension
}

// MaxCostFilters bounds the models of a query, and its tiers.
const MaxCostFilters = 64

// A CostRow is what was spent of one group.
type CostRow struct {
	Group []string // a value for each dimension of the query; "" where there is none, or it is not known
	Charge
}

// CostSums are costs by group, in the order of their values, and what all of them come to.
type CostSums struct {
	Rows []CostRow
	Sum  Charge
}

// ReadDay returns the day of UTC that a text names, such as 2026-11-29; the zero time if it is empty.
func ReadDay(field, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return day, errs.Field(field, "%.40q is no day such as 2026-11-29", text)
	}
	return day, nil
}
