package show

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results"
	"github.com/coditect/mapreduce/worker/step"
)

// A CostRow is what jobs cost that have the same values of what the costs are told apart by.
type CostRow struct {
	Group      map[string]string `json:"group"` // by "day", "tenant", "model" or "label:KEY"; "" is none
	Jobs       int64             `json:"jobs"`
	Unknown    int64             `json:"jobs_of_unknown_cost"` // of them: some of their models have no known price
	In         int64             `json:"tokens_in"`
	Out        int64             `json:"tokens_out"`
	CostMicros int64             `json:"cost_micros"` // millionths of a US dollar, exact, of what is known
}

// add adds a job.
func (r *CostRow) add(j *mapreduce.Job) {
	r.Jobs++
	r.In += j.TotalTokens.In
	r.Out += j.TotalTokens.Out
	r.CostMicros += j.CostMicros
	if results.PricingOf(&j.Spec).Cost(j.TotalTokens, j.CostMicros) == nil {
		r.Unknown++
	}
}

// A costQuery says which jobs are counted, and by what they are told apart.
type costQuery struct {
	jobs         mapreduce.ListJobsQuery
	by           []string // "day", "tenant", "model", "label:KEY"
	since, until time.Time
}

// labelGroup begins a group by the values of a label.
const labelGroup = "label:"

// newCostQuery reads the flags of the command.
func newCostQuery(by, labels []string, since, until string) (q costQuery, err error) {
	for _, name := range by {
		key, isLabel := strings.CutPrefix(name, labelGroup)
		if !isLabel && !slices.Contains([]string{"day", "tenant", "model"}, name) || isLabel && key == "" {
			return q, exit.UsageError("--by: %q is not one of day, tenant, model and label:KEY", name)
		}
	}
	q.by = by

	if q.jobs.Labels, err = parseLabelFilters(labels); err != nil {
		return q, err
	}
	if q.since, err = readDay("since", since); err != nil {
		return q, err
	}
	if q.until, err = readDay("until", until); err != nil {
		return q, err
	}
	q.jobs.PageSize = 1000
	return q, nil
}

// readDay reads a day of UTC; the zero time if there is none.
func readDay(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return day, exit.UsageError("--%s: %.40q is no day such as 2026-11-29", flag, text)
	}
	return day, nil
}

// groupOf returns by what a job is told apart, in the order of the query.
func (q *costQuery) groupOf(j *mapreduce.Job) []string {
	group := make([]string, len(q.by))
	for i, name := range q.by {
		switch name {
		case "day":
			group[i] = j.Created.UTC().Format(time.DateOnly)
		case "tenant":
			group[i] = string(j.Spec.Tenant)
		case "model":
			group[i] = cmp.Or(strings.Join(step.ModelsOf(&j.Spec), ","), j.Spec.Provider)
		default:
			group[i] = j.Spec.Labels[strings.TrimPrefix(name, labelGroup)]
		}
	}
	return group
}

// countCost returns a row for each group, in order, and the sum of all. Jobs come newest first, so that
// none is read that is older than what is asked for.
func countCost(ctx context.Context, jobs mapreduce.Client, q costQuery) (rows []CostRow, sum CostRow, err error) {
	byGroup := make(map[string]*CostRow)
	for {
		page, err := jobs.ListJobs(ctx, q.jobs)
		if err != nil {
			return nil, sum, err
		}

		for _, j := range page.Jobs {
			if j.Created.Before(q.since) {
				page.NextPageToken = ""
				break
			}
			if !q.until.IsZero() && !j.Created.Before(q.until.AddDate(0, 0, 1)) {
				continue
			}
			q.addTo(byGroup, j)
			sum.add(j)
		}

		if q.jobs.PageToken = page.NextPageToken; q.jobs.PageToken == "" {
			return q.sorted(byGroup), sum, nil
		}
	}
}

