package schedule

import (
	"math"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/jobspec"
	"github.com/coditect/mapreduce/orchestrator/schedule/model"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store/jobs/limit"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// newFallbackJobs returns a scheduler with a job that asks a/m, and s/m while that is away, and one that
// asks a/m alone; this node has a share of both models, which nothing limits.
func newFallbackJobs(t *testing.T) (s *Scheduler, both, alone *Job) {
	t.Helper()
	s = testScheduler()
	for id, spec := range map[mapreduce.JobID]*mapreduce.JobSpec{
		"both":  {Provider: "a", Model: "m", Fallbacks: []string{"b/m"}, Parallelism: 4},
		"alone": {Provider: "a", Model: "m", Parallelism: 4},
	} {
		s.PutJob(id, &records.Control{Epoch: 1, Shards: 1}, spec, jobspec.Stages{}, true, 0, []records.Candidate{{Unit: "u"}})
	}
	for _, name := range []string{"a/m", "b/m"} {
		s.Models.ApplyScope(name, &limit.Scope{Shares: map[mapreduce.NodeID]limit.Share{"n": {Want: 1, Slots: 1}}}, s.now())
	}
	return s, s.jobs.byID["both"], s.jobs.byID["alone"]
}

// An open breaker of one model holds back the units that have no other, and none that have.
func TestABreakerHoldsBackNoUnitThatHasAnotherModel(t *testing.T) {
	s, both, alone := newFallbackJobs(t)
	s.mu.Lock()
	if s.Models.modelRoom(both) != math.MaxInt || s.Models.modelRoom(alone) != math.MaxInt {
		t.Error("nothing limits the models, and there is no room")
	}
	s.mu.Unlock()

	now := s.now()
	s.Models.ApplyScope("a/m", &limit.Scope{Breaker: limit.Breaker{Open: true, For: time.Minute}, Shares: map[mapreduce.NodeID]limit.Share{"n": {Want: 1, Slots: 1}}}, now)
	session := workers.NewSession(&protocol.Hello{Session: "w", Slots: 4, Offer: mapreduce.Offer{Providers: []string{"a", "b"}}}, "", 1, false, quietPeer{})
	session.NoteBreaker("a/m", now.Add(time.Minute))
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, c := range map[string]struct {
		job   *Job
		room  bool
		model string
	}{"both": {both, true, "b/m"}, "alone": {alone, false, "a/m"}} {
		if got := s.Models.modelRoom(c.job) > 0; got != c.room {
			t.Errorf("%s: room %v, want %v", name, got, c.room)
		}
		if got := session.CanRun(&c.job.wants, now); got != c.room {
			t.Errorf("%s: a worker may have units: %v, want %v", name, got, c.room)
		}
		if got := s.Models.modelUnanswered(c.job, now); got == c.room {
			t.Errorf("%s: nobody answers: %v", name, got)
		}
		if got := s.Models.askedNow(c.job); got != c.model {
			t.Errorf("%s asks %s, want %s", name, got, c.model)
		}
	}
}

// What a unit says of a model that is tried again counts only if it asked that model.
func TestOutcomesOfOneOfSeveralModels(t *testing.T) {
	for name, c := range map[string]struct {
		rep     protocol.Report
		says    bool
		outcome protocol.Outcome
	}{
		"it answered":          {protocol.Report{Outcome: protocol.Done, Models: []string{"a/m as m-2"}}, true, protocol.Done},
		"the other answered":   {protocol.Report{Outcome: protocol.Done, Models: []string{"b/m"}}, false, 0},
		"it failed first":      {protocol.Report{Outcome: protocol.Done, Models: []string{"b/m"}, Failing: []string{"a/m"}}, true, protocol.Errored},
		"it failed and then":   {protocol.Report{Outcome: protocol.Done, Models: []string{"a/m", "b/m"}, Failing: []string{"a/m"}}, true, protocol.Done},
		"a name within a name": {protocol.Report{Outcome: protocol.Done, Models: []string{"a/mm"}}, false, 0},
	} {
		got, says := model.OutcomeOf(&c.rep, "a/m")
		if says != c.says || says && (got.Outcome != c.outcome || got.Calls == 0) {
			t.Errorf("%s: %+v, %v", name, got, says)
		}
	}
}

// What is counted of a job with several models is counted for each, and nothing stays when it goes.
func TestCountsOfSeveralModels(t *testing.T) {
	s, both, _ := newFallbackJobs(t)
	s.mu.Lock()
	s.jobs.addHeld(both, 3)
	if a, second := s.jobs.uses["a/m"], s.jobs.uses["b/m"]; a.held != 3 || a.spare != 0 || second.held != 0 || second.spare != 3 || len(a.jobs) != 2 || len(second.jobs) != 1 || second.asking != 1 {
		t.Errorf("counted %+v and %+v", a, second)
	}
	if got := s.Models.wantOf(s.Models.modelStateOf("b/m")); got != 3 {
		t.Errorf("wants %d calls of the second model, want 3", got)
	}
	s.jobs.addHeld(both, -3)
	s.mu.Unlock()
	s.RetireJob("both")
	s.RetireJob("alone")
	if len(s.jobs.uses) != 0 || len(s.jobs.asking) != 0 {
		t.Errorf("left over: %v, %v", s.jobs.uses, s.jobs.asking)
	}
}
