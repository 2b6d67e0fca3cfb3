// Package steer has the commands that change jobs: pause, cancel, budget, failures, wake and delete.
package steer

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/show"
)

func (cmds *commands) pauseCommand() *cobra.Command {
	return cmds.lifecycleCommand("pause", "Stop a job for now; running units may finish",
		func(ctx context.Context, s *program.Session, id mapreduce.JobID) (*mapreduce.Job, error) {
			return s.PauseJob(ctx, id)
		})
}

func (cmds *commands) cancelCommand() *cobra.Command {
	return cmds.lifecycleCommand("cancel", "Stop a job for good",
		func(ctx context.Context, s *program.Session, id mapreduce.JobID) (*mapreduce.Job, error) {
			if _, err := s.CancelJob(ctx, id); err != nil {
				return nil, err
			}
			return waitUntilSwept(ctx, s, id)
		})
}

// lifecycleCommand returns a command that changes a job's state and prints the new state.
func (cmds *commands) lifecycleCommand(verb, short string, do func(context.Context, *program.Session, mapreduce.JobID) (*mapreduce.Job, error)) *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:     verb + " JOB",
		Short:   short,
		Example: fmt.Sprintf("  coditect mapreduce %s mr_20260101_a1b2c3", verb),
		RunE: cmds.MoveJob(&id, func(ctx context.Context, s *program.Session, id mapreduce.JobID) error {
			j, err := do(ctx, s, id)
			if err != nil {
				return err
			}
			return cmds.PrintData(show.StatusOf(j), func() { fmt.Fprintf(cmds.Stdout, "%s is %s\n", j.ID, j.State) })
		}),
	}

	cmds.AddJobID(cmd, &id)
	return cmd
}

const (
	sweepLook = 20 * time.Millisecond // between looks at the units of a cancelled job
	sweepWait = 30 * time.Second
)

// waitUntilSwept returns a cancelled job. If the service ends with this process, it
// first waits until the units of the job are marked as cancelled, but not longer
// than sweepWait. The next process that opens the store marks the rest.
func waitUntilSwept(ctx context.Context, s *program.Session, id mapreduce.JobID) (*mapreduce.Job, error) {
	open := mapreduce.ListUnitsQuery{
		Job: id, PageSize: 1, States: []mapreduce.UnitState{mapreduce.Blocked, mapreduce.Pending, mapreduce.Processing},
	}

	for start := time.Now(); s.IsHere() && time.Since(start) < sweepWait; {
		page, err := s.ListUnits(ctx, open)
		if err != nil {
			return nil, err
		}
		if len(page.Units) == 0 {
			break
		}
		if err := clock.Sleep(ctx, sweepLook); err != nil {
			return nil, err
		}
	}

	var job *mapreduce.Job
	err := s.RetryReconnected(ctx, func() (err error) { // the process that served the job may have ended with it
		job, err = s.GetJob(ctx, id)
		return err
	})
	return job, err
}

func (cmds *commands) wakeCommand() *cobra.Command {
	var id, unit, handle, answer string
	cmd := &cobra.Command{
		Use:   "wake JOB --unit UNIT --handle HANDLE",
		Short: "Wake a unit that waits for an external event",
		Long: `Wake lets a parked unit continue. A parked unit waits for an external event, such as the end
of a batch at a vendor, or the answer of a person. ` + "`coditect mapreduce units`" + ` shows
parked units with their handles. The unit gets the answer, which has at most 64 KiB. A second
wake with the same handle changes nothing.`,
		Example: `  coditect mapreduce wake mr_20260101_a1b2c3 --unit 001.txt --handle review-1 --answer approved`,
	}

	cmd.RunE = cmds.MoveJob(&id, func(ctx context.Context, s *program.Session, job mapreduce.JobID) error {
		if unit == "" || handle == "" {
			return exit.UsageError("--unit and --handle: both are needed; `coditect mapreduce units --job-id %s` shows them", job)
		}
		u, err := s.WakeUnit(ctx, job, mapreduce.UnitID(unit), handle, []byte(answer))
		if err != nil {
			return err
		}

		woken := struct {
			Job   mapreduce.JobID  `json:"job_id"`
			Unit  mapreduce.UnitID `json:"unit_id"`
			State string           `json:"state"`
		}{job, u.ID, u.State.String()}
		return cmds.PrintData(woken, func() { fmt.Fprintf(cmds.Stdout, "%s is %s\n", console.VisibleText(string(u.ID)), u.State) })
	})

	cmds.AddJobID(cmd, &id)
	f := cmd.Flags()
	f.StringVar(&unit, "unit", "", "`unit` to wake")
	f.StringVar(&handle, "handle", "", "`handle` under which the unit is parked")
	f.StringVar(&answer, "answer", "", "`text` of the answer for the unit")
	return cmd
}

func (cmds *commands) removeCommand() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:     "delete JOB",
		Short:   "Remove a job that is not running, with all its data",
		Example: "  coditect mapreduce delete mr_20260101_a1b2c3",
		RunE: cmds.MoveJob(&id, func(ctx context.Context, s *program.Session, id mapreduce.JobID) error {
			if err := s.DeleteJob(ctx, id); err != nil {
				return err
			}
			deleted := struct {
				ID      mapreduce.JobID `json:"job_id"`
				Deleted bool            `json:"deleted"`
			}{id, true}
			return cmds.PrintData(deleted, func() { fmt.Fprintf(cmds.Stdout, "%s is deleted\n", id) })
		}),
	}

	cmds.AddJobID(cmd, &id)
	return cmd
}
