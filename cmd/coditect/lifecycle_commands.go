package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/clock"
	"github.com/coditect/mapreduce/api/mapreduce"
)

func (a *app) pauseCommand() *cobra.Command {
	return a.lifecycleCommand("pause", "Stop a job for now; running units may finish",
		func(ctx context.Context, s *session, id mapreduce.JobID) (*mapreduce.Job, error) {
			return s.PauseJob(ctx, id)
		})
}

func (a *app) cancelCommand() *cobra.Command {
	return a.lifecycleCommand("cancel", "Stop a job for good",
		func(ctx context.Context, s *session, id mapreduce.JobID) (*mapreduce.Job, error) {
			if _, err := s.CancelJob(ctx, id); err != nil {
				return nil, err
			}
			return s.waitUntilSwept(ctx, id)
		})
}

// lifecycleCommand returns a command that changes a job's state and prints the new state.
func (a *app) lifecycleCommand(verb, short string, do func(context.Context, *session, mapreduce.JobID) (*mapreduce.Job, error)) *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:     verb + " --job-id ID",
		Short:   short,
		Example: fmt.Sprintf("  coditect mapreduce %s --job-id mr_20260101_a1b2c3", verb),
		Args:    cobra.NoArgs,
		RunE: a.moveJob(&id, func(ctx context.Context, s *session, id mapreduce.JobID) error {
			j, err := do(ctx, s, id)
			if err != nil {
				return err
			}
			return a.printData(statusOf(j), func() { fmt.Fprintf(a.stdout, "%s is %s\n", j.ID, j.State) })
		}),
	}
	a.addJobID(cmd, &id)
	return cmd
}

// moveJob returns the RunE of a command that changes one job.
func (a *app) moveJob(id *string, do func(context.Context, *session, mapreduce.JobID) error) func(*cobra.Command, []string) error {
	return a.runOnJob(id, modeMoveJobs, do)
}

const (
	sweepLook = 20 * time.Millisecond // between looks at the units of a cancelled job
	sweepWait = 30 * time.Second
)

// waitUntilSwept returns a cancelled job. If the service ends with this process, it
// first waits until the units of the job are marked as cancelled, but not longer
// than sweepWait. The next process that opens the store marks the rest.
func (s *session) waitUntilSwept(ctx context.Context, id mapreduce.JobID) (*mapreduce.Job, error) {
	open := mapreduce.ListUnitsQuery{
		Job: id, PageSize: 1, States: []mapreduce.UnitState{mapreduce.Blocked, mapreduce.Pending, mapreduce.Processing},
	}
	for start := time.Now(); s.node != nil && time.Since(start) < sweepWait; {
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
	err := s.retryReconnected(ctx, func() (err error) { // whoever served the job may have ended with it
		job, err = s.GetJob(ctx, id)
		return err
	})
	return job, err
}

func (a *app) wakeCommand() *cobra.Command {
	var id, unit, handle, answer string
	cmd := &cobra.Command{
		Use:   "wake --job-id ID --unit UNIT --handle HANDLE",
		Short: "Wake a unit that waits for something outside",
		Long: `Wake lets a parked unit continue. A parked unit waits for something outside, such as a
batch at a vendor or a person. ` + "`coditect mapreduce units`" + ` shows parked units with their
handles. The unit gets the answer, which has at most 64 KiB. A second wake with the
same handle changes nothing.`,
		Example: `  coditect mapreduce wake --job-id mr_20260101_a1b2c3 --unit 001.txt --handle review-1 --answer approved`,
		Args:    cobra.NoArgs,
	}
	cmd.RunE = a.moveJob(&id, func(ctx context.Context, s *session, job mapreduce.JobID) error {
		if unit == "" || handle == "" {
			return usageError("--unit and --handle: both are needed; `coditect mapreduce units --job-id %s` shows them", job)
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
		return a.printData(woken, func() { fmt.Fprintf(a.stdout, "%s is %s\n", visibleText(string(u.ID)), u.State) })
	})
	a.addJobID(cmd, &id)
	f := cmd.Flags()
	f.StringVar(&unit, "unit", "", "the `unit` to wake")
	f.StringVar(&handle, "handle", "", "handle under which the unit is parked")
	f.StringVar(&answer, "answer", "", "answer for the unit")
	return cmd
}

func (a *app) removeCommand() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:     "delete --job-id ID",
		Short:   "Remove a job that is not running, with all its data",
		Example: "  coditect mapreduce delete --job-id mr_20260101_a1b2c3",
		Args:    cobra.NoArgs,
		RunE: a.moveJob(&id, func(ctx context.Context, s *session, id mapreduce.JobID) error {
			if err := s.DeleteJob(ctx, id); err != nil {
				return err
			}
			deleted := struct {
				ID      mapreduce.JobID `json:"job_id"`
				Deleted bool            `json:"deleted"`
			}{id, true}
			return a.printData(deleted, func() { fmt.Fprintf(a.stdout, "%s is deleted\n", id) })
		}),
	}
	a.addJobID(cmd, &id)
	return cmd
}

func (a *app) watchCommand() *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "watch --job-id ID",
		Short: "Show the progress of a job until it ends",
		Long: `Watch shows the progress of a job until it ends. Its exit code says how the job ended.
With -o json each change is a line of JSON.`,
		Example: `  coditect mapreduce watch --job-id mr_20260101_a1b2c3`,
		Args:    cobra.NoArgs,
	}
	cmd.RunE = a.onJob(&id, a.watchJob)
	a.addJobID(cmd, &id)
	return cmd
}

func (a *app) watchJob(ctx context.Context, s *session, id mapreduce.JobID) error {
	defer s.meter.End()
	job, err := s.followJob(ctx, id, a.showChange(s))
	if err != nil {
		return err
	}
	return a.printWatched(s, job)
}

func (a *app) showChange(s *session) func(*mapreduce.Job) error {
	return func(j *mapreduce.Job) error {
		if a.global.format == jsonText {
			return a.printLine(statusOf(j), nil)
		}
		s.meter.Job(j)
		return nil
	}
}

func (a *app) printWatched(s *session, job *mapreduce.Job) error {
	s.meter.End()
	if a.global.format != jsonText {
		if err := a.printEnd(job, ""); err != nil {
			return err
		}
	}
	return exitWith(exitOf(job))
}
