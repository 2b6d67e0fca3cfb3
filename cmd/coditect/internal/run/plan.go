package run

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/input"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/records"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/costs"
	"github.com/coditect/mapreduce/cmd/coditect/internal/runners"
	"github.com/coditect/mapreduce/internal/plan"
	"github.com/coditect/mapreduce/internal/plan/render"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/worker/agent/model/settings"
)

// A planner shows the tree of one job, before or after it runs.
type planner struct {
	app    *program.Program
	flags  jobFlags
	format console.Choice
	exact  bool
	job    string // whose DAG is shown instead
}

func (cmds *commands) planCommand() *cobra.Command {
	p := &planner{app: cmds.Program, format: console.NewChoice("text", render.Formats()...)}
	cmd := &cobra.Command{
		Use:   "plan PATH... --schema FILE [-o FORMAT]",
		Short: "Show what a job would do and cost, before anything is spent",
		Long: `Plan accepts the flags of run and shows the tree of units that run would make: the
map level, the reduces above it, their sizes, and their expected calls, tokens, cost
and time. It stores nothing and spends nothing.

A static tree is known before the run. A tree that depends on the outputs of units can only
be estimated; the plan says so, and --exact refuses it. With --job-id, plan shows the tree
of a submitted job, with the state and cost of each unit.`,
		Example: `  coditect mapreduce plan --input receipts --schema receipt.yaml --chunk-size 5
  coditect mapreduce plan --input docs --schema s.yaml --context-window 128000 -o json
  coditect mapreduce plan --input docs --schema s.yaml --format svg > plan.svg
  coditect mapreduce plan --job-id mr_20260101_a1b2c3 --format mermaid`,
		RunE: func(cmd *cobra.Command, args []string) error {
			p.flags.inputs = append(p.flags.inputs, args...)
			return p.runPlan(cmd)
		},
	}

	p.flags.extra = cmds.Runners.Extra.Name
	groups := groupFlags(cmd)
	p.flags.addFlags(cmd, groups)
	f := cmd.Flags()
	groups.Add(groupModel, func() { cmds.Runners.Models.AddFlags(f) })
	groups.Add(groupInput, func() {
		cmds.Runners.Documents.AddFlags(f)
		cmds.Runners.Members.AddFlags(f)
	})
	groups.Add(groupOutput, func() {
		f.VarP(&p.format, "print", "o", "format of the plan")
		f.Var(planFormat{&p.format}, "format", "format of the plan")
		f.BoolVar(&p.exact, "exact", false, "fail if the plan is only an estimate")
		cmds.AddJobFlag(cmd, &p.job)
	})
	console.OfferWords(cmd, "print", p.format.Of...)
	cmds.acceptRunFlags(cmd)
	return cmd
}

// acceptRunFlags accepts the flags of run that have no effect on a plan, so that
// a user can turn the command line of a run into that of its plan by one word.
func (cmds *commands) acceptRunFlags(cmd *cobra.Command) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	cmds.Runners.Limits.AddFlags(f)
	cmds.Runners.Tools.AddFlags(f)
	f.String("output", "", "as run has it; nothing is written")
	f.Bool("detach", false, "as run has it; nothing is waited for")
	f.Bool("ui", false, "as run has it; nothing is shown")
	f.Bool("citations", false, "as run has it; nothing is written")
	f.Bool("no-report", false, "as run has it; nothing is written")
	f.Bool("fail-on-skipped", false, "as run has it; nothing is run")

	f.VisitAll(func(flag *pflag.Flag) { flag.Hidden = true })
	cmd.Flags().AddFlagSet(f)
}

// A planFormat is the format of a plan as --format names it. It ignores the formats of
// records, which run has by the same flag.
type planFormat struct{ *console.Choice }

// Set implements pflag.Value.
func (f planFormat) Set(s string) error {
	if slices.Contains(records.Formats(), s) && !slices.Contains(f.Of, s) {
		return nil
	}
	return f.Choice.Set(s)
}

