package run_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/coditect/mapreduce/cmd/coditect/internal/program"
	"github.com/coditect/mapreduce/cmd/coditect/internal/run"
)

// The help of commands with many flags shows each flag in one group, and first of all the dozen
// that people need.
func TestHelpShowsFlagsByGroup(t *testing.T) {
	flagLine := regexp.MustCompile(`^ +(?:-\w, )?--([a-z0-9-]+)`)
	grouped := 0
	for _, cmd := range run.Commands(&program.Program{}) {
		help := cmd.UsageString()
		if !strings.Contains(help, "What is needed most:") {
			continue
		}
		grouped++

		if strings.Contains(help, "Other flags:") {
			t.Errorf("%s: flags are in no group:\n%s", cmd.Name(), help)
		}
		var shown []string
		for line := range strings.SplitSeq(help, "\n") {
			if name := flagLine.FindStringSubmatch(line); name != nil {
				shown = append(shown, name[1])
			}
		}
		slices.Sort(shown)
		var want []string
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				want = append(want, f.Name)
			}
		})
		slices.Sort(want)
		if !slices.Equal(shown, want) {
			t.Errorf("%s: help shows the flags %q, and there are %q", cmd.Name(), shown, want)
		}

		first, _, _ := strings.Cut(help[strings.Index(help, "What is needed most:"):], "\n\n")
		if n := strings.Count(first, "\n"); n > 13 {
			t.Errorf("%s: %d flags stand at the top; want a dozen", cmd.Name(), n)
		}
	}

	if grouped != 3 {
		t.Errorf("%d commands group their flags; want run, plan and resume", grouped)
	}
}
