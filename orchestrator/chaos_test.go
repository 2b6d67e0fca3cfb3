package orchestrator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/worker"
)

// The tests of this file run whole fleets in virtual time, over a store that
// fails in every way it may.

// storm is what befalls a fleet.
type storm struct {
	rates   fault.Rates
	outages bool // of the store, of up to five seconds
	nodes   bool // orchestrators stop and crash
	drains  bool // workers leave and others come
	kills   bool // workers die
	freezes bool // orchestrators stand still for a while, and lose their workers or not
	parks   bool // units wait for something outside, after their call
}

func TestSoakStorms(t *testing.T) {
	for name, s := range map[string]storm{
		"faults":        {rates: fault.Retryable(0.02)},
		"twice":         {rates: fault.Rates{fault.Rerun: 0.5}},
		"outages":       {rates: fault.Retryable(0.002), outages: true},
		"orchestrators": {nodes: true},
		"zombies":       {freezes: true},
		"workers leave": {drains: true},
		"workers die":   {kills: true},
		"parked units":  {rates: fault.Retryable(0.01), outages: true, nodes: true, kills: true, freezes: true, parks: true},
		"everything":    {rates: fault.Retryable(0.01), outages: true, nodes: true, drains: true, kills: true, freezes: true},
	} {
		t.Run(name, func(t *testing.T) {
			// The other storms are parts of these two.
			usual := 3
			if name != "everything" && name != "parked units" {
				testenv.Unraced(t, testenv.Alike)
				usual = 1
			}

			for seed := range testenv.Storms(t, usual) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					enginetest.Virtually(t, func(t *testing.T) { weather(t, uint64(seed), s) })
				})
			}
		})
	}
}

const (
	stormDocuments   = 120
	stormUnits       = stormDocuments + 12 + 2 + 1
	stormParallelism = 9
)

func stormSpec(seed uint64) mapreduce.JobSpec {
	spec := enginetest.Script(map[string]string{
		"script.seed": fmt.Sprint(seed), "script.latency": "lognormal:400ms,0.8", "script.output_bytes": "500",
		"script.tokens_in": "300", "script.tokens_out": "100", "script.fail_rate": "0.03",
	})
	spec.ReduceContextLimit, spec.Parallelism = 10, stormParallelism
	spec.BreakerThreshold, spec.MaxAttempts = 1<<20, 20
	return spec
}