func (p *planner) runPlan(cmd *cobra.Command) error {
	if cmd.Flags().Changed("job-id") {
		return p.showJobTree(cmd)
	}

	ctx, a := cmd.Context(), p.app
	spec, err := p.flags.jobSpec(ctx, cmd.Flags())
	console.PrintWarnings(a.Stderr, p.flags.warnings)
	for _, note := range p.flags.notes { // they may say why an agent is missing
		fmt.Fprintf(a.Stderr, "note: %s\n", note)
	}
	if err != nil {
		return err
	}

	in, err := p.flags.inputConfig(ctx, a)
	if err != nil {
		return err
	}
	in.Question = p.flags.questionInput(&spec)
	spec.Reading = a.Runners.Documents.Reading(cmd.Flags())
	if err := a.Runners.Models.SetPrices(&spec); err != nil {
		return err
	}

	if err := input.Check(ctx, in); err != nil {
		return err
	}
	if err := a.Runners.CouldRun(&spec, cmd.Flags().Lookup("max-tokens-per-unit")); err != nil {
		return p.flags.locateFault(err)
	}

	planned, err := p.planInputs(ctx, spec, in)
	if err != nil {
		return exit.Cause(ctx, p.flags.locateFault(err))
	}
	if most := spec.MaxCost(); planned.Estimate.Low.CostMicros > most && most > 0 {
		return exit.RefusedError("--max-cost: the job would cost %s at least, and %s as expected, which is more than %s",
			mapreduce.DollarText(planned.Estimate.Low.CostMicros), mapreduce.DollarText(planned.Estimate.Expected.CostMicros), mapreduce.DollarText(most))
	}
	dag, err := plan.From(planned)
	if err != nil {
		return err
	}

	text, err := render.As(p.format.Value, dag)
	if err != nil {
		return err
	}
	fmt.Fprint(a.Stdout, text)

	if unpriced := costs.PricingOf(&spec).Unpriced; len(unpriced) > 0 {
		fmt.Fprintf(a.Stderr, "note: the cost is without that of models whose prices are unknown: %s\n", console.VisibleText(costs.PriceAdvice(unpriced)))
	}
	if p.format.Value == "text" {
		tiers := costs.TierCosts(&spec, planned.Estimate.Expected.CostMicros)
		lines, err := p.tierLines(&spec, planned, tiers, time.Now())
		if err != nil {
			return err
		}
		for _, line := range lines {
			fmt.Fprintln(a.Stdout, line)
		}
	}
	cascades, err := cascadesOf(&spec, planned)
	if err != nil {
		return err
	}
	for _, c := range cascades {
		if p.format.Value == "text" {
			fmt.Fprintf(a.Stdout, "%s\n", console.VisibleText(c.line()))
		}
		if why := c.warning(); why != "" {
			fmt.Fprintf(a.Stderr, "warning: %s\n", console.VisibleText(why))
		}
	}
	if set := settings.RunParameters(&spec); p.format.Value == "text" && !set.IsZero() {
		fmt.Fprintf(a.Stdout, "parameters: %s\n", console.VisibleText(set.String()))
		if set.Tier == parameters.Batch && spec.See() != mapreduce.SeeNever {
			fmt.Fprintln(a.Stdout, "units that are shown pages ask in real time and at the full price, which the cost above is at for all units; those without pages cost less, by batch")
		}
		if set.Tier == parameters.Batch {
			fmt.Fprintln(a.Stdout, "a batch is answered within minutes as a rule, and within a day or two at the latest; the time above is without that wait, one for each level that asks a model")
		}
	}
	return nil
}

// planInputs returns the plan of a job over inputs. It needs the store only if jobs are
// among them, or for how long batches took of late, of a job with a deadline.
func (p *planner) planInputs(ctx context.Context, spec mapreduce.JobSpec, in input.Config) (planned *mapreduce.Plan, err error) {
	makeBy := func(ctx context.Context, q mapreduce.PlanQuery, docs iter.Seq2[*mapreduce.Document, error]) (*mapreduce.Plan, error) {
		return planJob(ctx, p.app, q, docs)
	}
	makePlan := func() (err error) {
		m := p.app.ProgressMeter()
		defer m.End()
		planned, err = makeBy(ctx, mapreduce.PlanQuery{Spec: spec, Exact: p.exact}, countDocuments(input.Documents(ctx, in), m.Planning))
		return err
	}

	jobs := in.Jobs()
	if len(jobs) == 0 {
		timed := !spec.Deadline.IsZero() || p.flags.parsed != nil && p.flags.parsed.Deadline != ""
		if !timed || p.app.Global.Server != "" || p.app.HasNoData() {
			err = makePlan()
			return planned, err
		}
		err = p.app.WithReader(ctx, func(s *program.Session) error {
			makeBy = s.PlanJob
			return makePlan()
		})
		return planned, err
	}

	if p.app.HasNoData() {
		return nil, errs.Field("input", "no job has the id %q: there are none in %s", jobs[0], p.app.Global.Location)
	}

	err = p.app.WithReader(ctx, func(s *program.Session) error {
		in.Service = s
		if err := input.CheckJobs(ctx, in); err != nil {
			return err
		}
		return makePlan()
	})
	return planned, err
}

// planJob asks the server for the plan, or makes it in this process, without a store.
func planJob(ctx context.Context, a *program.Program, q mapreduce.PlanQuery, docs iter.Seq2[*mapreduce.Document, error]) (p *mapreduce.Plan, err error) {
	if a.Global.Server == "" {
		rates, err := a.Runners.PlanRates()
		if err != nil {
			return nil, err
		}
		askers, err := a.Runners.KnowingAll()
		if err != nil {
			return nil, err
		}
		check, err := a.Runners.SpecCheck()
		if err != nil {
			return nil, err
		}
		advise, err := a.Runners.SpecAdvice()
		if err != nil {
			return nil, err
		}

		return orchestrator.Plan(ctx, orchestrator.Config{Rates: rates, Look: runners.Looker(askers), Overhead: runners.PromptOverhead(askers), Check: check, Advise: advise}, q, docs)
	}

	c, err := a.Dial(a.Global.Server)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return c.PlanJob(ctx, q, docs)
}

// showJobTree shows the tree of a job that was submitted.
func (p *planner) showJobTree(cmd *cobra.Command) error {
	var odd []string

	// An input may be an argument, which changes no flag.
	for _, name := range []string{"input", "exact"} {
		if name == "input" && len(p.flags.inputs) > 0 || cmd.Flags().Changed(name) {
			odd = append(odd, "--"+name)
		}
	}
	if len(odd) > 0 {
		return exit.UsageError("--job-id: shows a submitted job, and cannot be set together with %s", strings.Join(odd, ", "))
	}

	show := func(ctx context.Context, s *program.Session, id mapreduce.JobID) error {
		job, err := s.GetJob(ctx, id)
		if err != nil {
			return err
		}
		return results.WriteDAG(ctx, s, job, p.format.Value, p.app.Stdout)
	}
	return p.app.OnJob(&p.job, show)(cmd, nil)
}
