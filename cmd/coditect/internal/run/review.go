package run

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
)

// reviewFlags are the flags of values that wait for a person.
type reviewFlags struct {
	when []string
	by   string
}

func (r *reviewFlags) addFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&r.when, "review", nil, "`REASONS` for which values wait until a person has decided about them (see \"review\"): unverified, confidence < 0.8, conflict, fuzzy, missing, sample 5%, all")
	f.StringVar(&r.by, "review-by", "", "with --review: `ROLE` of whoever decides: reviewer, operator or admin (default reviewer)")
}

// fill sets the variables of a job that have values wait.
func (r *reviewFlags) fill(flags *pflag.FlagSet, s *mapreduce.JobSpec) error {
	if flags.Changed("review-by") && len(r.when) == 0 {
		return exit.UsageError("--review-by: says who decides; say what waits with --review")
	}
	if len(r.when) == 0 {
		return nil
	}

	for name, value := range map[string]string{pipeline.VarReview: strings.Join(r.when, ", "), pipeline.VarReviewBy: r.by} {
		if _, twice := s.Vars[name]; twice {
			return exit.UsageError("--review: is also set by --var %s", name)
		}
		if value != "" {
			s.Vars[name] = value
		}
	}

	_, err := pipeline.ReviewOf(s.Vars)
	e, ok := err.(*errs.Error) //nolint:errorlint // ReviewOf wraps nothing
	if !ok {
		return err
	}
	return exit.UsageError("--%s: %s", strings.ReplaceAll(strings.TrimPrefix(e.Field, "vars."), "_", "-"), e.Message)
}
