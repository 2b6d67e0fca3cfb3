package schedule

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/schedule/workers"
	"github.com/coditect/mapreduce/store/jobs/records"
)

func nobodyWatches(mapreduce.JobID) int64 { return 0 }

// bind puts a worker of a tenant on a scheduler, which holds unit "u" of each job.
func bind(s *Scheduler, tenant mapreduce.TenantID, holds ...mapreduce.JobID) *workers.Session {
	session := workers.NewSession(&protocol.Hello{Session: "w", Slots: 8, Offer: mapreduce.Offer{Providers: []string{"rules"}}}, tenant, 1, false, quietPeer{})
	s.Sessions.Enter(session, nil)
	for _, id := range holds {
		session.Hold(id, &records.Unit{ID: "u", Attempt: 2}, &workers.Claim{Left: 2}, false)
	}
	return session
}

// What is known of the job of a report decides whether the store is asked, and whether the
// report is taken.
func TestStandingOfReportedJobs(t *testing.T) {
	for name, tt := range map[string]struct {
		tenant mapreduce.TenantID
		job    mapreduce.JobID
		want   JobStanding
		held   bool
	}{
		"a unit that it holds":                               {"", "held", KnownJob, true},
		"a unit that it does not hold":                       {"", "here", KnownJob, false},
		"a job that is not here":                             {"", "none", UnknownJob, false},
		"a unit of its tenant that it holds":                 {"t", "held", KnownJob, true},
		"a unit of its tenant that it does not hold":         {"t", "here", KnownJob, false},
		"a unit of a job that is not here and whose it is":   {"t", "none", UnknownJob, false},
		"a unit of another tenant that it held before":       {"other", "held", ForeignJob, true},
		"a unit of another tenant":                           {"other", "here", ForeignJob, false},
		"a unit that it holds of a job that does not run":    {"t", "ended", UnknownJob, true},
		"one that serves all, of a job that does not run":    {"", "ended", KnownJob, true},
		"one that serves all, of a job that is not here now": {"", "none", UnknownJob, false},
	} {
		s := testScheduler()
		runnable(s, "held")
		runnable(s, "here")
		s.jobs.stop(runnable(s, "ended"))
		session := bind(s, tt.tenant, "held", "ended")

		rep := protocol.Report{Job: tt.job, Unit: "u", Attempt: 2}
		got := s.Sessions.Receive(session, &protocol.FromWorker{Reports: []protocol.Report{rep}}, nobodyWatches)
		if d := cmp.Diff([]Reported{{Job: tt.want, Held: tt.held}}, got.Reports); d != "" {
			t.Errorf("%s: -want +got:\n%s", name, d)
		}

		// What ends the worker from here on is not blamed on what it has reported, and
		// nothing that is refused counts as ended.
		h := session.Attempt(protocol.Held{Job: tt.job, Unit: "u", Attempt: 2})
		if h != nil && h.HasEnded() != (tt.want == KnownJob) {
			t.Errorf("%s: that its attempt has ended is %t", name, h.HasEnded())
		}
	}
}

// Reports are entered once they were checked, and what is said beside them with them; what
// comes without reports is entered at once.
func TestAMessageIsEnteredOnce(t *testing.T) {
	testenv.Raced(t)

	s := testScheduler()
	j := runnable(s, "j")
	session := bind(s, "", "j")
	started := []protocol.Held{{Job: "j", Unit: "u", Attempt: 2}, {Job: "j", Unit: "u", Attempt: 1}}

	m := &protocol.FromWorker{Reports: []protocol.Report{{Job: "j", Unit: "u", Attempt: 2}}, Started: started, Drain: true}
	got := s.Sessions.Receive(session, m, nobodyWatches)
	if !slices.Equal(got.Suspects, started[:1]) {
		t.Errorf("suspected: %v, want the attempt that it holds and that is not the first", got.Suspects)
	}
	if len(j.turns.reports) != 0 || s.workers.Count().Draining != 0 {
		t.Error("a report is entered before it was checked")
	}

	s.Sessions.EnterChecked(session, m)
	if c := s.workers.Count(); len(j.turns.reports) != 1 || c.Draining != 1 || c.Busy != 0 {
		t.Errorf("%d reports of one, %d slots are busy, %d drain", len(j.turns.reports), c.Busy, c.Draining)
	}

	idle := bind(s, "")
	if s.Sessions.Receive(idle, &protocol.FromWorker{Drain: true}, nobodyWatches); s.workers.Count().Draining != 1 {
		t.Error("a message without reports is not entered at once")
	}
}
