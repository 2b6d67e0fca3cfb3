package schedule

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/schedule/model"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store/jobs/limit"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

func testScheduler() *Scheduler {
	return New(Config{
		Node: "n", Now: time.Now, Limits: func(string) model.Limits { return model.Limits{} }, NewID: func() string { return "id" },
		Jitter: func() float64 { return 0 }, Lease: 20 * time.Second,
	})
}

// modelOf returns the first model of a spec.
func modelOf(spec *mapreduce.JobSpec) string { return spec.Provider + "/" + spec.Model }

// countModels counts what a scheduler's counts of models are to be.
func countModels(s *Scheduler) (uses map[string]modelUse, asking map[string]int) {
	uses, asking = make(map[string]modelUse), make(map[string]int)
	for id, j := range s.jobs.byID {
		if j.spec == nil {
			continue
		}
		u := uses[modelOf(j.spec)]
		if u.jobs == nil {
			u.jobs = make(map[mapreduce.JobID]*Job)
		}
		u.jobs[id] = j
		u.held += int64(j.held)
		if j.asks {
			u.asking++
		}
		uses[modelOf(j.spec)] = u
		if j.running && j.asks {
			asking[j.spec.Provider]++
		}
	}
	return uses, asking
}

// Jobs come, change their models, hold units, stop running and go. Nothing is looked up in
// all of them, so what is counted must stay what one would find there.
func TestCountsOfModelsAreThoseOfTheirJobs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := testScheduler()
	epoch := int64(0)
	for step := range 20_000 {
		id := mapreduce.JobID(fmt.Sprint("j", r.IntN(12)))
		job := s.jobs.byID[id]
		switch r.IntN(6) {
		case 0:
			epoch++
			spec := &mapreduce.JobSpec{Provider: fmt.Sprint("p", r.IntN(2)), Model: fmt.Sprint("m", r.IntN(3)), Parallelism: 4}
			s.PutJob(id, &records.Control{Tenant: "t", Epoch: epoch}, spec, jobspec.Stages{}, r.IntN(2) == 0, 0, nil)
		case 1:
			s.RetireJob(id)
		case 2:
			if job != nil { // another node has paused it, cancelled it, or had it go on
				job.turns.underWay++
				s.Turns.Apply(&Task{Job: job, Turn: new(queue.Turn)}, &queue.Result{State: []mapreduce.JobState{mapreduce.Mapping, mapreduce.JobPaused}[r.IntN(2)]})
			}
		case 3:
			s.mu.Lock()
			s.jobs.addHeld(s.jobs.getOrAdd(id), 1) // as a session that comes back has units of jobs that are not known yet
			s.mu.Unlock()
		default:
			if job != nil && job.held > 0 {
				s.mu.Lock()
				s.jobs.addHeld(job, -1)
				s.dropJob(job)
				s.mu.Unlock()
			}
		}
		uses, asking := countModels(s)
		if !maps.Equal(asking, s.jobs.asking) {
			t.Fatalf("step %d: jobs that ask are %v by provider; counted are %v", step, asking, s.jobs.asking)
		}
		same := func(want modelUse, got *modelUse) bool {
			return maps.Equal(want.jobs, got.jobs) && want.asking == got.asking && want.held == got.held
		}
		if !maps.EqualFunc(uses, s.jobs.uses, same) {
			t.Fatalf("step %d: jobs by model are %v; counted are %v", step, uses, s.jobs.uses)
		}
	}
}

// Where there are thousands of jobs, news of one model must not have all of them visited.
func TestNewsOfAModelVisitItsJobsAlone(t *testing.T) {
	s := testScheduler()
	for i, name := range []string{"a", "b"} {
		spec := &mapreduce.JobSpec{Provider: "p", Model: name, Parallelism: 1}
		s.PutJob(mapreduce.JobID(name), &records.Control{Tenant: "t", Epoch: int64(i + 1)}, spec, jobspec.Stages{}, true, 0, nil)
	}
	for _, ok := s.fairQueue.Next(); ok; _, ok = s.fairQueue.Next() { // all have been visited
	}
	s.Models.ApplyScope("p/a", new(limit.Scope), s.now())
	if j, _ := s.fairQueue.Next(); j == nil || j.ID != "a" {
		t.Errorf("the job of the model is not visited")
	}
	if j, _ := s.fairQueue.Next(); j != nil {
		t.Errorf("job %s of another model is visited as well", j.ID)
	}
}

// newSession returns a session of a worker that serves a provider.
func newSession(id mapreduce.SessionID, provider string) *workers.Session {
	return workers.NewSession(&protocol.Hello{Session: id, Slots: 1, Offer: mapreduce.Offer{Providers: []string{provider}}}, "", 1, false, quietPeer{})
}

