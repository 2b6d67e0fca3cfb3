package show

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/plural"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
)

// A CostRow is what was spent of one group.
type CostRow struct {
	Group      map[string]string `json:"group"` // by "day", "month", "tenant", "model", "tier" or "label:KEY"; "" is none, or not known
	Calls      int64             `json:"calls"`
	In         int64             `json:"tokens_in"`
	Out        int64             `json:"tokens_out"`
	CostMicros int64             `json:"cost_micros"`     // millionths of a US dollar, exact, of what is known
	Unpriced   int64             `json:"unpriced_tokens"` // of the tokens, those whose price is not known
}

// newCostRow returns a row with a value for each dimension; none stands for all.
func newCostRow(by []mapreduce.CostDimension, r *mapreduce.CostRow) CostRow {
	row := CostRow{
		Group: make(map[string]string), Calls: r.Calls, In: r.Tokens.In, Out: r.Tokens.Out, CostMicros: r.CostMicros, Unpriced: r.Unpriced,
	}
	for i, value := range r.Group {
		row.Group[string(by[i])] = value
	}
	return row
}

// costFlags are the flags of the command.
type costFlags struct {
	by, labels, models, tiers []string
	since, until, tenant      string
}

// query returns what the flags ask for.
func (f *costFlags) query() (q mapreduce.CostQuery, err error) {
	q = mapreduce.CostQuery{Tenant: mapreduce.TenantID(f.tenant), Models: f.models, Tiers: f.tiers}
	for flag, most := range map[string]int{"model": len(f.models), "tier": len(f.tiers)} {
		if most > mapreduce.MaxCostFilters {
			return q, exit.UsageError("--%s: at most %d may be given", flag, mapreduce.MaxCostFilters)
		}
	}

	if q.Labels, err = parseLabelFilters(f.labels); err != nil {
		return q, err
	}
	if q.By, err = mapreduce.ParseCostDimensions(f.by); err != nil {
		return q, flagError(err)
	}
	if q.Since, err = mapreduce.ReadDay("since", f.since); err != nil {
		return q, flagError(err)
	}
	q.Until, err = mapreduce.ReadDay("until", f.until)
	return q, flagError(err)
}

// flagError returns the error of a field as that of the flag that has its name.
func flagError(err error) error {
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Kind == errs.Invalid {
		return exit.UsageError("--%s: %s", e.Field, e.Message)
	}
	return err
}

// A costList is what cost prints.
type costList struct {
	Rows []CostRow `json:"rows"`
	Sum  CostRow   `json:"sum"`
}

func (cmds *commands) costCommand() *cobra.Command {
	var flags costFlags
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Show what jobs cost, by day, tenant, model, tier or label",
		Long: `Cost sums up what calls of models have cost, those of jobs that were deleted included: by the
day of UTC on which it was settled, by tenant, by the model that was asked, by the tier that
it answered in (standard, flex, priority or batch), or by the values of a label. Sums are
exact, in millionths of a US dollar.`,
		Example: `  coditect mapreduce cost --since 2026-11-01
  coditect mapreduce cost --by label:team --by model --by tier -o json
  coditect mapreduce cost --by month --tier batch`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := flags.query()
			if err != nil {
				return err
			}

			// A command that only reads must not make a data directory.
			if cmds.HasNoData() {
				return cmds.printCost(&q, new(mapreduce.CostSums))
			}
			return cmds.WithReader(cmd.Context(), func(s *program.Session) error {
				sums, err := s.SumCosts(cmd.Context(), q)
				if err != nil {
					return err
				}
				return cmds.printCost(&q, sums)
			})
		},
	}

	f := cmd.Flags()
	f.StringSliceVar(&flags.by, "by", []string{"day"}, "by what costs are told apart: day, month, tenant, model, tier or label:KEY; may be repeated")
	f.StringArrayVar(&flags.labels, "label", nil, "only jobs with this label: `KEY=VALUE`, or KEY for any value; of several, with all of them")
	f.StringArrayVar(&flags.models, "model", nil, "only calls of this model, `PROVIDER/MODEL`; may be repeated")
	f.StringSliceVar(&flags.tiers, "tier", nil, "only calls in this `tier`: standard, flex, priority or batch; may be repeated")
	f.StringVar(&flags.tenant, "tenant", "", "only jobs of this `tenant`")
	f.StringVar(&flags.since, "since", "", "only what was settled on this `day` of UTC or later, such as 2026-11-01")
	f.StringVar(&flags.until, "until", "", "only what was settled on this `day` or earlier")
	return cmd
}

// printCost prints a line for each group, and the sum.
func (cmds *commands) printCost(q *mapreduce.CostQuery, sums *mapreduce.CostSums) error {
	l := costList{Rows: []CostRow{}, Sum: newCostRow(nil, &mapreduce.CostRow{Charge: sums.Sum})}
	for i := range sums.Rows {
		l.Rows = append(l.Rows, newCostRow(q.By, &sums.Rows[i]))
	}

	return cmds.PrintData(l, func() {
		header := make([]string, 0, len(q.By)+4)
		for _, d := range q.By {
			header = append(header, string(d))
		}
		header = append(header, "calls", "tokens-in", "tokens-out", "cost")

		cmds.PrintTable(strings.ToUpper(strings.Join(header, " ")), func(row func(...any)) {
			for _, r := range l.Rows {
				row(r.cells(q.By, "-")...)
			}
			if len(l.Rows) > 1 {
				row(l.Sum.cells(q.By, "all")...)
			}
		})
	})
}

// cells returns a line of the table; none stands for a value that there is not.
func (r *CostRow) cells(by []mapreduce.CostDimension, none string) []any {
	cells := make([]any, 0, len(by)+4)
	for _, d := range by {
		cells = append(cells, cmp.Or(r.Group[string(d)], none))
	}

	cost := mapreduce.DollarText(r.CostMicros)
	if r.Unpriced > 0 {
		cost += fmt.Sprintf(" and that of %s whose price is not known", plural.Count(r.Unpriced, "token"))
	}
	return append(cells, r.Calls, r.In, r.Out, cost)
}
