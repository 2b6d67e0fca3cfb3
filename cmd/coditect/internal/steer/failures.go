package steer

import (
	"context"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
)

// A failureList is what failures prints.
type failureList struct {
	Job    mapreduce.JobID `json:"job_id"`
	Failed int64           `json:"failed_units"`
	Causes []failureCause  `json:"causes"`
}

// A failureCause is the failed units of one cause.
type failureCause struct {
	Cause    string             `json:"cause"`
	Units    int64              `json:"units"`
	Lasting  int64              `json:"lasting_units"` // for which another attempt would fail alike
	State    string             `json:"state"`
	Returned bool               `json:"returned,omitempty"` // units failed for it since it was resolved
	By       string             `json:"by,omitempty"`
	At       string             `json:"at,omitempty"`
	First    []mapreduce.UnitID `json:"first_units"`
}

func (cmds *commands) failuresCommand() *cobra.Command {
	var id string
	var marks [3]string // by state
	cmd := &cobra.Command{
		Use:   "failures JOB [--ignore CAUSE | --resolve CAUSE | --reopen CAUSE]",
		Short: "Show failed units by cause, and ignore or resolve a cause",
		Long: `Failures counts the failed units of a job by cause: errors that differ only in numbers, ids and quoted
names count as one. A cause that is ignored is accepted: "resume" passes its units over. One that is
resolved comes back if a unit fails for it again. Both go for all units of the cause, and into the log of
the job. "resume --cause" tries the units of one cause again.`,
		Example: `  coditect mapreduce failures last
  coditect mapreduce failures mr_20260101_a1b2c3 --ignore 'the page … is empty'`,
	}

	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cause, state, err := readMark(marks)
		if err != nil {
			return err
		}
		if cause == "" {
			return cmds.OnJob(&id, cmds.listFailures)(cmd, args)
		}
		return cmds.MoveJob(&id, func(ctx context.Context, s *program.Session, job mapreduce.JobID) error {
			if _, err := s.MarkCause(ctx, job, cause, state); err != nil {
				return err
			}
			return cmds.listFailures(ctx, s, job)
		})(cmd, args)
	}

	cmds.AddJobID(cmd, &id)
	f := cmd.Flags()
	f.StringVar(&marks[mapreduce.CauseIgnored], "ignore", "", "`cause` whose units are accepted as missing")
	f.StringVar(&marks[mapreduce.CauseResolved], "resolve", "", "`cause` that was dealt with")
	f.StringVar(&marks[mapreduce.CauseOpen], "reopen", "", "`cause` that is ignored or resolved no more")
	return cmd
}

// readMark returns the cause that is to be marked, and as what; "" if none is.
func readMark(marks [3]string) (cause string, state mapreduce.CauseState, err error) {
	for i, given := range marks {
		switch {
		case given == "":
		case cause != "":
			return "", 0, exit.UsageError("--ignore, --resolve and --reopen: give one of them")
		default:
			cause, state = mapreduce.CauseOf(given), mapreduce.CauseState(i)
		}
	}
	return cause, state, nil
}

// listFailures prints the failed units of a job by cause.
func (cmds *commands) listFailures(ctx context.Context, s *program.Session, id mapreduce.JobID) error {
	job, err := s.GetJob(ctx, id)
	if err != nil {
		return err
	}
	groups, _, err := mapreduce.GroupFailures(ctx, s, job, math.MaxInt64)
	if err != nil {
		return err
	}

	list := failureList{Job: id, Failed: job.FailedUnits, Causes: []failureCause{}}
	for _, g := range groups {
		c := failureCause{Cause: g.Cause, Units: g.Units, Lasting: g.Lasting, State: g.Mark.State.String(), Returned: g.Returned(), By: g.Mark.By}
		if !g.Mark.Time.IsZero() {
			c.At = console.FormatTime(g.Mark.Time)
		}
		for _, u := range g.First {
			c.First = append(c.First, u.ID)
		}
		list.Causes = append(list.Causes, c)
	}
	return cmds.PrintData(list, func() { cmds.printFailures(&list) })
}

func (cmds *commands) printFailures(list *failureList) {
	if len(list.Causes) == 0 {
		fmt.Fprintf(cmds.Stdout, "no unit of %s has failed\n", list.Job)
		return
	}
	cmds.PrintTable("UNITS STATE CAUSE", func(row func(...any)) {
		for _, c := range list.Causes {
			state := c.State
			if c.Returned {
				state = "came back"
			}
			row(c.Units, state, console.VisibleText(c.Cause))
		}
	})
}
