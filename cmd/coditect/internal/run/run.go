// Package run has the commands that run jobs, plan them and write their results.
package run

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/dashboard"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/input"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results"
	"github.com/coditect/mapreduce/cmd/coditect/internal/show"
)

func (cmds *commands) runCommand() *cobra.Command {
	var (
		flags  jobFlags
		out    outputFlags
		detach bool
		ui     bool
	)

	cmd := &cobra.Command{
		Use:   "run PATH... --schema FILE [--output DIR]",
		Short: "Submit a job, run it, and write its results",
		Long: `Run submits a job over documents, runs it, and writes its results. The job runs in
this process or, with --server, on a server.

A job consists of units of work. A unit reads a document or a part of one, or reduces: it
merges what other units found.

Finished work is always kept: ` + "`coditect mapreduce resume`" + ` continues an interrupted job.
If another run has the data directory open, that run's process runs the job.

A document that cannot be read as it is given, such as a damaged file, or one beyond a limit, is
skipped. A document that should have been read or mapped, and was not, has failed.

Exit codes: 0 complete, 1 failed, 2 wrong command line or refused input, 3 complete with failed
units (with --fail-on-skipped also with skipped documents), 4 paused, 5 cancelled,
130 interrupted.`,
		Example: `  coditect mapreduce run receipts --schema receipt.yaml --output results
  coditect mapreduce run letters/*.txt notes --schema s.yaml
  coditect mapreduce run --input docs --include '**/*.md' --exclude drafts --schema s.yaml
  cat documents.jsonl | coditect mapreduce run - --schema s.yaml -o jsonl | jq .total
  coditect mapreduce run letters --schema s.yaml --format csv --format parquet
  coditect mapreduce run --input job:mr_20260101_a1b2c3 --schema totals.yaml
  coditect mapreduce run --input docs --schema s.yaml --provider anthropic --model claude-haiku-4-5 --sample 5`,
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.inputs = append(flags.inputs, args...)
			if err := out.apply(cmds.Program); err != nil {
				return err
			}
			r := &runner{app: cmds.Program, output: &out, flags: &flags, begun: time.Now(), ui: ui}
			return r.runJob(cmd, detach)
		},
	}

	flags.extra = cmds.Runners.Extra.Name
	groups := groupFlags(cmd)
	flags.addFlags(cmd, groups)
	cmds.addRunnerFlags(cmd, groups)
	groups.Add(groupInput, func() { cmds.Runners.Members.AddFlags(cmd.Flags()) })
	groups.Add(groupOutput, func() {
		out.addFlags(cmd)
		out.addSkipped(cmd)
		cmd.Flags().BoolVar(&detach, "detach", false, "do not wait for the job; needs --server")
		cmd.Flags().BoolVar(&ui, "ui", false, "show the job on a page, whose address is printed, until the command is interrupted")
	})
	return cmd
}

// A runner runs one job to its end.
type runner struct {
	app    *program.Program
	flags  *jobFlags    // of run; nil for resume
	output *outputFlags // nil for replay
	s      *program.Session
	begun  time.Time // of the command
	ui     bool      // the job is shown on a page
}

// runJob makes all checks that need no store, and then runs the job.
func (r *runner) runJob(cmd *cobra.Command, detach bool) (err error) {
	ctx, p := cmd.Context(), r.app
	if detach && r.ui {
		return exit.UsageError("--ui: shows the job while this command waits for it, so not with --detach")
	}
	if detach && p.Global.Server == "" {
		return exit.UsageError("--detach: needs --server; without it this process is the service and must not end")
	}

	spec, err := r.flags.jobSpec(ctx, cmd.Flags())
	console.PrintWarnings(p.Stderr, r.flags.warnings)
	for _, note := range r.flags.notes { // they may say why an agent is missing
		fmt.Fprintf(p.Stderr, "note: %s\n", note)
	}
	if err != nil {
		return err
	}

	if err := p.Runners.Models.SetPrices(&spec); err != nil {
		return err
	}
	if spec.Output, err = r.output.remembered(); err != nil {
		return err
	}

	in, err := r.flags.inputConfig(ctx, p)
	if err != nil {
		return err
	}
	in.Question = r.flags.questionInput(&spec)
	spec.Reading = p.Runners.Documents.Reading(cmd.Flags())

	if err := r.checkReaders(cmd.Flags(), false); err != nil {
		return err
	}
	if err := input.Check(ctx, in); err != nil {
		return err
	}

	// Tools may be programs that are started, so the checks that cost little come before.
	defer func() { err = errors.Join(err, p.Runners.CloseTools()) }()
	if _, err := p.Runners.OpenTools(ctx); err != nil {
		return err
	}

	if err := p.Runners.CheckRunnable(&spec, cmd.Flags().Lookup("max-tokens-per-unit")); err != nil {
		return err
	}
	if err := p.Runners.CheckAccepted(spec); err != nil {
		return r.flags.locateFault(err)
	}
	if err := r.output.checkFolder(); err != nil {
		return err
	}

	return r.withSession(ctx, func() error {
		// Only the session shows which process reads the documents.
		if err := r.checkReaders(cmd.Flags(), false); err != nil {
			return err
		}

		in.Service = r.s
		in.Note = func(message string) { r.s.Meter.Note("note: %s", message) }
		p.Runners.Note = in.Note
		if err := r.s.RetryReconnected(ctx, func() error { return input.CheckJobs(ctx, in) }); err != nil {
			return err
		}

		if err := r.s.RunWorkerFor(&spec); err != nil {
			return err
		}

		job, err := r.submitJob(ctx, spec, in)
		if err != nil {
			return r.flags.locateFault(err)
		}

		if detach {
			return p.PrintData(show.StatusOf(job), func() { fmt.Fprintln(p.Stdout, job.ID) })
		}
		if r.ui {
			return r.followOnPage(ctx, job.ID)
		}
		return r.followAndWrite(ctx, job.ID)
	})
}

