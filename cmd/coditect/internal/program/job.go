package program

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
)

// WithReader calls do with a session that only reads.
func (a *Program) WithReader(ctx context.Context, do func(*Session) error) error {
	return a.WithSession(ctx, ModeRead, do)
}

// WithSession calls do with a session of a mode, and closes the session.
func (a *Program) WithSession(ctx context.Context, n Mode, do func(*Session) error) error {
	m := a.ProgressMeter()
	s, err := a.OpenSession(ctx, n, m)
	if err != nil {
		return exit.Cause(ctx, err)
	}
	err = s.WarnIfSlow(ctx, func() error { return do(s) })
	return errors.Join(exit.Cause(ctx, err), s.Close())
}

// HasNoData reports whether there are no jobs to show: no server is named, and the
// data directory is empty or missing. A command that only reads must not create one.
func (a *Program) HasNoData() bool {
	if a.Global.Server != "" || a.Global.Location.Dir == "" {
		return false
	}
	entries, err := os.ReadDir(a.Global.Location.Dir)
	return errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0
}

// OnJob returns the RunE of a command that reads one job.
func (a *Program) OnJob(id *string, do func(context.Context, *Session, mapreduce.JobID) error) func(*cobra.Command, []string) error {
	return a.runOnJob(id, ModeRead, do)
}

// runOnJob returns the RunE of a command for one job, in a session of a mode.
func (a *Program) runOnJob(id *string, mode Mode, do func(context.Context, *Session, mapreduce.JobID) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		job, err := JobID(cmd, *id)
		if err != nil {
			return err
		}
		if a.HasNoData() {
			return errs.New(errs.NotFound, "no job has the id %q: there are none in %s", job, a.Global.Location)
		}
		return a.WithSession(cmd.Context(), mode, func(s *Session) error { return do(cmd.Context(), s, job) })
	}
}

// completeJobID offers the ids of the newest jobs.
func (a *Program) completeJobID(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if a.ApplySettings(cmd) != nil || a.HasNoData() {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []string
	err := a.WithReader(cmd.Context(), func(s *Session) error {
		page, err := s.ListJobs(cmd.Context(), mapreduce.ListJobsQuery{})
		if err != nil {
			return err
		}
		for _, j := range page.Jobs {
			if strings.HasPrefix(string(j.ID), prefix) {
				ids = append(ids, fmt.Sprintf("%s\t%s", j.ID, j.State))
			}
		}
		return nil
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// MoveJob returns the RunE of a command that changes one job.
func (a *Program) MoveJob(id *string, do func(context.Context, *Session, mapreduce.JobID) error) func(*cobra.Command, []string) error {
	return a.runOnJob(id, ModeMoveJobs, do)
}

// AddJobID adds the flag that names a job.
func (a *Program) AddJobID(cmd *cobra.Command, id *string) {
	cmd.Flags().StringVar(id, "job-id", "", "`id` of the job, such as mr_20260101_a1b2c3")
	_ = cmd.RegisterFlagCompletionFunc("job-id", a.completeJobID) // the flag exists
}

// JobID returns the id that --job-id gives.
func JobID(cmd *cobra.Command, name string) (mapreduce.JobID, error) {
	if err := RequireFlags(cmd, "job-id"); err != nil {
		return "", err
	}
	id := mapreduce.JobID(name)
	if !id.Valid() {
		return "", exit.UsageError("--job-id: %q is not the id of a job, which looks like mr_20260101_a1b2c3", name)
	}
	return id, nil
}
