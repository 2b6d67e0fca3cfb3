package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/client"
	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/input"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/plan"
	"github.com/coditect/mapreduce/orchestrator/plan/render"
)

// A planner shows the tree of one job, before or after it runs.
type planner struct {
	app    *app
	flags  jobFlags
	format choice
	exact  bool
	job    string // whose DAG is shown instead
}

func (a *app) planCommand() *cobra.Command {
	p := &planner{app: a, format: choice{"text", render.Formats()}}
	cmd := &cobra.Command{
		Use:   "plan --input PATH... --schema FILE [-o FORMAT]",
		Short: "Show what a job would do and cost, before anything is spent",
		Long: `Plan accepts the flags of run and shows the tree of units that run would make: the
map level, the reduces above it, their sizes, and their expected calls, tokens, cost
and time. It stores nothing and spends nothing.

A static tree is known before the run. A tree that depends on the outputs of units is
estimated, and marked as an estimate; --exact refuses it. With --job-id, plan shows
the tree of a submitted job, with the state and cost of each unit.`,
		Example: `  coditect mapreduce plan --input receipts --schema receipt.yaml --chunk-size 5
  coditect mapreduce plan --input docs --schema s.yaml --context-window 128000 -o json
  coditect mapreduce plan --input docs --schema s.yaml --format svg > plan.svg
  coditect mapreduce plan --job-id mr_20260101_a1b2c3 --format mermaid`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.runPlan(cmd) },
	}
	p.flags.addFlags(cmd)
	f := cmd.Flags()
	f.VarP(&p.format, "format", "o", "format of the plan")
	f.BoolVar(&p.exact, "exact", false, "refuse a plan that is an estimate")
	a.addJobID(cmd, &p.job)
	_ = cmd.RegisterFlagCompletionFunc("format", completeWords(p.format.of...)) // the flag exists
	acceptRunFlags(cmd)
	return cmd
}

// acceptRunFlags accepts the flags of run that have no effect on a plan, so that
// a user can turn the command line of a run into that of its plan by one word.
func acceptRunFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.String("output", "", "as run has it; nothing is written")
	f.Bool("detach", false, "as run has it; nothing is waited for")
	for _, name := range []string{"output", "detach"} {
		_ = f.MarkHidden(name) // the flag exists
	}
}

func (p *planner) runPlan(cmd *cobra.Command) error {
	if cmd.Flags().Changed("job-id") {
		return p.showJobTree(cmd)
	}
	ctx, a := cmd.Context(), p.app
	spec, err := p.flags.jobSpec(ctx, cmd.Flags())
	if err != nil {
		return err
	}
	in, err := p.flags.inputConfig(ctx, a)
	if err != nil {
		return err
	}
	if err := input.Check(ctx, in); err != nil {
		return err
	}
	if err := a.couldRun(&spec, cmd.Flags().Lookup("max-tokens-per-unit")); err != nil {
		return p.flags.locateFault(err)
	}
	planned, err := p.planInputs(ctx, spec, in)
	if err != nil {
		return causeOf(ctx, p.flags.locateFault(err))
	}
	dag, err := plan.From(planned)
	if err != nil {
		return err
	}
	text, err := render.As(p.format.value, dag)
	if err != nil {
		return err
	}
	fmt.Fprint(a.stdout, text)
	return nil
}

// planInputs returns the plan of a job over inputs. It needs the store only if jobs are
// among them.
func (p *planner) planInputs(ctx context.Context, spec mapreduce.JobSpec, in input.Config) (planned *mapreduce.Plan, err error) {
	makePlan := func() (err error) {
		m := p.app.progressMeter()
		defer m.End()
		planned, err = p.app.planJob(ctx, mapreduce.PlanQuery{Spec: spec, Exact: p.exact}, countDocuments(input.Documents(ctx, in), m.Planning))
		return err
	}
	jobs := in.Jobs()
	if len(jobs) == 0 {
		err = makePlan()
		return planned, err
	}
	if p.app.hasNoData() {
		return nil, errs.Field("input", "no job has the id %q: there are none in %s", jobs[0], p.app.global.location)
	}
	err = p.app.withReader(ctx, func(s *session) error {
		in.Service = s
		if err := input.CheckJobs(ctx, in); err != nil {
			return err
		}
		return makePlan()
	})
	return planned, err
}

// couldRun refuses a job that could not run even with the key of its model.
func (a *app) couldRun(spec *mapreduce.JobSpec, units *pflag.Flag) error {
	if err := a.checkProvider(spec.Provider); err != nil {
		return err
	}
	if keyVariables[spec.Provider] != "" {
		there, err := keylessAgent(spec.Provider)
		if err != nil {
			return err
		}
		if err := fitSpec(there, spec, units); err != nil {
			return err
		}
	}
	return a.checkAccepted(*spec)
}

// planJob asks the server for the plan, or makes it in this process, without a store.
func (a *app) planJob(ctx context.Context, q mapreduce.PlanQuery, docs iter.Seq2[*mapreduce.Document, error]) (p *mapreduce.Plan, err error) {
	if a.global.server == "" {
		rates, err := a.planRates()
		if err != nil {
			return nil, err
		}
		askers, err := a.knowingAll()
		if err != nil {
			return nil, err
		}
		return orchestrator.Plan(ctx, orchestrator.Config{Rates: rates, Overhead: promptOverhead(askers)}, q, docs)
	}
	c, err := client.Dial(a.global.server, client.Config{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return c.PlanJob(ctx, q, docs)
}

// showJobTree shows the tree of a job that was submitted.
func (p *planner) showJobTree(cmd *cobra.Command) error {
	var odd []string
	for _, name := range []string{"input", "exact"} {
		if cmd.Flags().Changed(name) {
			odd = append(odd, "--"+name)
		}
	}
	if len(odd) > 0 {
		return usageError("--job-id: shows a submitted job, and cannot be set together with %s", strings.Join(odd, ", "))
	}
	show := func(ctx context.Context, s *session, id mapreduce.JobID) error {
		job, err := s.GetJob(ctx, id)
		if err != nil {
			return err
		}
		return results.WriteDAG(ctx, s, job, p.format.value, p.app.stdout)
	}
	return p.app.onJob(&p.job, show)(cmd, nil)
}