// followOnPage follows a job with a page on which people see it, and keeps the page after the end of
// the job until the command is interrupted.
func (r *runner) followOnPage(ctx context.Context, id mapreduce.JobID) error {
	formats, err := r.app.Runners.DocumentFormats()
	if err != nil {
		return err
	}

	drawer := r.app.Self.Drawer(r.app.Runners.Drawing())
	defer drawer.Close()
	pages, err := dashboard.Listen(r.s.Client, dashboard.Config(r.app.Version, formats, true, drawer.Func()))
	if err != nil {
		return exit.RefusedError("--ui: %w", err)
	}
	defer pages.Close()
	r.s.Meter.Note("the job is shown at %s", pages.Address(id))

	err = r.followAndWrite(ctx, id)
	if ctx.Err() == nil {
		r.s.Meter.Note("the page stays until you interrupt this command")
		<-ctx.Done()
	}
	return err
}

// checkReaders refuses flags of reading documents that have no effect because another
// process reads those of the job.
func (r *runner) checkReaders(flags *pflag.FlagSet, submitted bool) error {
	g := &r.app.Global
	switch {
	case g.Server != "":
		return r.app.Runners.Documents.CheckElsewhere(flags, "the server "+g.Server, submitted)
	case r.s != nil && !r.s.IsHere():
		return r.app.Runners.Documents.CheckElsewhere(flags, fmt.Sprintf("the process that works in %s", g.Location), submitted)
	}
	return nil
}

// withSession calls do with a session.
func (r *runner) withSession(ctx context.Context, do func() error) (err error) {
	m := r.app.ProgressMeter()
	defer m.End()

	if r.s, err = r.app.OpenSession(ctx, program.ModeRunUnits, m); err != nil {
		return exit.Cause(ctx, err)
	}

	r.s.TurnToNext()
	defer func() {
		m.End()
		if e := r.s.Close(); e != nil && err == nil {
			err = e
		}
	}()

	return exit.Cause(ctx, r.s.WarnIfSlow(ctx, do))
}

// submitJob submits a job. If the service goes away, submitJob sends the submission
// again to the successor. The request id makes sure that there is one job.
func (r *runner) submitJob(ctx context.Context, spec mapreduce.JobSpec, in input.Config) (*mapreduce.Job, error) {
	var job *mapreduce.Job
	submit := func() (err error) {
		job, err = r.s.SubmitJob(ctx, spec, countDocuments(input.Documents(ctx, in), r.s.Meter.Submitting))
		r.s.Meter.End()
		return err
	}

	// Standard input cannot be read a second time.
	var err error
	if in.Again() {
		err = r.s.RetryReconnected(ctx, submit)
	} else {
		err = submit()
	}

	switch {
	case err == nil:
		r.s.Meter.Note("job %s", job.ID)
		return job, nil
	case errors.Is(context.Cause(ctx), exit.ErrInterrupted):
		if job := r.findSubmitted(ctx, spec); job != nil {
			return nil, r.interruptedError(job.ID, job)
		}
		return nil, &exit.Error{Code: exit.Interrupted, Err: errors.New("interrupted: nothing was submitted")}
	}
	return nil, err
}

// findWait bounds how long an interrupted command looks for its job.
const findWait = 2 * time.Second

