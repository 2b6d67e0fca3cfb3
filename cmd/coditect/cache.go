package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/coditect/mapreduce/api/mapreduce"
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

func (a *app) cacheCommand() *cobra.Command {
	var forget bool
	var tenant string
	cmd := &cobra.Command{
		Use:   "cache [--clear]",
		Short: "Show, or delete, the answers of models that jobs share",
		Long: `Cache shows the answers of models that are kept for jobs with --cache, or deletes all
of them. A job that asks the same model the same question gets the kept answer. Answers
are deleted by themselves when they are too old or too many.`,
		Example: `  coditect mapreduce cache
  coditect mapreduce cache --clear`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.hasNoData() {
				return a.printCache(&mapreduce.AnswerCache{}, forget)
			}
			need := modeRead
			if forget {
				need = modeMoveJobs
			}
			return a.withSession(cmd.Context(), need, func(s *session) error {
				return a.answerCache(cmd.Context(), s, mapreduce.TenantID(tenant), forget)
			})
		},
	}
	cmd.Flags().BoolVar(&forget, "clear", false, "delete all answers")
	cmd.Flags().StringVar(&tenant, "tenant", "", "tenant whose answers are meant, if there are several")
	return cmd
}

func (a *app) answerCache(ctx context.Context, s *session, t mapreduce.TenantID, forget bool) error {
	c, err := s.AnswerCache(ctx, t, forget)
	if err != nil {
		return err
	}
	return a.printCache(c, forget)
}

func (a *app) printCache(c *mapreduce.AnswerCache, cleared bool) error {
	v := cacheView{Answers: c.Answers, Bytes: c.Bytes, MaxBytes: c.MaxBytes, MaxDays: c.MaxAge.Hours() / 24, Cleared: cleared}
	if !c.Oldest.IsZero() {
		v.Oldest = formatTime(c.Oldest)
	}
	return a.printData(v, func() {
		verb := "are kept"
		if cleared {
			verb = "were deleted"
		}
		fmt.Fprintf(a.stdout, "%d answers with %d bytes %s", v.Answers, v.Bytes, verb)
		if v.Oldest != "" {
			fmt.Fprintf(a.stdout, ", the oldest from %s", v.Oldest)
		}
		fmt.Fprintln(a.stdout)
		if !cleared && v.MaxBytes > 0 {
			fmt.Fprintf(a.stdout, "at most %d bytes are kept, each for %.0f days\n", v.MaxBytes, v.MaxDays)
		}
	})
}
