package main_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// The tests of this file kill processes at random, with kill -9. How often they
// try is in CODITECT_SOAK_TRIALS; `make soak` tries often.

// The process that does everything is killed, and what goes on with its job is
// killed, and so on.
func TestSoakKillsOfOneProcess(t *testing.T) {
	testenv.Lengthy(t)
	testenv.SlowOnFDB(t)

	t.Parallel()
	program := build(t)
	scriptedJob := newCorpus(t, program, 12, append(costly(), "--var", "script.latency=lognormal:20ms,1")...)
	rulesJob := newCorpus(t, program, 120, "--provider", "rules")
	staticJob, adaptiveJob := rulesJob.reduced("--chunk-size", "4"), rulesJob.reduced("--target-token-budget", "400")
	rulesWant := reference(t, rulesJob, 0)
	staticWant, adaptiveWant := reference(t, staticJob, 0), reference(t, adaptiveJob, 0)
	for _, name := range []string{"result.json", "report.md"} { // which do not tell how they were reduced
		if staticWant[name] != rulesWant[name] || adaptiveWant[name] != rulesWant[name] {
			t.Errorf("%s differs between trees", name)
		}
	}
	for _, k := range []struct {
		name   string
		corpus *corpus
		want   map[string]string
	}{
		{"scripted", scriptedJob, reference(t, scriptedJob, 0)},
		{"rules", rulesJob, rulesWant},
		{"rules, static", staticJob, staticWant},
		{"rules, adaptive", adaptiveJob, adaptiveWant},
	} {
		t.Run(k.name, func(t *testing.T) {
			for seed := range trials(t) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					t.Parallel()
					random := rand.New(rand.NewPCG(uint64(seed), 1))
					h := newHouse(t, k.corpus)
					for range 1 + random.IntN(4) {
						h.killed(time.Duration(random.IntN(700))*time.Millisecond, h.next(k.corpus))
					}
					h.carryThrough(k.corpus)
					h.verify(k.want)
				})
			}
		})
	}
}

// killed runs a command of mapreduce and kills it after a while, unless it ends
// before.
func (h *house) killed(after time.Duration, args []string) {
	h.t.Helper()
	cmd := h.command(nil, append([]string{"mapreduce"}, args...)...)
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	bomb := time.AfterFunc(after, func() {
		_ = cmd.Process.Kill() // it may have ended
	})
	defer bomb.Stop()
	_ = cmd.Wait()                                                    // however it ends
	if code := cmd.ProcessState.ExitCode(); code != -1 && code != 0 { // it was killed, or ended before
		h.t.Errorf("%s ended with %d", args[0], code)
	}
	h.kills++
	h.look()
}

// next returns the command with which a user goes on.
func (h *house) next(c *corpus) []string {
	h.t.Helper()
	job, found := h.job()
	if !found {
		return c.run("--output", "out")
	}
	return append([]string{"resume", "--job-id", job.JobID, "--output", "out"}, c.tools...)
}

// A service is a server, workers and a client, each a process of its own.
type service struct {
	*house
	address string
	args    map[string][]string // by name of the process
	spaces  map[string]string   // network namespaces, by name of the process; that of the test if it has none
	running map[string]*exec.Cmd
}

const serviceSlots = 4

func newService(t *testing.T, c *corpus, workers ...string) *service {
	t.Helper()
	return newFleet(t, c, []string{"server"}, workers)
}

// newFleet returns a service of several servers, which the client calls the last
// of, and workers that know all of them.
func newFleet(t *testing.T, c *corpus, servers, workers []string) *service {
	t.Helper()
	s := &service{house: newHouse(t, c), args: make(map[string][]string), running: make(map[string]*exec.Cmd)}
	var known []string
	for _, name := range servers {
		s.address = freeAddress(t)
		known = append(known, "--server", s.address)
		s.args[name] = []string{
			"serve", "--listen", s.address, "--workers", "0", "--lease", "1s", "--heartbeat", "100ms", "--grace", "300ms",
		}
	}
	for _, w := range workers {
		s.args[w] = append([]string{"worker", "--slots", fmt.Sprint(serviceSlots)}, known...)
	}
	t.Cleanup(s.stop)
	return s
}

var ports atomic.Int64 // that were looked at

// freeAddress returns another each time, one that nobody listens on. Nobody takes it for
// a connection either, as systems take those from higher ports: a server that is killed
// comes back to it.
func freeAddress(t *testing.T) string {
	t.Helper()
	const from, to = 20000, 32000
	ports.CompareAndSwap(0, rand.Int64N(to-from)+1) // other processes do the same
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", from+ports.Add(1)%(to-from))
		if l, err := net.Listen("tcp", address); err == nil {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return address
		}
	}
	t.Fatal("no address is free")
	return ""
}

