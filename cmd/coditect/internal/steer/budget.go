package steer

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/show"
)

func (cmds *commands) budgetCommand() *cobra.Command {
	var id, amount string
	cmd := &cobra.Command{
		Use:   "budget JOB --set AMOUNT",
		Short: "Change the budget of a job that runs",
		Long: `Budget gives a job that runs another budget, in tokens or in dollars as the job's own is. What was spent
counts. A job that its budget has paused is resumed with "resume --budget" or "resume --max-cost".`,
		Example: `  coditect mapreduce budget last --set 500000
  coditect mapreduce budget mr_20260101_a1b2c3 --set '$5'`,
	}

	cmd.RunE = cmds.MoveJob(&id, func(ctx context.Context, s *program.Session, job mapreduce.JobID) error {
		how, err := readAmount(amount)
		if err != nil {
			return err
		}
		j, err := s.GetJob(ctx, job)
		if err != nil {
			return err
		}
		if !j.State.Running() {
			return errs.New(errs.Precondition, "job %s is %s: `coditect mapreduce resume %s` continues it with a new budget", job, j.State, job)
		}

		if j, err = s.ResumeJob(ctx, job, how); err != nil {
			return err
		}
		return cmds.PrintData(show.StatusOf(j), func() {
			fmt.Fprintf(cmds.Stdout, "the budget of %s is %s\n", j.ID, j.Spec.BudgetIn.BudgetText(j.Spec.Budget))
		})
	})

	cmds.AddJobID(cmd, &id)
	cmd.Flags().StringVar(&amount, "set", "", "`amount` of tokens, or of dollars such as $5")
	return cmd
}

// readAmount reads a budget.
func readAmount(text string) (how mapreduce.Resume, err error) {
	if text == "" {
		return how, exit.UsageError("--set: is missing; give tokens such as 500000, or dollars such as $5")
	}
	if how.Budget, how.BudgetIn, err = mapreduce.ParseBudget(text); err != nil {
		return how, exit.UsageError("--set: %w", err)
	}
	if how.Budget == 0 {
		return how, exit.UsageError("--set: %q is nothing; cancel or pause the job to end its spending", text)
	}
	return how, nil
}
