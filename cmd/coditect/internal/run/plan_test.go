package run_test

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/run"
)

// TestPlanAcceptsTheFlagsOfRun: the command line of a run is that of its plan but for one
// word.
func TestPlanAcceptsTheFlagsOfRun(t *testing.T) {
	commands := make(map[string]*cobra.Command)
	for _, c := range run.Commands(new(program.Program)) {
		commands[c.Name()] = c
	}
	commands["run"].Flags().VisitAll(func(f *pflag.Flag) {
		of := commands["plan"].Flags().Lookup(f.Name)
		switch {
		case of == nil:
			t.Errorf("plan does not know --%s", f.Name)
		case of.Shorthand != f.Shorthand || of.NoOptDefVal != f.NoOptDefVal:
			t.Errorf("plan has another form of --%s", f.Name)
		}
	})
}
