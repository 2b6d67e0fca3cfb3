package show

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/plural"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
)

// isFile reports whether a name is that of a file, and no name of a job.
func isFile(name string) bool {
	if name == program.Last || mapreduce.JobID(name).Valid() {
		return false
	}
	info, err := os.Stat(name)
	return err == nil && !info.IsDir()
}

// exportEvents writes all events to a file, or to the standard output.
func (cmds *commands) exportEvents(ctx context.Context, s *program.Session, q mapreduce.ListEventsQuery, name string) (err error) {
	out := cmds.Stdout
	if name != "-" {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return exit.RefusedError("--export: %w", err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = f
	}

	w := bufio.NewWriter(out)
	if err := WriteAudit(ctx, w, s, q, time.Now()); err != nil {
		return err
	}
	return w.Flush()
}

// verifyFile verifies a file that exportEvents has written.
func (cmds *commands) verifyFile(name, head string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()

	v, err := VerifyAudit(name, f, head)
	if err != nil {
		return err
	}

	return cmds.PrintData(v, func() {
		fmt.Fprintf(cmds.Stdout, "the chain is intact: %s, %s, %s; its head is %s\n", WhoseAudit(v.Job, v.Tenant), plural.Count(v.Checkpoints, "checkpoint"), plural.Count(v.Seals, "seal"), v.Head)
		if !v.Bound {
			fmt.Fprintln(cmds.Stdout, "only the first line says whose chain it is: an earlier version began the chain, or wrote the file")
		}
		if v.Unsealed > 0 {
			fmt.Fprintf(cmds.Stdout, "not covered by a seal yet: the last %s\n", plural.Count(v.Unsealed, "checkpoint"))
		}
	})
}
