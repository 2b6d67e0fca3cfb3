package show

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
)

func (cmds *commands) watchCommand() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "watch JOB",
		Short: "Show the progress of a job until it ends",
		Long: `Watch shows the progress of a job until it ends. Its exit code says how the job ended.
For agents with tools it shows each turn and each call of a tool as it happens. With
-o json each change is a line of JSON, in which turns and calls are under activity.`,
		Example: `  coditect mapreduce watch mr_20260101_a1b2c3`,
	}

	cmd.RunE = cmds.OnJob(&id, cmds.watchJob)
	cmds.AddJobID(cmd, &id)
	return cmd
}

func (cmds *commands) watchJob(ctx context.Context, s *program.Session, id mapreduce.JobID) error {
	defer s.Meter.End()
	job, err := s.FollowJob(ctx, id, cmds.showChange(s))
	if err != nil {
		return err
	}
	return cmds.printWatched(s, job)
}

func (cmds *commands) showChange(s *program.Session) func(*mapreduce.Job) error {
	return func(j *mapreduce.Job) error {
		if cmds.Format == console.JSON {
			return cmds.PrintLine(StatusOf(j), nil)
		}
		s.Meter.Job(j)
		return nil
	}
}

func (cmds *commands) printWatched(s *program.Session, job *mapreduce.Job) error {
	s.Meter.End()
	if cmds.Format != console.JSON {
		if err := PrintEnd(cmds.Program, job, End{}); err != nil {
			return err
		}
	}
	return exit.With(exit.OfJob(job))
}
