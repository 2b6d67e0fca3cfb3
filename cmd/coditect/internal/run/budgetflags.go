package run

import (
	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/exit"
)

// budgetFlags are the flags for what a job may spend. A job has one budget, in tokens or in dollars.
type budgetFlags struct {
	tokens  int64
	dollars string
}

// addFlags adds the flags. What stands before the meaning of each says whether the budget is a new one.
func (b *budgetFlags) addFlags(f *pflag.FlagSet, before string) {
	f.Int64Var(&b.tokens, "budget", 0, before+"largest number of tokens that the whole job may spend (default no limit)")
	f.StringVar(&b.dollars, "max-cost", "", before+"`DOLLARS`, such as 5 or 0.25, that the whole job may cost at most, in place of --budget; each model that it may ask needs a known price (default no limit)")
}

// read returns the budget that the flags give; 0 if they give none.
func (b *budgetFlags) read(flags *pflag.FlagSet) (int64, mapreduce.Currency, error) {
	tokens, dollars := flags.Changed("budget"), flags.Changed("max-cost")
	switch {
	case tokens && dollars:
		return 0, 0, exit.UsageError("--max-cost: a job has one budget; give it in dollars, or in tokens with --budget")
	case tokens && b.tokens < 1:
		return 0, 0, exit.UsageError("--budget: must be at least 1")
	case !dollars:
		return b.tokens, mapreduce.InTokens, nil
	}

	micros, err := mapreduce.ParseDollars(b.dollars)
	if err != nil {
		return 0, 0, flagFault("max-cost", err)
	}
	if micros == 0 {
		return 0, 0, exit.UsageError("--max-cost: must be more than 0")
	}
	return micros, mapreduce.InDollars, nil
}
