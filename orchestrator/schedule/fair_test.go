package schedule_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/schedule"
	"github.com/coditect/mapreduce/orchestrator/schedule/model"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store/jobs/nodes"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
	"github.com/coditect/mapreduce/store/keys"
)

// A simulation is a scheduler with one worker, whose units end by themselves, in virtual
// time. Turns take none.
type simulation struct {
	t         *testing.T
	now       time.Time
	scheduler *schedule.Scheduler
	session   *workers.Session
	events    []event // by time
	jobs      map[mapreduce.JobID]*simulatedJob
}

// A simulatedJob is a job, as the store would have it.
type simulatedJob struct {
	units, done int
	latency     time.Duration // of each unit
	ended       time.Time
}

type event struct {
	at time.Time
	do func()
}

// newSimulation returns a scheduler with a worker that holds as many units as it has slots.
func newSimulation(t *testing.T, slots int) *simulation {
	t.Helper()
	s := &simulation{t: t, now: time.Unix(1_000_000, 0), jobs: make(map[mapreduce.JobID]*simulatedJob)}

	claims := 0
	s.scheduler = schedule.New(schedule.Config{
		Node: "n", Limits: func(string) model.Limits { return model.Limits{} }, Lease: time.Minute,
		Now: func() time.Time { return s.now }, Jitter: func() float64 { return 0 },
		NewID: func() string { claims++; return fmt.Sprint(claims) },
	})

	hello := &protocol.Hello{Session: "w", Slots: slots, Offer: mapreduce.Offer{Providers: []string{"rules"}}}
	s.session = workers.NewSession(hello, "", 1, false, attentive{})
	s.scheduler.Sessions.Enter(s.session, nil)
	return s
}

// An attentive worker reads all that it is told, at once.
type attentive struct{}

func (attentive) Send(*protocol.ToWorker) {}
func (attentive) Lags() bool              { return false }
func (attentive) Stop(why error)          { panic(why) }

// submit puts a job on the scheduler that may use all slots.
func (s *simulation) submit(tenant mapreduce.TenantID, units int, latency time.Duration) mapreduce.JobID {
	id := mapreduce.JobID(fmt.Sprintf("%s-%d", tenant, len(s.jobs)))
	s.jobs[id] = &simulatedJob{units: units, latency: latency}

	waiting := make([]records.Candidate, units)
	for i := range waiting {
		waiting[i] = records.Candidate{Class: keys.ClassNew, Seq: int64(i), Unit: mapreduce.UnitID(fmt.Sprint(i))}
	}

	s.scheduler.Grants.SetInitialSlots(id, 1000)
	spec := &mapreduce.JobSpec{Provider: "rules", Parallelism: 1000}
	s.scheduler.PutJob(id, &records.Control{Tenant: tenant, Epoch: 1}, spec, jobspec.Stages{}, false, 0, waiting)
	s.scheduler.Grants.Apply(id, &nodes.GrantReply{Slots: 1000})
	s.drive()
	return id
}

// drive carries out all that the scheduler decides.
func (s *simulation) drive() {
	for task := s.scheduler.TryTask(); task != nil; task = s.scheduler.TryTask() {
		if task.Scan {
			s.t.Fatalf("the queue of %s is read, and all of it is known", task.Job.ID)
		}
		s.turn(task)
	}
}

// turn accepts the reports of a turn, and gives its units to the worker.
func (s *simulation) turn(task *schedule.Task) {
	j := s.jobs[task.Job.ID]
	res := &queue.Result{State: mapreduce.Mapping, Epoch: 1}
	for range task.Turn.Reports {
		res.Verdicts = append(res.Verdicts, queue.Settled{Verdict: protocol.Accepted})
		j.done++
	}
	if j.done == j.units {
		res.State, j.ended = mapreduce.JobComplete, s.now
	}

	if c := task.Turn.Claim; c != nil {
		res.Bound = []bool{true}
		for _, candidate := range c.Candidates {
			res.Claimed = append(res.Claimed, queue.Claimed{Session: "w", Unit: &records.Unit{ID: candidate.Unit, Attempt: 1}})
		}
	}

	s.scheduler.Turns.Apply(task, res)
	for _, c := range res.Claimed {
		s.after(j.latency, func() { s.end(task.Job.ID, c.Unit.ID) })
	}
}

// end has the worker report a unit.
func (s *simulation) end(job mapreduce.JobID, unit mapreduce.UnitID) {
	m := &protocol.FromWorker{Reports: []protocol.Report{{Job: job, Unit: unit, Attempt: 1, Outcome: protocol.Done}}}
	s.scheduler.Sessions.Receive(s.session, m, func(mapreduce.JobID) int64 { return 0 })
	s.scheduler.Sessions.EnterChecked(s.session, m)
	s.drive()
}

func (s *simulation) after(d time.Duration, do func()) {
	at := s.now.Add(d)
	i, _ := slices.BinarySearchFunc(s.events, at, func(e event, at time.Time) int {
		return cmp.Or(e.at.Compare(at), -1) // behind those of the same time
	})
	s.events = slices.Insert(s.events, i, event{at, do})
}

// pass lets time pass until a job has ended as many units.
func (s *simulation) pass(id mapreduce.JobID, done int) {
	s.t.Helper()
	for s.jobs[id].done < done {
		if len(s.events) == 0 {
			s.t.Fatalf("nothing runs, and %d of %d units of %s are done", s.jobs[id].done, s.jobs[id].units, id)
		}
		next := s.events[0]
		s.events = s.events[1:]
		s.now = next.at
		next.do()
	}
}

// took returns how long a job of some units takes that is submitted now.
func (s *simulation) took(tenant mapreduce.TenantID, units int) time.Duration {
	s.t.Helper()
	begun := s.now
	id := s.submit(tenant, units, 0)
	s.pass(id, units)
	return s.jobs[id].ended.Sub(begun)
}

// Every slot that a unit of the large job frees could go to its next one, in the same turn.
// It must not, while others wait.
func TestASmallTenantIsServedBesideALargeOne(t *testing.T) {
	s := newSimulation(t, 4)
	large := s.submit("large", 4000, 10*time.Millisecond)
	s.pass(large, 1)

	for range 3 {
		if took := s.took("small", 5); took > 50*time.Millisecond {
			t.Errorf("a job of 5 units took %v beside units of 10 ms of another tenant, want 50 ms at most", took)
		}
	}
}

// While tenants come and go, one that has nearly all slots leaves some free, so that the
// others need not wait until its units end.
func TestATenantThatComesAndGoesFindsASlot(t *testing.T) {
	s := newSimulation(t, 64)
	large := s.submit("large", 4000, 600*time.Millisecond)
	s.pass(large, 1)

	var waits []time.Duration
	for range 10 {
		waits = append(waits, s.took("small", 1))
	}
	for _, w := range waits[2:] {
		if w > 500*time.Millisecond {
			t.Errorf("jobs of one unit took %v beside units of 600 ms, want no wait but at first", waits)
			break
		}
	}
}

// While all slots are busy, jobs wait for the next that is free. Their tenants take turns
// then: the only job of one is not behind each of the hundred of another.
func TestTheOnlyJobOfATenantIsNotBehindAHundred(t *testing.T) {
	s := newSimulation(t, 4)
	var all []mapreduce.JobID
	for range 100 {
		all = append(all, s.submit("many", 10, time.Second))
	}
	s.pass(all[0], 1)

	if took := s.took("one", 20); took > 5*time.Second {
		t.Errorf("a job of 20 units that take no time took %v beside jobs of another tenant, want 5 s at most", took)
	}
}
