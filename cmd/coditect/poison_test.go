package main_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/testenv"
)

// The tests of this file have one unit that ends every process that runs it, in three ways,
// beside a thousand that do not.

const (
	neighbours  = 1000
	poisonous   = "0003.txt" // so that most others run after it
	poisonTries = 3          // --max-attempts
	poisonSlots = 8          // --parallelism
	// lostToPoison is how many processes such a unit ends that do other work as well: two,
	// and one more if it ends the first before that is known to run it.
	lostToPoison = 3
)

// poisons are the ways, and what is seen of each.
var poisons = map[string]string{
	"exit":   "exit status 1",
	"kill":   "signal: killed",
	"memory": "cannot allocate",
}

// newPoisoned returns a corpus of which one unit ends its process.
func newPoisoned(t *testing.T, how string) *corpus {
	t.Helper()
	c := newCorpus(t, build(t), 0, "--parallelism", fmt.Sprint(poisonSlots), "--max-attempts", fmt.Sprint(poisonTries),
		"--var", "script.calls=2", "--var", "script.latency=20ms", "--var", "script.poison."+poisonous+"="+how)
	for i := range neighbours + 1 {
		c.write(t, fmt.Sprintf("docs/%04d.txt", i), fmt.Sprintf("Package: pkg-%d\nVersion: %d\nSize: %d\n", i, i, i))
	}
	c.flags = append(c.flags, "--include", "*.txt")
	c.tree = nil
	return c
}

// A failedUnit is a unit as units lists it.
type failedUnit struct {
	ID       string   `json:"unit_id"`
	Attempts int      `json:"attempts"`
	Errors   []string `json:"errors"`
}

// checkSetAside checks that one unit was set aside, with what was seen each time, and that all
// others are complete, each with its record in the result.
func checkSetAside(t *testing.T, h *house, seen string, times int, listing, stdout string) {
	t.Helper()
	var page struct{ Units []failedUnit }
	h.decode(listing, &page)
	if len(page.Units) != 1 || page.Units[0].ID != poisonous {
		t.Fatalf("the failed units are %+v, want %s alone", page.Units, poisonous)
	}
	errors := page.Units[0].Errors
	if len(errors) != times {
		t.Errorf("its errors are %q, want what was seen %d times", errors, times)
	}
	for _, e := range errors {
		if !strings.Contains(e, "ended its process, in which nothing else ran, at ") || !strings.Contains(e, seen) {
			t.Errorf("it was seen %q, want %q", e, seen)
		}
	}
	if !strings.Contains(stdout, fmt.Sprintf("%d of %d documents mapped", neighbours, neighbours+1)) {
		t.Errorf("the end says\n%s", stdout)
	}
	var result struct {
		Records []json.RawMessage `json:"aggregated_data"`
		Failed  []failedUnit      `json:"failed_units"`
	}
	h.decode(h.results()["result.json"], &result)
	if len(result.Records) != neighbours || len(result.Failed) != 1 || result.Failed[0].ID != poisonous {
		t.Errorf("%d records, and the failed units %+v", len(result.Records), result.Failed)
	}
}

// checkUnstalled checks that the others did not wait for the unit: between its first try and
// its last one more of them ended than can run at one time. How many more is a matter of the
// store's speed.
func checkUnstalled(t *testing.T, h *house) {
	t.Helper()
	var ended []int // how many neighbours had ended when the unit was tried, by call
	neighbours := 0

	for _, e := range h.ledger() {
		switch {
		case string(e.Unit) == poisonous:
			ended = append(ended, neighbours)
		case e.End && e.Call == 1: // its second call is its last
			neighbours++
		}
	}

	t.Logf("when the unit was tried %d neighbours had ended", ended)
	if between := ended[len(ended)-1] - ended[0]; between <= poisonSlots {
		t.Errorf("%d neighbours ended between the unit's first and last try, want more than the %d that run at one time", between, poisonSlots)
	}
}

