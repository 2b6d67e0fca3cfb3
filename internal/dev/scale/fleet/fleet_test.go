package fleet_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/scale/fleet"
)

func small() fleet.Config {
	return fleet.Config{
		Orchestrators: 4, Workers: 80, Slots: 1, Units: 2400, Lanes: 8, Mean: 10 * time.Second, Sigma: .8,
		Turn: fleet.Latency{Median: 5 * time.Millisecond, P99: 30 * time.Millisecond},
		Read: fleet.Latency{Median: 2 * time.Millisecond, P99: 10 * time.Millisecond}, Network: time.Millisecond, Seed: 1,
	}
}

// A fleet keeps its slots busy until the last unit begins, and hardly any turn conflicts.
func TestFleetIsBusy(t *testing.T) {
	r, err := fleet.Run(small())
	if err != nil {
		t.Fatal(err)
	}
	if u := r.Utilisation(); u < .99 || u > 1 {
		t.Errorf("slots were busy for %.4f of the time, want at least 0.99, and at most 1", u)
	}
	if s := r.ConflictShare(); s > .05 {
		t.Errorf("%.3f of the commits conflicted, want at most 0.05", s)
	}
	if r.Ended != 2400 || r.Commits < 75 {
		t.Errorf("%d units ended in %d commits", r.Ended, r.Commits)
	}
}

// A store that takes a second for a transaction leaves slots without units, and the
// simulation says so.
func TestSlowStoreLeavesSlotsIdle(t *testing.T) {
	c := small()
	c.Turn = fleet.Latency{Median: time.Second, P99: 2 * time.Second}
	r, err := fleet.Run(c)
	if err != nil {
		t.Fatal(err)
	}
	if u := r.Utilisation(); u > .95 {
		t.Errorf("slots were busy for %.4f of the time, though each waits a second for its next unit of 10 s", u)
	}
	var text bytes.Buffer
	if r.Print(&text); !bytes.Contains(text.Bytes(), []byte("utilisation")) {
		t.Errorf("the report says nothing of utilisation:\n%s", &text)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, change := range map[string]func(*fleet.Config){
		"no workers": func(c *fleet.Config) { c.Workers = 0 },
		"no time":    func(c *fleet.Config) { c.Mean = 0 },
		"no spread":  func(c *fleet.Config) { c.Turn.P99 = c.Turn.Median },
	} {
		t.Run(name, func(t *testing.T) {
			c := small()
			change(&c)
			if _, err := fleet.Run(c); err == nil {
				t.Error("no error")
			}
		})
	}
}
