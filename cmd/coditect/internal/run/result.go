package run

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results"
	"github.com/coditect/mapreduce/cmd/coditect/internal/show"
)

func (cmds *commands) resultCommand() *cobra.Command {
	var (
		id      string
		out     outputFlags
		partial bool
	)

	cmd := &cobra.Command{
		Use:   "result JOB",
		Short: "Write or print the results of a job again",
		Long: `Result writes the results of a job again. With -o jsonl, csv or parquet it prints the
records instead, and with -o json the whole result.json. It then writes files only if
--output names a folder.`,
		Example: `  coditect mapreduce result last --output results --format csv
  coditect mapreduce result last -o jsonl | jq .total
  coditect mapreduce result mr_20260101_a1b2c3 -o csv --citations > records.csv
  coditect mapreduce result mr_20260101_a1b2c3 --partial`,
	}

	run := cmds.OnJob(&id, func(ctx context.Context, s *program.Session, job mapreduce.JobID) error {
		return cmds.writeResult(ctx, s, job, &out, partial)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := out.apply(cmds.Program); err != nil {
			return err
		}
		return run(cmd, args)
	}

	cmds.AddJobID(cmd, &id)
	out.addFlagsFor(cmd, "all of the result")
	cmd.Flags().BoolVar(&partial, "partial", false, "write the results so far of a job that is not complete")
	return cmd
}

// writeResult writes the results of a job, or prints them.
func (cmds *commands) writeResult(ctx context.Context, s *program.Session, id mapreduce.JobID, out *outputFlags, partial bool) error {
	c, err := out.configWith(cmds.Program, id)
	if err != nil {
		return err
	}
	c.Partial = partial

	// With -o, files are written only if --output names a folder.
	prints := out.print.Value != string(console.Text)
	if !prints || out.dir != "" {
		if err := out.checkFolder(); err != nil {
			return err
		}

		written, err := results.Write(ctx, s, c)
		if err != nil {
			return err
		}
		if !prints {
			return show.PrintEnd(cmds.Program, written.Job, show.End{Dir: c.Dir, Skipped: written.Skipped, Failed: written.Failed, Broken: written.Broken})
		}
	}

	return out.printResult(ctx, cmds.Program, s, c)
}
