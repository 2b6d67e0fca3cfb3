package program

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
)

// WithReader calls do with a session that only reads.
func (p *Program) WithReader(ctx context.Context, do func(*Session) error) error {
	return p.WithSession(ctx, ModeRead, do)
}

// WithSession calls do with a session of a mode, and closes the session.
func (p *Program) WithSession(ctx context.Context, n Mode, do func(*Session) error) error {
	m := p.ProgressMeter()
	s, err := p.OpenSession(ctx, n, m)
	if err != nil {
		return exit.Cause(ctx, err)
	}
	s.TurnToNext()
	err = s.WarnIfSlow(ctx, func() error { return do(s) })
	return errors.Join(exit.Cause(ctx, err), s.Close())
}

// HasNoData reports whether there are no jobs to show: no server is named, and the
// data directory is empty or missing. A command that only reads must not create one.
func (p *Program) HasNoData() bool {
	if p.Global.Server != "" || p.Global.Location.Dir == "" {
		return false
	}
	entries, err := os.ReadDir(p.Global.Location.Dir)
	return errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0
}

// OnJob returns the RunE of a command that reads one job.
func (p *Program) OnJob(id *string, do func(context.Context, *Session, mapreduce.JobID) error) func(*cobra.Command, []string) error {
	return p.runOnJob(id, ModeRead, do)
}

// runOnJob returns the RunE of a command for one job, in a session of a mode.
func (p *Program) runOnJob(id *string, mode Mode, do func(context.Context, *Session, mapreduce.JobID) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		name, err := JobName(cmd, *id, args)
		if err != nil {
			return err
		}

		if p.HasNoData() {
			return p.noJob(name)
		}

		ctx := cmd.Context()
		return p.WithSession(ctx, mode, func(s *Session) error {
			job, err := s.FindJob(ctx, name)
			if err != nil {
				return err
			}
			return do(ctx, s, job)
		})
	}
}

// completeJobID offers the ids of the newest jobs.
func (p *Program) completeJobID(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	// No command runs when a shell asks for completions, so the settings are applied here.
	if p.ApplySettings(cmd, args) != nil || p.HasNoData() {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	var ids []string
	err := p.WithReader(cmd.Context(), func(s *Session) error {
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

// RegisterCompletions registers completions for the flags of cmd and of the commands below
// it. Only a process that a shell asks for completions does so: cobra keeps a flag that has
// a completion, and with it the whole program, for as long as the process lives.
func (p *Program) RegisterCompletions(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		words := console.OfferedWords(f)

		if f.Name == jobFlag {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, p.completeJobID) // the flag exists, and has none yet
		} else if len(words) > 0 {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // likewise
		}
	})

	for _, c := range cmd.Commands() {
		p.RegisterCompletions(c)
	}
}

// MoveJob returns the RunE of a command that changes one job.
func (p *Program) MoveJob(id *string, do func(context.Context, *Session, mapreduce.JobID) error) func(*cobra.Command, []string) error {
	return p.runOnJob(id, ModeMoveJobs, do)
}

// jobFlag is the flag that names a job.
const jobFlag = "job-id"

// Last as the name of a job is the newest job.
const Last = "last"

// AddJobID lets a command name a job: by --job-id or as its only argument.
func (p *Program) AddJobID(cmd *cobra.Command, id *string) {
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.ValidArgsFunction = p.completeJobID
	p.AddJobFlag(cmd, id)
}

// AddJobFlag adds the flag that names a job.
func (p *Program) AddJobFlag(cmd *cobra.Command, id *string) {
	cmd.Flags().StringVar(id, jobFlag, "", "`id` of the job, such as mr_20260101_a1b2c3; \"last\" is the newest job")
}

// JobName returns the job that a command is about, as --job-id or the argument names it:
// the id of a job, or Last.
func JobName(cmd *cobra.Command, flag string, args []string) (string, error) {
	given := cmd.Flags().Changed("job-id")
	switch {
	case given && len(args) > 0:
		return "", exit.UsageError("--job-id: names %s, and the argument names %s; name one job", flag, args[0])
	case !given && len(args) == 0:
		return "", exit.UsageError("--job-id is missing: give the id of a job, such as mr_20260101_a1b2c3, or last for the newest")
	case !given:
		flag = args[0]
	}

	if flag != Last && !mapreduce.JobID(flag).Valid() {
		return "", exit.UsageError("--job-id: %q is not the id of a job, which looks like mr_20260101_a1b2c3, nor last, the newest", flag)
	}
	return flag, nil
}

// FindJob returns the id of the job that a name from JobName means.
func (s *Session) FindJob(ctx context.Context, name string) (mapreduce.JobID, error) {
	if name != Last {
		return mapreduce.JobID(name), nil
	}

	var page *mapreduce.JobPage
	err := s.RetryReconnected(ctx, func() (err error) {
		page, err = s.ListJobs(ctx, mapreduce.ListJobsQuery{PageSize: 1})
		return err
	})
	if err != nil {
		return "", err
	}

	if len(page.Jobs) == 0 {
		return "", s.app.noJob(name)
	}
	return page.Jobs[0].ID, nil
}

// noJob returns the error for a job that is named where there are none.
func (p *Program) noJob(name string) error {
	if name == Last {
		return errs.New(errs.NotFound, "there are no jobs in %s", p.placeName())
	}
	return errs.New(errs.NotFound, "no job has the id %q: there are none in %s", name, p.placeName())
}

// placeName names the place of the jobs for people.
func (p *Program) placeName() string {
	if p.Global.Server != "" {
		return "the server " + p.Global.Server
	}
	return p.Global.Location.String()
}