// runnable puts a job on a scheduler that a worker can run, all of whose units are known.
func runnable(s *Scheduler, id mapreduce.JobID) *Job {
	spec := &mapreduce.JobSpec{Provider: "rules", Parallelism: 8}
	s.PutJob(id, &records.Control{Tenant: "t", Epoch: 1}, spec, jobspec.Stages{}, false, 0, make([]records.Candidate, 4))
	s.jobs.byID[id].grant.Begin(8)
	return s.jobs.byID[id]
}

// A worker that comes back with more units than it says it has slots must not take those of
// others away.
func TestAWorkerThatHoldsTooMuchTakesNoSlotsOfOthers(t *testing.T) {
	s := testScheduler()
	offer := mapreduce.Offer{Providers: []string{"rules"}}
	for _, id := range []mapreduce.SessionID{"greedy", "modest"} {
		s.workers.Bind(workers.NewSession(&protocol.Hello{Session: id, Slots: 1, Offer: offer}, "", 1, false, quietPeer{}), nil, s.node, s.now())
	}
	for i := range 4000 {
		s.workers.Bound("greedy").Hold("k", &records.Unit{ID: mapreduce.UnitID(fmt.Sprint(i))}, &workers.Claim{}, false)
	}
	if n := s.freeSlots(runnable(s, "j")); n != 1 {
		t.Errorf("%d slots are free; want that of the other worker", n)
	}
}

// A worker that hands a unit back because its breaker is open gets no more units of the
// model for a while, at most a lease, though it tells of no breaker in its heartbeats. It says so
// of its own breaker: other workers go on.
func TestAUnitThatMetAnOpenBreakerTellsOfIt(t *testing.T) {
	s := testScheduler()
	now := time.Now()
	s.now = func() time.Time { return now }
	meets, other := newSession("w", "p"), newSession("v", "p")
	for _, session := range []*workers.Session{meets, other} {
		s.workers.Bind(session, nil, s.node, s.now())
	}
	s.PutJob("j", &records.Control{Tenant: "t", Epoch: 1}, &mapreduce.JobSpec{Provider: "p", Model: "m"}, jobspec.Stages{}, true, 0, nil)
	back := protocol.Report{Job: "j", Unit: "u", Attempt: 1, Outcome: protocol.Returned, Breaker: "p/m", RetryAfter: time.Minute}
	runs := func(session *workers.Session, want bool, when string) {
		t.Helper()
		if got := session.CanRun(&s.jobs.byID["j"].wants, now); got != want {
			t.Errorf("%s, that %s may be given units is %t, want %t", when, session.ID, got, want)
		}
	}
	handBack := func() {
		m := &protocol.FromWorker{Reports: []protocol.Report{back}}
		s.Sessions.Receive(meets, m, nobodyWatches)
		s.Sessions.EnterChecked(meets, m)
	}
	handBack()
	runs(meets, true, "when it has handed back what it does not hold")
	meets.Hold("j", &records.Unit{ID: "u", Attempt: 1}, &workers.Claim{Left: 2}, false)
	handBack()
	runs(meets, false, "when its unit has met an open breaker")
	runs(other, true, "when a unit of another has met an open breaker")
	now = now.Add(15 * time.Second)
	handBack()
	now = now.Add(5 * time.Second)
	runs(meets, false, "within the lease")
	now = now.Add(1)
	runs(meets, true, "after a lease, though the report came twice")
}

// A queue that could not be read is read again, from its beginning.
func TestAQueueThatCouldNotBeReadIsReadAgain(t *testing.T) {
	s := testScheduler()
	s.workers.Bind(workers.NewSession(&protocol.Hello{Session: "w", Slots: 8, Offer: mapreduce.Offer{Providers: []string{"rules"}}}, "", 1, false, quietPeer{}), nil, s.node, s.now())
	j := runnable(s, "j")
	j.queue.Forget()
	j.queue.Restart()
	if task := s.TryTask(); task == nil || !task.Scan {
		t.Fatalf("the task is %+v; want that the queue is read", task)
	}
	s.Turns.ApplyScan(j, nil, nil)
	if task := s.TryTask(); task == nil || !task.Scan {
		t.Errorf("the task is %+v; want that the queue is read again", task)
	}
}

// A job that was stopped while a session held its last unit goes with that unit.
func TestAStoppedJobGoesWithItsLastUnit(t *testing.T) {
	s := testScheduler()
	session := workers.NewSession(&protocol.Hello{Session: "w", Slots: 1}, "", 1, false, quietPeer{})
	s.workers.Bind(session, nil, s.node, s.now())
	s.workers.Suspend(session)
	j := runnable(s, "j")
	session.Hold("j", &records.Unit{ID: "u", Attempt: 1}, &workers.Claim{Left: 1}, false)
	s.mu.Lock()
	s.jobs.addHeld(j, 1)
	s.mu.Unlock()
	s.RetireJob("j")
	if s.jobs.byID["j"] == nil {
		t.Fatal("the job is gone before its unit")
	}
	s.Sessions.Forget(session)
	if s.jobs.byID["j"] != nil {
		t.Error("the job stays, and nothing is left to do for it")
	}
}
