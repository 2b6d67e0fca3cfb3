package schedule

import (
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store/jobs/limit"
	"github.com/coditect/mapreduce/store/jobs/nodes"
)

// What a job waits for is said by name, the first thing that keeps all of its units; and nothing is said
// of a job that has another model, or units that run.
func TestWhatAJobWaitsFor(t *testing.T) {
	share := map[mapreduce.NodeID]limit.Share{"n": {Want: 1, Slots: 1}}
	open := &limit.Scope{Breaker: limit.Breaker{Open: true, For: time.Minute}, Shares: share}
	connect := func(s *Scheduler, slots int, providers ...string) *workers.Session {
		session := workers.NewSession(&protocol.Hello{Session: "w", Slots: slots, Offer: mapreduce.Offer{Providers: providers}}, "", 1, false, quietPeer{})
		s.workers.Bind(session, nil, s.node, s.now())
		return session
	}

	for name, tt := range map[string]struct {
		change      func(*Scheduler)
		both, alone string // "" says nothing
	}{
		"no worker":       {func(*Scheduler) {}, "no worker is connected", "no worker is connected"},
		"another worker":  {func(s *Scheduler) { connect(s, 4, "rules") }, `no worker has the provider "a"`, `no worker has the provider "a"`},
		"nothing at all":  {func(s *Scheduler) { connect(s, 4, "a", "b") }, "", ""},
		"an open breaker": {func(s *Scheduler) { connect(s, 4, "a", "b"); s.Models.ApplyScope("a/m", open, s.now()) }, "", "breaker of a/m is open"},
		"open breakers": {func(s *Scheduler) {
			connect(s, 4, "a", "b")
			s.Models.ApplyScope("a/m", open, s.now())
			s.Models.ApplyScope("b/m", open, s.now())
		}, "breaker of b/m is open", "breaker of a/m is open"},
		"a pause": {func(s *Scheduler) {
			connect(s, 4, "a", "b")
			s.Models.ApplyScope("a/m", &limit.Scope{Pauses: 1, Pause: time.Minute, Shares: share}, s.now())
		}, "", "a/m takes no calls until "},
		"taken slots": {func(s *Scheduler) {
			session := connect(s, 1, "a", "b")
			session.Release(-1) // a turn under way has it
		}, "all 1 slots", "all 1 slots"},
		"its budget": {func(s *Scheduler) {
			connect(s, 4, "a", "b")
			for _, j := range s.jobs.byID {
				j.spec.Budget = 500
				j.grant.NoteNeed(100)
				j.grant.Apply(&nodes.GrantReply{Slots: 4, Tokens: 10}, s.now())
			}
		}, "budget of 500 tokens", "budget of 500 tokens"},
		"units that run": {func(s *Scheduler) {
			for _, j := range s.jobs.byID {
				s.jobs.addHeld(j, 1)
			}
		}, "", ""},
	} {
		s, _, _ := newFallbackJobs(t)
		s.calls.Apply(nodes.CallsRequest{Need: 4, Most: 8}, &nodes.CallsReply{Slots: 8})
		tt.change(s)
		for id, want := range map[mapreduce.JobID]string{"both": tt.both, "alone": tt.alone} {
			if got := s.Waits(id); !strings.Contains(got, want) || (want == "") != (got == "") {
				t.Errorf("%s: %s waits for %q, want %q", name, id, got, want)
			}
		}
	}
}
