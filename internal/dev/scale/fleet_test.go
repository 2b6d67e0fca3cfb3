package main

import (
	"bytes"
	"testing"
	"time"
)

func small() Config {
	return Config{
		Orchestrators: 4, Workers: 80, Slots: 1, Units: 2400, Lanes: 8, Mean: 10 * time.Second, Sigma: .8,
		Turn: Latency{Median: 5 * time.Millisecond, P99: 30 * time.Millisecond},
		Read: Latency{Median: 2 * time.Millisecond, P99: 10 * time.Millisecond}, Network: time.Millisecond, Seed: 1,
	}
}

// A fleet keeps its slots busy until the last unit begins, and hardly any turn conflicts.
func TestFleetIsBusy(t *testing.T) {
	r, err := Run(small())
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
	c.Turn = Latency{Median: time.Second, P99: 2 * time.Second}
	r, err := Run(c)
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
	for name, change := range map[string]func(*Config){
		"no workers": func(c *Config) { c.Workers = 0 },
		"no time":    func(c *Config) { c.Mean = 0 },
		"no spread":  func(c *Config) { c.Turn.P99 = c.Turn.Median },
	} {
		t.Run(name, func(t *testing.T) {
			c := small()
			change(&c)
			if _, err := Run(c); err == nil {
				t.Error("no error")
			}
		})
	}
}