// In one process: the user resumes the job as often as its process ends, which is not often.
func TestPoisonInOneProcess(t *testing.T) {
	testenv.Lengthy(t)

	t.Parallel()
	for how, seen := range poisons {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := newPoisoned(t, how)
			h := newHouse(t, c)
			o := h.try(nil, c.run("--output", "out")...)
			died := 0
			for o.code != 3 && died <= lostToPoison {
				died++
				job, _ := h.job()
				o = h.try(nil, "resume", "--job-id", job.JobID, "--output", "out")
			}
			if o.code != 3 || died < 1 || died > lostToPoison {
				t.Fatalf("after %d deaths it ended with %d\n%s%.2000s", died, o.code, o.stdout, o.stderr)
			}
			job, _ := h.job()
			checkSetAside(t, h, seen, poisonTries, h.answer("units", "--job-id", job.JobID, "--status", "failed", "-o", "json"), o.stdout)
			checkUnstalled(t, h)
			h.healthy()

			// A resume tries it again, and no process but its own ends.
			calls := len(h.ledger())
			o = h.try(nil, "resume", "--job-id", job.JobID, "--output", "out")
			if o.code != 3 {
				t.Errorf("the resume ended with %d\n%s%.2000s", o.code, o.stdout, o.stderr)
			}
			if len(h.ledger()) == calls {
				t.Error("the resume did not try the unit")
			}
			checkSetAside(t, h, seen, 2*poisonTries, h.answer("units", "--job-id", job.JobID, "--status", "failed", "-o", "json"), o.stdout)
			h.healthy()
		})
	}
}

// A keeper starts workers again that end, as an orchestrator of containers does.
type keeper struct {
	deaths atomic.Int64
	kept   sync.WaitGroup
	stop   chan struct{}
	mu     sync.Mutex // guards now
	now    map[int]*exec.Cmd
}

func (s *service) keep(workers int) *keeper {
	k := &keeper{stop: make(chan struct{}), now: make(map[int]*exec.Cmd)}
	for i := range workers {
		k.kept.Go(func() {
			for {
				cmd := s.command(nil, "worker", "--slots", fmt.Sprint(serviceSlots), "--server", s.address)
				k.mu.Lock()
				select {
				case <-k.stop:
					k.mu.Unlock()
					return
				default:
				}
				err := cmd.Start()
				k.now[i] = cmd
				k.mu.Unlock()
				if err != nil {
					return // which the test notices, as nothing is done
				}
				_ = cmd.Wait() // however it ends
				select {
				case <-k.stop:
				default:
					k.deaths.Add(1)
				}
			}
		})
	}
	return k
}

// end ends the workers.
func (k *keeper) end() {
	k.mu.Lock()
	close(k.stop)
	for _, cmd := range k.now {
		_ = cmd.Process.Kill() // it may have ended
	}
	k.mu.Unlock()
	k.kept.Wait()
}

// In a fleet: workers that end are started again, which is not often.
func TestPoisonInAFleet(t *testing.T) {
	testenv.Lengthy(t)

	t.Parallel()
	for how, seen := range poisons {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := newPoisoned(t, how)
			s := newService(t, c)
			s.start("server")
			k := s.keep(3)
			stop := sync.OnceFunc(k.end)
			defer stop()
			p := s.client(c.run("--output", "out")...)
			select {
			case <-p.ended:
			case <-time.After(slowest):
				t.Fatalf("the job does not end\n%s", s.serverLogs())
			}
			if p.outcome.code != 3 {
				t.Fatalf("ended with %d\n%s%s", p.outcome.code, p.outcome.stdout, p.outcome.stderr)
			}
			if n := k.deaths.Load(); n < 1 || n > lostToPoison {
				t.Errorf("%d workers died, want 2 or 3", n)
			}
			job := s.served()
			checkSetAside(t, s.house, seen, poisonTries, s.want(0, "units", "--job-id", job.JobID, "--status", "failed", "-o", "json", "--server", s.address), p.outcome.stdout)
			checkUnstalled(t, s.house)
			stop()
			s.stop()
			s.healthy()
		})
	}
}
