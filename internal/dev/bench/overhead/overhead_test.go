package overhead_test

import (
	"math"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coditect/mapreduce/internal/dev/bench/overhead"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Each kind of service runs its laps, and is compared with plain ones.
func TestMeasure(t *testing.T) {
	used := time.Duration(0)
	r, err := overhead.Measure(t.Context(), overhead.Config{
		Dir: t.TempDir(), Units: 100, Rounds: 1, Slots: 8, Processor: func() time.Duration { used += time.Millisecond; return used },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Costs) != len(overhead.Kinds()) || r.Plain.Rate <= 0 {
		t.Fatalf("%+v", r)
	}
	for _, c := range r.Costs {
		if c.Laps != 1 || c.Dearer != 0 || math.IsNaN(c.Slower) || c.Slower >= 1 {
			t.Errorf("%+v", c)
		}
	}
}
