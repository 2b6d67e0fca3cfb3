package run

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline/waiting"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
)

// reviewFlags are the flags of values that wait for a person.
type reviewFlags struct {
	when         []string
	by           string
	within, then string
}

func (r *reviewFlags) addFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&r.when, "review", nil, "`REASONS` for which values wait until a person has decided about them (see \"review\"): unverified, confidence < 0.8, conflict, fuzzy, missing, sample 5%, all")
	f.StringVar(&r.by, "review-by", "", "with --review: `ROLE` of whoever decides: reviewer, operator or admin (default reviewer)")
	f.StringVar(&r.within, "review-within", "", "with --review and --review-then: `TIME` that values wait at most, such as 48h (default: as long as it takes)")
	f.StringVar(&r.then, "review-then", "", "with --review-within: what becomes of `VALUES` about which nobody has decided by then: accept leaves them as they were found, fail has their unit fail")
}

// fill sets the variables of a job that have values wait.
func (r *reviewFlags) fill(flags *pflag.FlagSet, s *mapreduce.JobSpec) error {
	for _, flag := range []struct{ name, says string }{
		{"review-by", "who decides"}, {"review-within", "how long values wait"}, {"review-then", "what becomes of values"},
	} {
		if flags.Changed(flag.name) && len(r.when) == 0 {
			return exit.UsageError("--%s: says %s; say what waits with --review", flag.name, flag.says)
		}
	}
	if len(r.when) == 0 {
		return nil
	}

	for name, value := range map[string]string{
		waiting.Var: strings.Join(r.when, ", "), waiting.VarBy: r.by, waiting.VarWithin: r.within, waiting.VarThen: r.then,
	} {
		if _, twice := s.Vars[name]; twice {
			return exit.UsageError("--review: is also set by --var %s", name)
		}
		if value != "" {
			s.Vars[name] = value
		}
	}

	_, err := waiting.Of(s.Vars)
	e, ok := err.(*errs.Error) //nolint:errorlint // ReviewOf wraps nothing
	if !ok {
		return err
	}
	return exit.UsageError("--%s: %s", strings.ReplaceAll(strings.TrimPrefix(e.Field, "vars."), "_", "-"), e.Message)
}
