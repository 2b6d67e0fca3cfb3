package queue_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/queue"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// That workers are lost while they run a unit is held against no unit, however often it
// happens and whatever is known of it. From the second time on the unit is to run alone, also
// after a report, and after a resume.
func TestLostWorkersAreNoEvidence(t *testing.T) {
	const deaths = 30
	for name, tc := range map[string]struct {
		known bool // which units ran
		ran   bool // if that is known: this one
		said  bool // it was noted in the store that it had begun
		alone int  // after so many losses it is to run alone; 0 is never
	}{
		"it ran":               {known: true, ran: true, alone: 2},
		"it ran and was noted": {known: true, ran: true, said: true, alone: 2},
		"it waited for a slot": {known: true},
		"nobody knows, and its attempts were noted": {said: true, alone: 2},
		"nobody knows": {alone: 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := jobstest.NewWorld(t, jobstest.Open(t), 1)
			j := w.Nodes[0]
			id := w.Submit(j, jobstest.Spec(), jobstest.Texts(1))
			for death := range deaths {
				s := w.Session(j)
				claimed := w.Claim(j, id, s, 1)
				if len(claimed) != 1 {
					t.Fatalf("after %d losses the unit is not claimed", death)
				}
				u := claimed[0]
				if want := tc.alone > 0 && death >= tc.alone; u.MustBeAlone() != want {
					t.Errorf("after %d losses the unit is to be alone: %v, want %v", death, u.MustBeAlone(), want)
				}
				held := protocol.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)}
				if tc.said {
					w.Must(j.Sessions.Started(w.Ctx, []protocol.Held{held}))
				}
				var running map[protocol.Held]bool
				if tc.known {
					running = map[protocol.Held]bool{held: tc.ran}
				}
				loss, err := j.Sessions.Expire(w.Ctx, s.ID, j.Node(), s.Epoch, running)
				w.Must(err)
				if loss.Units != 1 || !loss.Done || fmt.Sprint(loss.Jobs) != fmt.Sprintf("[%s]", id) {
					t.Errorf("loss %d is %+v, want one unit of %s", death, loss, id)
				}
				if u := w.Unit(id, string(u.ID)); u.State != mapreduce.Pending || u.Failures != 0 || len(u.Errors) > 0 {
					t.Fatalf("after %d losses the unit is %s with %d failures: %v", death+1, u.State, u.Failures, u.Errors)
				}
			}

			s := w.Session(j)
			u := w.Claim(j, id, s, 1)[0]
			w.Turn(j, &queue.Turn{Job: id, Reports: []queue.Report{{Report: jobstest.Errored(id, u, protocol.PermanentUnit), Session: s.ID}}})
			w.Must(j.Lifecycle.Fail(w.Ctx, id, records.AnyEpoch, "nothing came of it"))
			w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
			if u := w.Unit(id, string(u.ID)); u.State != mapreduce.Pending || u.MustBeAlone() != (tc.alone > 0) {
				t.Errorf("after a resume the unit is %s, and to be alone: %v, want %v", u.State, u.MustBeAlone(), tc.alone > 0)
			}
			w.Healthy()
		})
	}
}

// A lost worker held a unit that waits again, and another whose record is damaged: that ends
// the job.
func TestALostUnitBesideADamagedOne(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, jobstest.Spec(), jobstest.Texts(2))
	s := w.Session(j)
	running := make(map[protocol.Held]bool)
	for _, u := range w.Claim(j, id, s, 2) {
		running[protocol.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)}] = true
	}
	w.Write(func(tx store.Tx) { tx.Set(w.Space.Job(id).Unit("doc-00001"), []byte("\xffdamaged")) })
	if _, err := j.Sessions.Expire(w.Ctx, s.ID, j.Node(), s.Epoch, running); err != nil {
		t.Fatal(err)
	}
	if u := w.Unit(id, "doc-00000"); u.State != mapreduce.Pending {
		t.Errorf("the unit whose record is whole is %s", u.State)
	}
	job := w.Job(id)
	if job.State != mapreduce.JobFailed || !strings.Contains(job.Error, "corrupt") {
		t.Errorf("the job is %s: %q", job.State, job.Error)
	}
	page, err := j.Audit.List(w.Ctx, mapreduce.ListEventsQuery{Job: id, PageSize: 100})
	w.Must(err)
	failed := false
	for _, e := range page.Checkpoints {
		failed = failed || e.Kind == mapreduce.EventState && e.State == mapreduce.JobFailed && e.Message == job.Error
	}
	if !failed {
		t.Errorf("none of %d events tells of the failure", len(page.Checkpoints))
	}
}
