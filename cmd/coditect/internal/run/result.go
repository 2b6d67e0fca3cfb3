package run

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results"
	"github.com/coditect/mapreduce/cmd/coditect/internal/show"
)

func (a *commands) resultCommand() *cobra.Command {
	var (
		id, out string
		partial bool
	)
	cmd := &cobra.Command{
		Use:   "result JOB",
		Short: "Write the results of a job again",
		Example: `  coditect mapreduce result last --output results
  coditect mapreduce result mr_20260101_a1b2c3 --partial`,
	}
	cmd.RunE = a.OnJob(&id, func(ctx context.Context, s *program.Session, job mapreduce.JobID) error {
		r := &runner{app: a.Program, output: out, s: s}
		if err := r.checkOutput(); err != nil {
			return err
		}
		dir := r.outputOf(job)
		j, err := results.Write(ctx, s, results.Config{Dir: dir, Job: job, Partial: partial})
		if err != nil {
			return err
		}
		return show.PrintEnd(a.Program, j, dir)
	})
	a.AddJobID(cmd, &id)
	addOutput(cmd, &out)
	cmd.Flags().BoolVar(&partial, "partial", false, "write the results so far of a job that is not complete")
	return cmd
}