// start runs one of the processes.
func (s *service) start(name string) {
	s.t.Helper()
	within := *s.house
	within.space = s.spaces[name]
	cmd := within.command(nil, s.args[name]...)
	log, err := os.OpenFile(s.path(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.running[name] = cmd
}

// log returns what all processes of a name have said.
func (s *service) log(name string) string {
	s.t.Helper()
	b, err := os.ReadFile(s.path(name + ".log"))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// serverLogs returns what all servers have said.
func (s *service) serverLogs() string {
	s.t.Helper()
	var all strings.Builder
	for name, args := range s.args {
		if args[0] == "serve" && s.running[name] != nil {
			fmt.Fprintf(&all, "%s:\n%s", name, s.log(name))
		}
	}
	return all.String()
}

// kill ends one of the processes at once.
func (s *service) kill(name string) {
	s.t.Helper()
	cmd := s.running[name]
	delete(s.running, name)
	if err := cmd.Process.Kill(); err != nil {
		s.t.Fatalf("%s ended by itself: %v\n%s", name, err, s.log(name))
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() >= 0 {
		s.t.Fatalf("%s ended by itself: %v\n%s", name, cmd.ProcessState, s.log(name))
	}
}

func (s *service) stop() {
	for name := range s.running {
		s.kill(name)
	}
}

// A client submits the corpus and waits for its results.
type client struct {
	ended   chan struct{} // closed when it has ended
	outcome outcome       // valid then
}

func (s *service) client(args ...string) *client {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := s.command(nil, append(append([]string{"mapreduce"}, args...), "--server", s.address)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	slow := time.AfterFunc(slowest, func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT) // it may have ended
	})
	c := &client{ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		defer slow.Stop()
		_ = cmd.Wait() // ProcessState says how
		c.outcome = outcome{code: cmd.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
	}()
	return c
}

// Server and workers are killed at random until the job has ended, and for no
// longer than a while.
func TestSoakKillsOfServerAndWorkers(t *testing.T) {
	testenv.Lengthy(t)
	testenv.SlowOnFDB(t)

	flags := append(costly(), "--var", "script.latency=lognormal:60ms,1")
	working := newCorpus(t, build(t), 12, flags...)
	parking := newCorpus(t, build(t), 12, append(flags, "--var", "script.parks=2", "--var", "script.park_for=200ms")...)
	want := reference(t, working, 0)
	for seed := range trials(t) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(seed), 2))
			c := []*corpus{working, parking}[seed%2] // which come to the same
			names := []string{"server", "worker a", "worker b"}
			s := newService(t, c, names[1:]...)
			for _, name := range names {
				s.start(name)
			}
			submit := c.run("--output", "out", "--request-id", "soak")
			p := s.storm(submit, func() { s.strike(names[random.IntN(len(names))]) }, random)
			s.wantComplete(p.outcome)
			s.stop()
			s.verifyFleet(want)
		})
	}
}

// storm submits a job, and lets something happen over and over until it has
// ended, and for no longer than a while.
func (s *service) storm(submit []string, happen func(), random *rand.Rand) *client {
	s.t.Helper()
	return s.await(s.rage(submit, happen, func() {}, random), submit)
}

// rage is storm that does not wait for the end of the job. What happened is over when calm was called.
func (s *service) rage(submit []string, happen, calm func(), random *rand.Rand) *client {
	s.t.Helper()
	defer calm()
	p := s.client(submit...)
	for storm := time.Now().Add(15 * time.Second); time.Now().Before(storm); {
		select {
		case <-p.ended:
			calm()
			if p.outcome.code != 1 || s.failed() {
				return p
			}
			p = s.client(submit...) // it has lost its server too often
		case <-time.After(time.Duration(50+random.IntN(450)) * time.Millisecond):
			happen()
		}
	}
	return p
}

// await waits for the end of a job that a client has submitted.
func (s *service) await(p *client, submit []string) *client {
	s.t.Helper()
	<-p.ended // the client has patience, and no more than that
	if p.outcome.code == 1 && !s.failed() {
		p = s.client(submit...)
		<-p.ended
	}
	return p
}

// strike kills a process and starts it again.
func (s *service) strike(name string) {
	s.t.Helper()
	s.kill(name)
	s.kills++
	s.start(name)
}

// failed reports whether the job has failed, once the server answers.
func (s *service) failed() bool {
	s.t.Helper()
	job := s.served()
	return job.Status == "failed"
}

