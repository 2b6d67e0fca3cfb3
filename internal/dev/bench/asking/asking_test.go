package asking_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coditect/mapreduce/internal/dev/bench/asking"
	"github.com/coditect/mapreduce/internal/dev/bench/rig"
	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// TestMain also is the program that is started again: as a model, and as a worker to be killed.
func TestMain(m *testing.M) {
	ordered, err := rig.RunChild(context.Background(), os.Stdin, os.Stdout, func(ctx context.Context, o *asking.Order, out *json.Encoder) error {
		return o.CarryOut(ctx, out)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if !ordered {
		goleak.VerifyTestMain(m)
	}
}

func TestModels(t *testing.T) {
	testenv.Lengthy(t)
	testenv.Unraced(t, testenv.Sizes)

	m, err := asking.MeasureModels(t.Context(), &asking.Load{
		Site: rig.Site{Dir: t.TempDir()}, Units: 40, Calls: 8, Think: 40 * time.Millisecond, Kills: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]asking.Asked{
		"limited": m.Limited, "unlimited": m.Unlimited, "faulty": m.Faulty, "metered": m.Metered, "spared": m.Spared,
	} {
		if a.Tally.Calls < a.Units || a.Took < a.Least || a.Alone <= a.Least {
			t.Errorf("%s: %+v", name, a)
		}
		if name != "unlimited" && a.Tally.Peak > 8 {
			t.Errorf("%s: %d calls at once, want at most 8", name, a.Tally.Peak)
		}
	}
	if m.Killing.Peak > 8 || m.Killing.Left == 0 {
		t.Errorf("while workers are killed: %+v; want at most 8 calls at once, and some broken off", m.Killing)
	}
	// That kills lose no place is shown where time is virtual: TestKillsLoseNoPlace of
	// orchestrator.
}

func TestAgents(t *testing.T) {
	testenv.Lengthy(t)
	testenv.Unraced(t, testenv.Sizes)

	a, err := asking.MeasureAgents(t.Context(), &asking.Load{Site: rig.Site{Dir: t.TempDir()}, Units: 5, Think: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}

	// Each looks at two pages between any two of its turns, and says of each what stands there and quotes it. The
	// writer of the report may have been asked as well.
	if a.Count != 5 || a.Evidence != 2*2*(a.Turns-1) || a.Tally.Calls < a.Count*a.Turns || a.Took < a.Least || a.Pool < a.Least {
		t.Errorf("agents: %+v", a)
	}
}