// weather runs a job through a storm.
func weather(t *testing.T, seed uint64, s storm) {
	config, log := enginetest.Logged(enginetest.Steady())
	config.SmallResult = max(1, int64(seed%2*stormDocuments)) // of every other job the result is a unit that is claimed
	f := enginetest.NewFleet(t, seed, 2, s.rates, config)
	var members [3]*enginetest.Member
	for i := range members {
		members[i] = f.Join(stormWorker(i))
	}
	spec := stormSpec(seed)
	if s.parks {
		spec.Vars["script.parks"], spec.Vars["script.park_for"] = "2", "700ms"
	}
	id := f.Any().Submit(spec, stormDocuments)
	for end := time.Now().Add(30 * time.Minute); ; {
		job, err := f.Any().GetJob(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if job.State == mapreduce.JobComplete && job.FailedUnits == 0 {
			break
		}
		if !job.State.Running() { // that workers were killed is no reason
			t.Fatalf("job is %v with %d failed units: %s", job.State, job.FailedUnits, job.Error)
		}
		if time.Now().After(end) {
			t.Fatalf("job has not ended: %+v", job)
		}
		strike(f, s, &members)
	}
	f.Faults.Heal()
	f.Faults.Settle()
	verify(f, id, 0)
	if most, _ := f.Counter.Peak(id); most > stormParallelism || most < 2 {
		t.Errorf("%d attempts ran at once, want at most %d: %v; workers that were given up and lived: %v",
			most, stormParallelism, f.Counter.AttemptsAtPeak(id), givenUp(f, log))
	}
}

// givenUp returns the sessions of workers that were taken for lost, and were alive: what
// they run runs beside what others were given instead, until they hear of that.
func givenUp(f *enginetest.Fleet, log *enginetest.LogBook) map[string]bool {
	all := make(map[string]bool)
	for _, line := range log.Lines("worker lost") {
		_, session, _ := strings.Cut(line, " session=")
		session, _, _ = strings.Cut(session, " ")
		if !slices.Contains(f.Killed, mapreduce.SessionID(session)) {
			all[session] = true
		}
	}
	return all
}

const stormSlots = 4 // of a worker

func stormWorker(i int) worker.Config {
	return worker.Config{Slots: stormSlots, Prefetch: 2 * i, DrainTimeout: time.Minute}
}

// strike lets one thing happen, and waits a moment.
func strike(f *enginetest.Fleet, s storm, members *[3]*enginetest.Member) {
	<-time.After(time.Duration(50+f.Random.IntN(450)) * time.Millisecond)
	out := s.outages && f.Random.IntN(4) == 0
	if out {
		f.Faults.BeginOutage()
		<-time.After(time.Duration(f.Random.IntN(2500)) * time.Millisecond)
	} else if s.outages && f.Random.IntN(4) == 0 {
		f.Faults.Recover()
	}
	node, drained, killed := -1, -1, -1
	if s.freezes && f.Random.IntN(3) == 0 {
		zombie(f)
	}
	if s.nodes && f.Random.IntN(4) == 0 {
		node = f.Random.IntN(len(f.Nodes))
		f.Stop(node, f.Random.IntN(2) == 0)
	}
	if s.kills && f.Random.IntN(6) == 0 {
		killed = f.Random.IntN(len(members))
		f.Kill(members[killed])
	}
	if s.drains && !out && f.Random.IntN(6) == 0 {
		drained = f.Random.IntN(len(members))
		members[drained].Stop()
	}
	<-time.After(time.Duration(f.Random.IntN(2500)) * time.Millisecond)
	if out {
		f.Faults.EndOutage()
	}
	if node >= 0 {
		f.Start(node)
	}
	for _, i := range []int{drained, killed} {
		if i >= 0 {
			members[i] = f.Join(stormWorker(i))
		}
	}
}

// zombie has an orchestrator stand still for a while. Most of the time its workers
// notice, and go elsewhere. If not they have nobody to report to, and it must go on
// before they are given up, or what they do is done again.
func zombie(f *enginetest.Fleet) {
	n := f.Node(f.Random.IntN(len(f.Nodes)))
	n.Gate.Freeze()
	still := time.Duration(f.Random.IntN(2000)) * time.Millisecond
	if f.Random.IntN(4) > 0 {
		<-time.After(still / 2)
		f.Cut(n)
		still = 3 * still
	}
	<-time.After(still)
	f.Mend(n)
	n.Gate.Thaw()
}

// verify checks what holds after every storm.
func verify(f *enginetest.Fleet, id mapreduce.JobID, resumes int) {
	t, n := f.T, f.Any()
	t.Helper()
	job := n.WantEnd(id, mapreduce.JobComplete)
	if job.TotalUnits != stormUnits || job.CompletedUnits != stormUnits || job.RunningUnits != 0 {
		t.Errorf("%d units, %d complete, %d running; want all of %d complete", job.TotalUnits, job.CompletedUnits, job.RunningUnits, stormUnits)
	}
	units := n.Units(id)
	if len(units) != stormUnits {
		t.Errorf("%d units are listed, want %d", len(units), stormUnits)
	}
	verifyCalls(f, units, resumes)
	if resumes == 0 {
		verifyLedger(f, id, units)
	}
	if err := n.CheckStore(t.Context(), mapreduce.CheckQuery{}, func(found mapreduce.Finding) error {
		if found.Severity > mapreduce.Info {
			t.Errorf("doctor: %+v", found)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// verifyCalls checks that no attempt ran twice, and that nothing that had been
// done was done again, but for what was lost with workers.
func verifyCalls(f *enginetest.Fleet, units map[mapreduce.UnitID]*mapreduce.Unit, resumes int) {
	t, c := f.T, f.Counter
	t.Helper()
	c.Mu.Lock()
	defer c.Mu.Unlock()
	for h, n := range c.Begun {
		made := resumes > 0 && units[h.Unit].Level > 0 // anew, from inputs that changed
		if n != 1 && !made {
			t.Errorf("attempt %+v was begun %d times", h, n)
		}
	}
	done := 0
	for u, n := range c.Done {
		done += n
		if n > 1 && f.Lost == 0 {
			t.Errorf("unit %s was done %d times, and no worker died", u, n)
		}
	}
	again := resumes * (stormUnits - stormDocuments) // reduces above what was tried again
	if done > stormUnits+f.Lost+again {
		t.Errorf("%d results for %d units, with %d lost", done, stormUnits, f.Lost)
	}
	if int(c.Calls) > stormUnits+f.Lost+again {
		t.Errorf("%d calls for %d units of one call, with %d lost", c.Calls, stormUnits, f.Lost)
	}
	for id, u := range units {
		switch {
		case u.State != mapreduce.UnitComplete:
			t.Errorf("unit %s is %v", id, u.State)
		case c.Done[id] == 0:
			t.Errorf("unit %s is complete and was never run", id)
		}
	}
}

// verifyLedger checks that each unit was completed by exactly one transaction,
// by the attempt that its record names.
func verifyLedger(f *enginetest.Fleet, id mapreduce.JobID, units map[mapreduce.UnitID]*mapreduce.Unit) {
	t, n := f.T, f.Any()
	t.Helper()
	seen := make(map[mapreduce.UnitID]int)
	q := mapreduce.ListEventsQuery{Job: id, PageSize: 50, Verify: true}
	for {
		page, err := n.ListEvents(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.Checkpoints {
			for _, ref := range c.Completed {
				seen[ref.Unit]++
				if ref.Unit == mapreduce.ResultUnit {
					continue // which is not listed
				}
				if u := units[ref.Unit]; u == nil || u.Attempts != ref.Attempt {
					t.Errorf("unit %s was completed by attempt %d, and its record is %+v", ref.Unit, ref.Attempt, u)
				}
			}
		}
		if q.PageToken = page.NextPageToken; q.PageToken == "" {
			break
		}
	}
	for u := range units {
		if seen[u] != 1 {
			t.Errorf("unit %s was completed %d times", u, seen[u])
		}
	}
}
