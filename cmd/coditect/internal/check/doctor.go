// Package check has the commands that check the store and results, and that show what
// jobs share.
package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/folder"
	"github.com/coditect/mapreduce/store"
)

// A finding is one thing that doctor found.
type finding struct {
	Job     mapreduce.JobID `json:"job_id,omitempty"`
	Key     string          `json:"key,omitempty"`
	Message string          `json:"message"`
}

// String returns the finding on one line.
func (f finding) String() string {
	where := strings.TrimSpace(string(f.Job) + " " + console.VisibleText(f.Key))
	if where != "" {
		where += ": "
	}
	return where + console.VisibleText(f.Message)
}

// A diagnosis is what doctor prints.
type diagnosis struct {
	OK       bool      `json:"ok"`
	Findings []finding `json:"findings"`
	Checked  []string  `json:"checked"`
	empty    bool      // there was no store
}

func (cmds *commands) doctorCommand() *cobra.Command {
	var repair []string
	var q mapreduce.CheckQuery
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check every record, index, counter and hash of the store",
		Long: `Doctor checks the whole store, and changes nothing without --repair or --repair-counters.
It names each damaged file, says which data it cannot read for that reason, and checks the
rest. It exits with 1 if it finds a fault.

With --repair it removes temporary folders that remain if a process is killed while it
writes results. A run does the same with the folder of its results.

With --repair-counters it first corrects the counters on which the quotas of tenants are
based, if they differ from the sums over the jobs.

With --count it then counts the keys of each kind and their bytes.`,
		Example: `  coditect mapreduce doctor
  coditect mapreduce doctor --repair results
  coditect mapreduce doctor --data-dir /var/lib/coditect -o json
  coditect mapreduce doctor --store fdb:/etc/foundationdb/fdb.cluster --store-prefix prod`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			swept, err := sweepFolders(repair)
			if err != nil {
				return err
			}

			if cmds.HasNoData() {
				return cmds.printDiagnosis(&diagnosis{OK: true, empty: true, Checked: append(swept, "there is no store in "+cmds.Global.Location.Dir+": there was nothing to check")})
			}

			mode := program.ModeRead
			if q.RepairCounters {
				mode = program.ModeMoveJobs
			}

			err = cmds.WithSession(cmd.Context(), mode, func(s *program.Session) error { return cmds.examineStore(cmd.Context(), s, q, swept) })
			if errors.Is(err, store.ErrCorrupt) { // it cannot even be opened
				return cmds.printDiagnosis(&diagnosis{Checked: swept, Findings: []finding{{Message: err.Error()}}})
			}
			return err
		},
	}

	cmd.Flags().StringArrayVar(&repair, "repair", nil, "remove the temporary folders of killed processes in a `folder` of results, or beside it; may be repeated")
	cmd.Flags().BoolVar(&q.RepairCounters, "repair-counters", false, "correct the counters on which quotas are based")
	cmd.Flags().BoolVar(&q.CountKeys, "count", false, "also count the keys of each kind, and their bytes")
	_ = cmd.MarkFlagDirname("repair") // the flag exists
	return cmd
}

// sweepFolders removes what killed writers have left in folders and beside them, and
// returns what it did, a line each.
func sweepFolders(dirs []string) (lines []string, err error) {
	for _, dir := range dirs {
		for _, d := range []string{dir, filepath.Dir(filepath.Clean(dir))} {
			removed, err := folder.Sweep(d)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("--repair: %w", err)
			}
			for _, path := range removed {
				lines = append(lines, "removed "+path+", which a killed writer had left")
			}
		}
	}

	return lines, nil
}

func (cmds *commands) examineStore(ctx context.Context, s *program.Session, q mapreduce.CheckQuery, swept []string) error {
	d := diagnosis{OK: true, Checked: swept}
	err := s.CheckStore(ctx, q, func(f mapreduce.Finding) error {
		if f.Severity == mapreduce.Info {
			d.Checked = append(d.Checked, finding{Job: f.Job, Message: f.Message}.String())
			return nil
		}
		d.OK = false
		d.Findings = append(d.Findings, finding{Job: f.Job, Key: f.Key, Message: f.Message})
		return nil
	})
	if err != nil {
		return err
	}
	return cmds.printDiagnosis(&d)
}

func (cmds *commands) printDiagnosis(d *diagnosis) error {
	if d.Findings == nil {
		d.Findings = []finding{}
	}
	if d.Checked == nil {
		d.Checked = []string{}
	}

	err := cmds.PrintData(d, func() {
		for _, line := range d.Checked {
			fmt.Fprintln(cmds.Stdout, console.VisibleText(line))
		}
		for _, f := range d.Findings {
			fmt.Fprintln(cmds.Stdout, "WRONG "+f.String())
		}

		switch n := len(d.Findings); {
		case d.empty: // Checked says that there was no store
		case d.OK:
			fmt.Fprintln(cmds.Stdout, "nothing is wrong")
		case n == 1:
			fmt.Fprintln(cmds.Stdout, "1 thing is wrong")
		default:
			fmt.Fprintf(cmds.Stdout, "%d things are wrong\n", n)
		}
	})

	if err == nil && !d.OK {
		return exit.With(exit.Failed)
	}
	return err
}
