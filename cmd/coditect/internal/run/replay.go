package run

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
)

// A replayed is what replay prints.
type replayed struct {
	Job    mapreduce.JobID `json:"job_id"`
	Replay mapreduce.JobID `json:"replay_job_id"`
	Same   bool            `json:"same"`
	Output string          `json:"output,omitempty"`
}

func (cmds *commands) replayCommand() *cobra.Command {
	var id, out string
	var keep bool
	cmd := &cobra.Command{
		Use:   "replay JOB [--output DIR]",
		Short: "Run a job again from its kept answers, and compare the results",
		Long: `Replay runs a complete job again over the same documents, and gives its units the
answers of the first run. It asks no model, needs no key and spends nothing. Then it
compares both result.json, byte by byte. The first job must have run with --capture
full, unless it asked no model. The results of tools are stored with the first job, so no
tool is called. But there must be a worker with the same tools: give the same flags.

The repetition is a job of its own, which replay deletes afterwards unless --keep is given.
Its result.json has the id and the tokens of the first job.

Exit codes: 0 the results are the same, 1 they differ or the repetition failed.`,
		Example: `  coditect mapreduce replay mr_20260101_a1b2c3
  coditect mapreduce replay mr_20260101_a1b2c3 --output again --keep`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			name, err := program.JobName(cmd, id, args)
			if err != nil {
				return err
			}

			if out != "" {
				if err := folder.Check(out); err != nil {
					return err
				}
			}

			r := &replayer{runner{app: cmds.Program}, out}
			ctx := cmd.Context()
			defer func() { err = errors.Join(err, cmds.Runners.CloseTools()) }()
			if _, err := cmds.Runners.OpenTools(ctx); err != nil {
				return err
			}

			return r.withSession(ctx, func() error {
				job, err := r.s.FindJob(ctx, name)
				if err != nil {
					return err
				}
				return r.replayJob(ctx, job, keep)
			})
		},
	}

	cmds.AddJobID(cmd, &id)
	cmds.Runners.Tools.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&out, "output", "", "`folder` for the results of the repetition (default: they are only compared)")
	_ = cmd.MarkFlagDirname("output") // the flag exists
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the repetition as a job")
	return cmd
}

// A replayer runs a job again.
type replayer struct {
	runner
	dir string // for the results of the repetition; "" if they are only compared
}

// replayJob repeats a job.
func (r *replayer) replayJob(ctx context.Context, id mapreduce.JobID, keep bool) error {
	first, err := r.s.GetJob(ctx, id)
	if err != nil {
		return err
	}

	if err := r.app.Runners.CheckTools(&first.Spec); err != nil {
		return err
	}
	if err := r.s.RunWorkerFor(&first.Spec); err != nil {
		return err
	}

	// The service has the documents of the first job, so none are sent.
	none := func(func(*mapreduce.Document, error) bool) {}
	spec := mapreduce.JobSpec{Tenant: first.Spec.Tenant, Replay: id, RequestID: mapreduce.RequestID("replay_" + rand.Text())}
	job, err := r.s.SubmitJob(ctx, spec, none)
	if err != nil {
		return err
	}

	r.s.Meter.Note("job %s repeats job %s", job.ID, id)
	again, err := r.s.FollowJob(ctx, job.ID, func(j *mapreduce.Job) error {
		r.s.Meter.Job(j)
		return nil
	})
	r.s.Meter.End()
	if err != nil {
		return err
	}

	if again.State != mapreduce.JobComplete {
		return errors.Join(fmt.Errorf("the repetition of job %s is %s: %s", id, again.State, console.VisibleText(again.Error)), r.deleteReplay(ctx, again.ID, keep))
	}

	// The repetition is compared before it is deleted.
	same, err := r.compareResults(ctx, first, again)
	if err = errors.Join(err, r.deleteReplay(ctx, again.ID, keep)); err != nil {
		return err
	}

	return r.reportComparison(replayed{Job: id, Replay: again.ID, Same: same, Output: r.dir})
}

// deleteReplay deletes a repetition, unless the user keeps it.
func (r *replayer) deleteReplay(ctx context.Context, id mapreduce.JobID, keep bool) error {
	if keep {
		return nil
	}
	if job, err := r.s.GetJob(ctx, id); err == nil && !job.State.Running() {
		return r.s.DeleteJob(ctx, id)
	}
	return nil
}

// compareResults writes the results of both jobs, and reports whether they are the same.
func (r *replayer) compareResults(ctx context.Context, first, again *mapreduce.Job) (bool, error) {
	dir, err := os.MkdirTemp("", "replay")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is of use to nobody

	out := r.dir
	if out == "" {
		out = filepath.Join(dir, "again")
	}
	was := filepath.Join(dir, "first")

	if _, err := results.Write(ctx, r.s, results.Config{Dir: was, Job: first.ID}); err != nil {
		return false, err
	}

	// As gives the second result the id and tokens of the first job; without it the files
	// would differ.
	if _, err := results.Write(ctx, r.s, results.Config{Dir: out, Job: again.ID, As: first}); err != nil {
		return false, err
	}

	one, err := os.ReadFile(filepath.Join(was, "result.json"))
	if err != nil {
		return false, err
	}
	other, err := os.ReadFile(filepath.Join(out, "result.json"))
	return bytes.Equal(one, other), err
}

// reportComparison prints whether the results are the same.
func (r *replayer) reportComparison(p replayed) error {
	err := r.app.PrintData(p, func() {
		verdict := "is the same, byte by byte"
		if !p.Same {
			verdict = "is not the same"
		}
		fmt.Fprintf(r.app.Stdout, "%s ran again without asking a model: result.json %s\n", p.Job, verdict)
		if p.Output != "" {
			fmt.Fprintf(r.app.Stdout, "results are in %s\n", p.Output)
		}
	})

	if err == nil && !p.Same {
		return exit.With(exit.Failed)
	}
	return err
}
