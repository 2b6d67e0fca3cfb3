//go:build fdb

package main_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The workers' server is stopped, as a machine is that is suspended: nothing says
// so, and no connection breaks. They report to the other and go on there, and no
// call is made again. When the stopped server goes on, with what it had in hand, it
// changes nothing that has been settled without it.
func TestSoakStoppedServer(t *testing.T) {
	onlyOnCluster(t)
	c := newCorpus(t, build(t), 30, "--var", "script.latency=lognormal:400ms,1")
	want := reference(t, c, 0)
	for seed := range trials(t) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 6))
			s := newFleet(t, c, []string{"first", "last"}, []string{"worker a", "worker b"})
			for _, name := range []string{"first", "last"} {
				s.args[name] = append(s.args[name], "--lease", "5s") // workers notice in half of it
			}
			for _, name := range []string{"first", "last", "worker a", "worker b"} {
				s.start(name)
			}
			p := s.client(c.run("--output", "out")...) // of the last
			s.begun(2 + random.IntN(10))
			stopped := s.running["first"].Process
			s.signal(stopped, syscall.SIGSTOP)
			at := time.Now()
			took := s.nextUnit(at)
			t.Logf("the next unit was begun after %v", took)
			if took > soon && timed() {
				t.Errorf("the next unit was begun after %v, want %v", took, soon)
			}
			early := random.IntN(2) == 0
			if early {
				s.more(random.IntN(10))
				s.signal(stopped, syscall.SIGCONT)
			}
			<-p.ended
			s.wantComplete(p.outcome)
			if !early {
				s.wakeLate("first", p)
			}
			s.stop()
			s.verify(want) // no worker was killed: each call was begun once
		})
	}
}

// nextUnit waits until a unit is begun that was not before, and returns how long
// after at that was.
func (s *service) nextUnit(at time.Time) time.Duration {
	s.t.Helper()
	had, units := s.ledger(), make(map[string]bool)
	for _, e := range had {
		units[string(e.Unit)] = true
	}
	s.until("a worker begins another unit", func() bool {
		for _, e := range s.ledger()[len(had):] {
			if !units[string(e.Unit)] {
				return true
			}
		}
		return false
	})
	return time.Since(at).Round(time.Millisecond)
}

// wakeLate lets a stopped server go on when the job has ended, and waits until it
// has come to itself. What it had in hand changes no unit.
func (s *service) wakeLate(name string, p *client) {
	s.t.Helper()
	before := s.listUnits(s.address)
	s.signal(s.running[name].Process, syscall.SIGCONT)
	listens := s.args[name][slices.Index(s.args[name], "--listen")+1]
	s.until("the server that was stopped has noticed that its workers have gone", func() bool {
		return strings.Count(s.log(name), "worker left") >= strings.Count(s.log(name), "worker bound")
	})
	if after := s.listUnits(listens); after != before {
		s.t.Errorf("units were\n%s\nand are\n%s", before, after)
	}
}

// listUnits returns all units, as a server lists them.
func (s *service) listUnits(server string) string {
	s.t.Helper()
	return s.want(0, "units", "--job-id", s.served().JobID, "--limit", "1000", "-o", "json", "--server", server)
}