// served returns the only job, as the server knows it; nothing if there is none.
func (s *service) served() (job listed) {
	s.t.Helper()
	s.until("the server lists jobs", func() bool {
		o := s.try(nil, "list", "-o", "json", "--server", s.address)
		if o.code != 0 {
			return false
		}
		var page struct{ Jobs []listed }
		s.decode(o.stdout, &page)
		if len(page.Jobs) > 1 {
			s.t.Fatalf("one request made %d jobs: %+v", len(page.Jobs), page.Jobs)
		}
		if len(page.Jobs) == 1 {
			job = page.Jobs[0]
		}
		return true
	})
	return job
}

// wantComplete fails the test unless every unit is complete, whatever was killed.
func (s *service) wantComplete(o outcome) {
	s.t.Helper()
	if o.code != 0 {
		s.t.Fatalf("ended with %d\n%s%s\nservers:\n%s", o.code, o.stdout, o.stderr, s.serverLogs())
	}
}

// verifyFleet checks what holds for processes apart: there are no more calls
// than units, and those that workers had when one of them, or the server, died.
func (s *service) verifyFleet(want map[string]string) {
	t := s.t
	t.Helper()
	s.verify(want)
	ended, attempts := 0, make(map[string]bool)
	for _, e := range s.ledger() {
		key := fmt.Sprintf("%s %d %d %t", e.Unit, e.Attempt, e.Call, e.End)
		if attempts[key] {
			t.Errorf("call %d of attempt %d of unit %s was made twice", e.Call, e.Attempt, e.Unit)
		}
		attempts[key] = true
		if e.End {
			ended++
		}
	}
	units := strings.Count(want["units.jsonl"], "\n")
	if most := 2 * (units + s.kills*2*serviceSlots); ended > most || ended < 2*units-4 {
		t.Errorf("%d calls for %d units of two calls, with %d kills", ended, units, s.kills)
	}
}

// A worker is stopped, as a suspended machine is. Its unit is given to another
// and completed; when the first wakes up, what it has changes nothing.
func TestStoppedWorkerIsRefused(t *testing.T) {
	c := newCorpus(t, build(t), 1, "--var", "script.latency=600ms")
	c.flags = append(c.flags, "--include", "*.txt")
	s := newService(t, c, "zombie", "other")
	s.start("server")
	s.start("zombie")
	p := s.client(c.run("--output", "out")...)
	first := s.begun(1)
	zombie := s.running["zombie"].Process
	s.signal(zombie, syscall.SIGSTOP)
	s.start("other")
	<-p.ended
	if p.outcome.code != 0 {
		t.Fatalf("ended with %d\n%s", p.outcome.code, p.outcome.stderr)
	}
	before := s.unit(string(first.Unit))
	if !strings.Contains(before, `"attempts": 2`) {
		t.Errorf("the unit was not given to another: %s", before)
	}
	s.signal(zombie, syscall.SIGCONT)
	s.until("the worker is told to drop its unit", func() bool {
		return strings.Contains(s.log("server"), "dropped=1") || strings.Contains(s.log("server"), "superseded attempt refused")
	})
	if after := s.unit(string(first.Unit)); after != before {
		t.Errorf("the unit was\n%s\nand is\n%s", before, after)
	}
	s.stop()
	s.healthy()
}

// begun waits until so many calls were begun and returns the last of these.
func (s *service) begun(n int) scripted.Entry {
	s.t.Helper()
	var last scripted.Entry
	s.until(fmt.Sprintf("%d calls were begun", n), func() bool {
		entries := s.ledger()
		if len(entries) < n {
			return false
		}
		last = entries[n-1]
		return true
	})
	return last
}

// until waits for something to be true.
func (s *service) until(what string, seen func() bool) {
	s.t.Helper()
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-pause.C {
		if seen() {
			return
		}
	}
	s.t.Fatalf("it never came to be that %s\nservers:\n%s", what, s.serverLogs())
}

func (s *service) signal(p *os.Process, sig os.Signal) {
	s.t.Helper()
	if err := p.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// unit returns a unit as the server lists it.
func (s *service) unit(id string) string {
	s.t.Helper()
	all := s.want(0, "units", "--job-id", s.served().JobID, "-o", "json", "--server", s.address)
	_, unit, found := strings.Cut(all, `"unit_id": "`+id+`"`)
	if !found {
		s.t.Fatalf("unit %s is not in\n%s", id, all)
	}
	unit, _, _ = strings.Cut(unit, `"unit_id"`)
	return unit
}