// findSubmitted returns the job that an interrupted submission has become, or nil: the service
// may have made it before it heard of the interrupt. A submission without documents makes no
// job, and returns the one that its request has made.
func (r *runner) findSubmitted(ctx context.Context, spec mapreduce.JobSpec) *mapreduce.Job {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), findWait)
	defer stop()
	job, err := r.s.SubmitJob(ctx, spec, func(func(*mapreduce.Document, error) bool) {})
	if err != nil {
		return nil
	}
	return job
}

// countDocuments passes documents on and shows their number and size so far.
func countDocuments(docs iter.Seq2[*mapreduce.Document, error], show func(documents, bytes int64)) iter.Seq2[*mapreduce.Document, error] {
	return func(yield func(*mapreduce.Document, error) bool) {
		documents, bytes := int64(0), int64(0)
		for d, err := range docs {
			if d != nil {
				documents, bytes = documents+1, bytes+int64(len(d.Content))
				show(documents, bytes)
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// followAndWrite follows a job to its end and writes its results.
func (r *runner) followAndWrite(ctx context.Context, id mapreduce.JobID) error {
	job, err := r.s.FollowJob(ctx, id, func(j *mapreduce.Job) error {
		r.s.Meter.Job(j)
		return nil
	})
	r.s.Meter.End()
	if errors.Is(err, exit.ErrInterrupted) {
		return r.interruptedError(id, job)
	}
	if err != nil {
		return err
	}

	var end show.End
	if job.State == mapreduce.JobComplete {
		if job, end, err = r.writeResults(ctx, id); err != nil {
			return r.unwrittenError(ctx, id, err)
		}
	}

	if !r.begun.IsZero() {
		end.Took = time.Since(r.begun)
	}
	if err := r.output.printEnd(r.app, job, end); err != nil {
		return err
	}

	// Other commands may wait for their jobs in this process.
	r.s.WaitForClients(ctx)
	return exit.With(r.output.exitCode(job, end.Broken))
}

// writeResults writes the results, and prints the records if the user wants them. It
// returns the job as it is afterwards.
func (r *runner) writeResults(ctx context.Context, id mapreduce.JobID) (job *mapreduce.Job, end show.End, err error) {
	c, err := r.output.configWith(r.app, id)
	if err != nil {
		return nil, end, err
	}
	r.s.Meter.Note("writing results to %s", c.Dir)
	c.Progress, c.Print = r.s.Meter.Writing, r.output.printed()

	var written *results.Written
	err = r.s.RetryReconnected(ctx, func() error {
		if written != nil && written.Print != nil {
			_ = written.Print.Close() // it is written again
		}
		var err error
		if written, err = results.Write(ctx, r.s, c); err != nil {
			return err
		}
		end = show.End{Dir: c.Dir, Skipped: written.Skipped, Failed: written.Failed, Broken: written.Broken}
		job, err = r.s.GetJob(ctx, id) // its audit chain has grown
		return err
	})

	r.s.Meter.End()
	if err == nil && written.Print != nil {
		err = written.PrintTo(r.app.Data())
	}
	return job, end, err
}

// unwrittenError says that a job is complete although its results were not written.
func (r *runner) unwrittenError(ctx context.Context, id mapreduce.JobID, err error) error {
	err = exit.Cause(ctx, err)
	return &exit.Error{Code: exit.CodeOf(err), Err: fmt.Errorf("%s\nthe job is complete; write its results with\n%s", exit.Message(err), r.commandLine("result", id))}
}

// interruptedError says how to continue a job.
func (r *runner) interruptedError(id mapreduce.JobID, last *mapreduce.Job) error {
	if last != nil && r.app.Format == console.JSON {
		if err := r.app.PrintData(show.StatusOf(last), nil); err != nil {
			return err
		}
	}
	return &exit.Error{Code: exit.Interrupted, Err: fmt.Errorf(
		"interrupted: the finished work of job %s is kept; continue with\n%s", id, r.commandLine("resume", id))}
}

// commandLine returns the command line of another command that writes results.
func (r *runner) commandLine(verb string, id mapreduce.JobID) string {
	return r.app.CommandLine(verb, id) + r.output.words()
}

func (cmds *commands) resumeCommand() *cobra.Command {
	var (
		id     string
		out    outputFlags
		budget budgetFlags
		cause  string
		due    string
	)

	cmd := &cobra.Command{
		Use:   "resume JOB",
		Short: "Continue a job, and write its results",
		Long: `Resume continues a job that was interrupted, paused or failed. For a complete job it
tries the failed units again, also those that were set aside; if no unit failed, it only
writes the results. It runs no complete unit again, and does not read skipped documents again. Units whose
cause "failures --ignore" has accepted stay as they are; --cause tries the units of one cause alone.

The results go where the run was to write them, in the same formats; --output and --format say
otherwise.`,
		Example: `  coditect mapreduce resume last
  coditect mapreduce resume mr_20260101_a1b2c3 --budget 500000
  coditect mapreduce resume last --deadline 17:30`,
		RunE: func(cmd *cobra.Command, args []string) error {
			how := mapreduce.Resume{Cause: mapreduce.CauseOf(cause)}
			var err error
			if how.Budget, how.BudgetIn, err = budget.read(cmd.Flags()); err != nil {
				return err
			}
			if cmd.Flags().Changed("deadline") {
				if how.Deadline, err = parseDeadline(due, time.Now()); err != nil {
					return err
				}
			}

			if err := out.apply(cmds.Program); err != nil {
				return err
			}

			r := &runner{app: cmds.Program, output: &out}
			name, err := program.JobName(cmd, id, args)
			if err != nil {
				return err
			}
			return r.resumeJob(cmd, name, how)
		},
	}

	cmd.Flags().SortFlags = false
	groups := groupFlags(cmd)
	cmds.addRunnerFlags(cmd, groups)
	groups.Add(groupLimits, func() {
		budget.addFlags(cmd.Flags(), "new budget: ")
		cmd.Flags().StringVar(&due, "deadline", "", "new `TIME` by which the job is to end, or how long it may take from now on, of a job that has a deadline")
		cmd.Flags().StringVar(&cause, "cause", "", "`cause` of failed units, as \"failures\" shows it: tries these alone again")
	})
	groups.Add(groupOutput, func() {
		cmds.AddJobID(cmd, &id)
		out.addFlags(cmd)
		out.addSkipped(cmd)
	})
	return cmd
}

// addRunnerFlags adds the flags of a command whose process may run units.
func (cmds *commands) addRunnerFlags(cmd *cobra.Command, groups *console.FlagGroups) {
	f := cmd.Flags()
	groups.Add(groupInput, func() { cmds.Runners.Documents.AddFlags(f) })
	groups.Add(groupModel, func() { cmds.Runners.Models.AddFlags(f) })
	groups.Add(groupLimits, func() { cmds.Runners.Limits.AddFlags(f) })
	groups.Add(groupTools, func() { cmds.Runners.Tools.AddFlags(f) })
}

func (r *runner) resumeJob(cmd *cobra.Command, name string, how mapreduce.Resume) (err error) {
	ctx := cmd.Context()
	defer func() { err = errors.Join(err, r.app.Runners.CloseTools()) }()
	if _, err := r.app.Runners.OpenTools(ctx); err != nil {
		return err
	}

	return r.withSession(ctx, func() error {
		if err := r.checkReaders(cmd.Flags(), true); err != nil {
			return err
		}

		id, err := r.s.FindJob(ctx, name)
		if err != nil {
			return err
		}
		job, err := r.findJob(ctx, id)
		if err != nil {
			return err
		}

		if note := r.output.recall(job, cmd.Flags(), r.app.Global.Server != ""); note != "" {
			r.s.Meter.Note("note: %s", note)
		}
		if err := r.output.checkFolder(); err != nil {
			return err
		}
		if err := r.app.Runners.Documents.CheckResumed(cmd.Flags(), &job.Spec); err != nil {
			return err
		}

		at := job.Spec.Deadline
		if !how.Deadline.IsZero() {
			at = how.Deadline
		}
		if !at.IsZero() {
			r.s.Meter.Note("deadline: %s", at.Local().Format(moment))
		}

		if hasNothingToRun(job) { // so nothing is needed that units run with
			return r.followAndWrite(ctx, id)
		}
		if err := r.app.Runners.CheckRunnable(&job.Spec, nil); err != nil {
			return err
		}
		if err := r.s.RunWorkerFor(&job.Spec); err != nil {
			return err
		}

		err = r.s.RetryReconnected(ctx, func() error {
			_, err := r.s.ResumeJob(ctx, id, how)
			return err
		})
		if err != nil && errs.ReasonOf(err) != errs.JobComplete { // it has ended since it was looked at
			return err
		}

		return r.followAndWrite(ctx, id)
	})
}

// findJob returns a job as it stands.
func (r *runner) findJob(ctx context.Context, id mapreduce.JobID) (job *mapreduce.Job, err error) {
	err = r.s.RetryReconnected(ctx, func() (err error) {
		job, err = r.s.GetJob(ctx, id)
		return err
	})
	return job, err
}

// hasNothingToRun reports whether a job is complete, with no failed unit to try again. Its
// results may yet have to be written: the command that ran it may have been killed before.
func hasNothingToRun(job *mapreduce.Job) bool {
	return job.State == mapreduce.JobComplete && job.FailedUnits == 0
}
