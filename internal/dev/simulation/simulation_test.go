package simulation_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/coditect/mapreduce/internal/dev/simulation"
	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// variable says which seeds TestSeeds runs: FROM-TO, both included.
const variable = "CODITECT_SIMULATION_SEEDS"

// seeds returns which are run, as the variable says, or else 1 to usual.
func seeds(t *testing.T, usual uint64) (from, to uint64) {
	t.Helper()
	said := os.Getenv(variable)
	if said == "" {
		return 1, usual
	}
	if n, err := fmt.Sscanf(said, "%d-%d", &from, &to); n != 2 || err != nil || from > to {
		t.Fatalf("%s is %q; it is FROM-TO, two seeds", variable, said)
	}
	return from, to
}

// play lets a scenario happen in virtual time.
func play(t *testing.T, s *simulation.Scenario, o simulation.Options) (report *simulation.Report) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { report = simulation.Run(s, o) })
	return report
}

// TestSeeds lets scenarios happen, and looks whether what has to hold does. It has to come to
// everything that it is for.
func TestSeeds(t *testing.T) {
	const usual = 200
	from, to := seeds(t, usual)
	var mu sync.Mutex
	runs, covered := 0, make(map[string]int)

	t.Run("each", func(t *testing.T) {
		for seed := from; seed <= to; seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				testenv.Variant(t, seed%25 == 0)

				var log bytes.Buffer
				report := play(t, simulation.Of(seed), simulation.Options{Log: &log})
				if len(report.Broken) > 0 {
					t.Errorf("%s\nto have it again: go run ./internal/dev/simulate -shrink -orders 100 -seed %d\nor: %s=%d-%d go test -run TestSeeds ./internal/dev/simulation\nlog:\n%s",
						strings.Join(report.Broken, "\n"), seed, variable, seed, seed, log.String())
				}
				mu.Lock()
				defer mu.Unlock()
				runs++
				for what, n := range report.Covered {
					covered[what] += n
				}
			})
		}
	})

	if runs < usual/2 {
		return
	}
	for _, k := range simulation.Kinds() {
		if covered[k.String()] == 0 {
			t.Errorf("%v never happened in %d runs", k, runs)
		}
	}
	for _, what := range []string{"message to a worker twice", "message to an orchestrator twice", "a job was cancelled", "results that were made again", "all calls of models taken"} {
		if covered[what] == 0 {
			t.Errorf("%q never happened in %d runs", what, runs)
		}
	}
	t.Logf("%d runs: %v", runs, covered)
}