// addTo adds a job to the row of its group.
func (q *costQuery) addTo(rows map[string]*CostRow, j *mapreduce.Job) {
	group := q.groupOf(j)
	key := strings.Join(group, "\x00")
	row := rows[key]
	if row == nil {
		row = &CostRow{Group: make(map[string]string)}
		for i, name := range q.by {
			row.Group[name] = group[i]
		}
		rows[key] = row
	}
	row.add(j)
}

// sorted returns the rows in the order of their groups.
func (q *costQuery) sorted(byGroup map[string]*CostRow) []CostRow {
	rows := make([]CostRow, 0, len(byGroup))
	for _, row := range byGroup {
		rows = append(rows, *row)
	}
	slices.SortFunc(rows, func(a, b CostRow) int {
		for _, name := range q.by {
			if c := cmp.Compare(a.Group[name], b.Group[name]); c != 0 {
				return c
			}
		}
		return 0
	})
	return rows
}

// A costList is what cost prints.
type costList struct {
	Rows []CostRow `json:"rows"`
	Sum  CostRow   `json:"sum"`
}

func (cmds *commands) costCommand() *cobra.Command {
	var (
		by, labels           []string
		since, until, tenant string
	)

	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Show what jobs cost, by day, tenant, model or label",
		Long: `Cost sums up what the jobs cost that are still there, by the day of UTC on which they were
submitted, by tenant, by the models that they may ask, or by the values of a label. Jobs that
were deleted are not counted. Sums are exact, in millionths of a US dollar.`,
		Example: `  coditect mapreduce cost --since 2026-11-01
  coditect mapreduce cost --by label:team --by model -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := newCostQuery(by, labels, since, until)
			if err != nil {
				return err
			}
			q.jobs.Tenant = mapreduce.TenantID(tenant)

			// A command that only reads must not make a data directory.
			if cmds.HasNoData() {
				return cmds.printCost(q, costList{Rows: []CostRow{}})
			}
			return cmds.WithReader(cmd.Context(), func(s *program.Session) error {
				rows, sum, err := countCost(cmd.Context(), s, q)
				if err != nil {
					return err
				}
				return cmds.printCost(q, costList{rows, sum})
			})
		},
	}

	f := cmd.Flags()
	f.StringSliceVar(&by, "by", []string{"day"}, "by what costs are told apart: day, tenant, model or label:KEY; may be repeated")
	f.StringArrayVar(&labels, "label", nil, "only jobs with this label: `KEY=VALUE`, or KEY for any value; of several, with all of them")
	f.StringVar(&tenant, "tenant", "", "only jobs of this `tenant`")
	f.StringVar(&since, "since", "", "only jobs submitted on this `day` or later, such as 2026-11-01")
	f.StringVar(&until, "until", "", "only jobs submitted on this `day` or earlier")
	return cmd
}

// printCost prints a line for each group, and the sum.
func (cmds *commands) printCost(q costQuery, l costList) error {
	return cmds.PrintData(l, func() {
		header := strings.ToUpper(strings.Join(append(slices.Clone(q.by), "jobs", "tokens-in", "tokens-out", "cost"), " "))
		cmds.PrintTable(header, func(row func(...any)) {
			for _, r := range l.Rows {
				row(r.cells(q.by, "-")...)
			}
			if len(l.Rows) > 1 {
				row(l.Sum.cells(q.by, "all")...)
			}
		})
	})
}

// cells returns a line of the table; none stands for what a job has no value of.
func (r *CostRow) cells(by []string, none string) []any {
	cells := make([]any, 0, len(by)+4)
	for _, name := range by {
		cells = append(cells, cmp.Or(r.Group[name], none))
	}

	cost := mapreduce.DollarText(r.CostMicros)
	if r.Unknown > 0 {
		cost += fmt.Sprintf(" and that of %d jobs which is unknown", r.Unknown)
	}
	return append(cells, r.Jobs, r.In, r.Out, cost)
}
