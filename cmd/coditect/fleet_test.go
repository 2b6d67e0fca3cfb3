//go:build fdb

package main_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/store/storetest/driver"
)

// The tests of this file run several servers on one cluster, each a process.

// onlyOnCluster skips a test of what only a shared store has.
func onlyOnCluster(t *testing.T) {
	t.Helper()
	if _, found := driver.Cluster(t); !found {
		t.Skip("FDB_CLUSTER_FILE names no cluster")
	}
}

// Three servers and four workers are killed at random until the job has ended.
func TestSoakKillsInAFleet(t *testing.T) {
	onlyOnCluster(t)
	c := newCorpus(t, build(t), 12, append(costly(), "--var", "script.latency=lognormal:60ms,1")...)
	want := reference(t, c, 0)
	servers, workers := []string{"server a", "server b", "server c"}, []string{"worker a", "worker b", "worker c", "worker d"}
	names := append(append([]string{}, servers...), workers...)
	for seed := range trials(t) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 3))
			s := newFleet(t, c, servers, workers)
			for _, name := range names {
				s.start(name)
			}
			p := s.storm(c.run("--output", "out", "--request-id", "soak"), func() { s.strike(names[random.IntN(len(names))]) }, random)
			s.wantComplete(p.outcome)
			s.stop()
			s.verifyFleet(want)
		})
	}
}

// soon is when workers claim again whose server has died.
const soon = 3 * time.Second

// timed says that nothing else is done on this machine, so that times mean
// something.
func timed() bool { return os.Getenv("CODITECT_TIMED") != "" }

// The workers' server dies and does not come back. They finish what they have,
// report it to the other, and go on there: no call is made again.
func TestSoakWorkersOutliveTheirServer(t *testing.T) {
	testenv.SlowOnFDB(t)

	onlyOnCluster(t)
	c := newCorpus(t, build(t), 30, "--var", "script.latency=700ms")
	want := reference(t, c, 0)
	for seed := range trials(t) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 4))
			s := newFleet(t, c, []string{"first", "last"}, []string{"worker a", "worker b"})
			for _, name := range []string{"first", "last"} {
				s.args[name] = append(s.args[name], "--lease", "3s") // on a busy machine a worker may be silent for a second
			}
			for _, name := range []string{"first", "last", "worker a", "worker b"} {
				s.start(name)
			}
			p := s.client(c.run("--output", "out")...)
			s.begun(2 + random.IntN(10))
			s.kill("first")
			died, had := time.Now(), len(s.ledger())
			units := make(map[string]bool)
			for _, e := range s.ledger() {
				units[string(e.Unit)] = true
			}
			s.until("a worker begins another unit", func() bool {
				for _, e := range s.ledger()[had:] {
					if !units[string(e.Unit)] {
						return true
					}
				}
				return false
			})
			took := time.Since(died).Round(time.Millisecond)
			t.Logf("the next unit was begun after %v", took)
			if took > soon && timed() {
				t.Errorf("the next unit was begun after %v, want %v", took, soon)
			}
			<-p.ended
			s.wantComplete(p.outcome)
			s.stop()
			s.verify(want) // no worker was killed: each call was begun once
		})
	}
}
