package check

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/plural"
	"github.com/coditect/mapreduce/cmd/coditect/internal/console"
	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
)

// A cacheView is what cache prints.
type cacheView struct {
	Answers  int64   `json:"answers"`
	Bytes    int64   `json:"bytes"`
	Oldest   string  `json:"oldest,omitempty"`
	MaxBytes int64   `json:"max_bytes"`
	MaxDays  float64 `json:"max_days"`
	Cleared  bool    `json:"cleared"`
}

func (cmds *commands) cacheCommand() *cobra.Command {
	var forget bool
	var tenant string
	cmd := &cobra.Command{
		Use:   "cache [--clear]",
		Short: "Show, or delete, the answers of models that jobs share",
		Long: `Cache shows how many answers of models are stored for jobs with --cache, or deletes them
all. If such a job asks the same model the same question, it gets the stored answer. The
oldest answers are deleted automatically when they are too old or too many.`,
		Example: `  coditect mapreduce cache
  coditect mapreduce cache --clear`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmds.HasNoData() {
				return cmds.printCache(&mapreduce.AnswerCache{}, forget)
			}

			need := program.ModeRead
			// A session that only reads cannot delete.
			if forget {
				need = program.ModeMoveJobs
			}

			return cmds.WithSession(cmd.Context(), need, func(s *program.Session) error {
				return cmds.answerCache(cmd.Context(), s, mapreduce.TenantID(tenant), forget)
			})
		},
	}

	cmd.Flags().BoolVar(&forget, "clear", false, "delete all answers")
	cmd.Flags().StringVar(&tenant, "tenant", "", "`tenant` whose answers are shown or deleted (default the tenant of the caller)")
	return cmd
}

func (cmds *commands) answerCache(ctx context.Context, s *program.Session, t mapreduce.TenantID, forget bool) error {
	c, err := s.AnswerCache(ctx, t, forget)
	if err != nil {
		return err
	}
	return cmds.printCache(c, forget)
}

func (cmds *commands) printCache(c *mapreduce.AnswerCache, cleared bool) error {
	v := cacheView{Answers: c.Answers, Bytes: c.Bytes, MaxBytes: c.MaxBytes, MaxDays: c.MaxAge.Hours() / 24, Cleared: cleared}
	if !c.Oldest.IsZero() {
		v.Oldest = console.FormatTime(c.Oldest)
	}

	return cmds.PrintData(v, func() {
		verb := "kept"
		if cleared {
			verb = "deleted"
		}
		fmt.Fprintf(cmds.Stdout, "%s: %s, %s", verb, plural.Count(v.Answers, "answer"), plural.Count(v.Bytes, "byte"))
		if v.Oldest != "" {
			fmt.Fprintf(cmds.Stdout, ", the oldest from %s", v.Oldest)
		}
		fmt.Fprintln(cmds.Stdout)

		if !cleared && v.MaxBytes > 0 {
			fmt.Fprintf(cmds.Stdout, "at most %d bytes are kept, each for %s\n", v.MaxBytes, plural.Count(int(v.MaxDays), "day"))
		}
	})
}
