package main_test

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/store/storetest/driver"
)

// rollingUnits is how many documents TestRollingRestart has, unless the environment says
// how many.
const rollingUnits = 60

// grace is how long a process may take to stop before a node would kill it.
const grace = 40 * time.Second

// All orchestrators and all workers are replaced one after the other while a job of model
// units runs, as in an upgrade: told to stop, and killed if they take too long. No call is
// made again, none is lost, and the results are those of a run without interruption.
func TestRollingRestart(t *testing.T) {
	testenv.Lengthy(t)

	units := rollingUnits
	if n, err := strconv.Atoi(os.Getenv("CODITECT_ROLLING_UNITS")); err == nil {
		units = n
	}
	c := newCorpus(t, build(t), units, "--var", "script.latency=lognormal:300ms,0.8", "--var", "script.calls=1")
	want := reference(t, c, 0)
	servers, workers := []string{"server"}, []string{"worker a", "worker b", "worker c", "worker d"}
	if _, shared := driver.Cluster(t); shared {
		servers = []string{"server a", "server b"}
	}
	s := newFleet(t, c, servers, workers)
	for _, name := range servers { // nobody dies here, however late a busy machine lets them be
		s.args[name] = append(s.args[name], "--lease", "10s", "--grace", "5s")
	}
	for _, name := range append(servers, workers[:2]...) {
		s.start(name)
	}
	submit := c.run("--output", "out", "--request-id", "rolling")
	busy := s.watchBusy(serviceSlots) // --parallelism of the corpus
	p := s.client(submit...)
	s.begun(units / 6)
	for i, name := range servers {
		s.restart(name)
		s.begun(units/6*2 + i)
	}
	s.start(workers[2])
	s.halt(workers[0])
	s.begun(units / 2)
	s.start(workers[3])
	s.halt(workers[1])
	if len(s.ledger()) >= 2*units {
		t.Error("the job had ended before all were replaced: the test shows little")
	}
	<-p.ended
	if p.outcome.code == 1 && !s.failed() { // it gave up while its server was away
		p = s.client(submit...)
		<-p.ended
	}
	share, seconds := busy()
	s.wantComplete(p.outcome)
	s.stopAll()
	s.verify(want) // with no kill: each call was begun once
	lost := 0
	begun := make(map[string]int)
	for _, e := range s.ledger() {
		if e.End {
			begun[string(e.Unit)]--
		} else {
			begun[string(e.Unit)]++
		}
	}
	for _, n := range begun {
		lost += n
	}
	t.Logf("%d units, %d servers and 2 workers replaced: %d calls, 0 wanted twice, %d without an end; slots busy %.1f %% of %.1f s", units, len(servers), len(s.ledger())/2, lost, 100*share, seconds)
	if lost != 0 {
		t.Errorf("%d calls were begun and never ended", lost)
	}
}

// halt asks a process to stop, and waits until it has. One that takes too long has
// failed.
func (s *service) halt(name string) {
	s.t.Helper()
	cmd := s.running[name]
	delete(s.running, name)
	s.signal(cmd.Process, syscall.SIGTERM)
	late := time.AfterFunc(grace, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	if !late.Stop() || err != nil {
		s.t.Fatalf("%s did not stop in order within %v: %v\n%s", name, grace, err, s.log(name))
	}
}

// restart replaces a process.
func (s *service) restart(name string) {
	s.t.Helper()
	s.halt(name)
	s.start(name)
}

// stopAll stops what runs in order, workers first.
func (s *service) stopAll() {
	s.t.Helper()
	for _, kind := range []string{"worker", "server"} {
		for name := range s.running {
			if strings.HasPrefix(name, kind) {
				s.halt(name)
			}
		}
	}
}

// watchBusy looks over and over how many calls are under way, from the first one on. The
// function that it returns ends that, and returns which part of the slots was busy until
// the last call began, and for how long.
func (s *service) watchBusy(slots int) func() (share, seconds float64) {
	type sample struct{ at, running, begun int }
	var all []sample
	stop, ended := make(chan struct{}), make(chan struct{})
	start := time.Now()
	go func() {
		defer close(ended)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-stop:
				return
			}
			begun, done := s.countCalls()
			all = append(all, sample{int(time.Since(start).Milliseconds()), begun - done, begun})
		}
	}()
	return func() (share, seconds float64) {
		close(stop)
		<-ended
		first, last := -1, -1
		for i, one := range all {
			if one.begun > 0 && first < 0 {
				first = i
			}
			if i > 0 && one.begun > all[i-1].begun {
				last = i
			}
		}
		if first < 0 || last <= first {
			return 0, 0
		}
		busy := 0
		for i := first; i < last; i++ {
			busy += min(all[i].running, slots) * (all[i+1].at - all[i].at)
		}
		span := all[last].at - all[first].at
		return float64(busy) / float64(slots*span), float64(span) / 1000
	}
}

// countCalls counts calls that were begun, and that have ended.
func (s *service) countCalls() (begun, ended int) {
	text, err := os.ReadFile(s.path("ledger"))
	if err != nil {
		return 0, 0 // there was none yet
	}
	for line := range strings.Lines(string(text)) {
		switch {
		case !strings.HasSuffix(line, "\n"):
		case strings.Contains(line, `"end":true`):
			ended++
		default:
			begun++
		}
	}
	return begun, ended
}
