package jobs_test

import (
	"strings"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
)

// A lost worker held a unit that has brought down two, and another whose record is damaged:
// the first is set aside, the second ends the job, and its events tell of both.
func TestAUnitSetAsideWithADamagedOne(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	id := w.submit(j, spec(), texts(2))
	for death := range 2 {
		s := w.session(j)
		running := make(map[mapreduce.Held]bool)
		for _, u := range w.claim(j, id, s, 2) {
			running[mapreduce.Held{Job: id, Unit: u.ID, Attempt: int(u.Attempt)}] = true
		}
		if death == 1 {
			w.write(func(tx store.Tx) { tx.Set(w.space.Job(id).Unit("doc-00001"), []byte("\xffdamaged")) })
		}
		if _, err := j.Sessions.Expire(w.ctx, s.id, j.Node(), s.epoch, running); err != nil {
			t.Fatal(err)
		}
	}
	if u := w.unit(id, "doc-00000"); u.State != mapreduce.UnitFailed {
		t.Errorf("the unit that has brought down two workers is %s", u.State)
	}
	job := w.job(id)
	if job.State != mapreduce.JobFailed || !strings.Contains(job.Error, "corrupt") {
		t.Errorf("the job is %s: %q", job.State, job.Error)
	}
	page, err := j.Audit.List(w.ctx, mapreduce.ListEventsQuery{Job: id, PageSize: 100})
	w.must(err)
	var failed, aside bool
	for _, e := range page.Checkpoints {
		failed = failed || e.Kind == mapreduce.EventState && e.State == mapreduce.JobFailed && e.Message == job.Error
		for _, u := range e.Failed {
			aside = aside || u.Unit == "doc-00000"
		}
	}
	if !failed || !aside {
		t.Errorf("of %d events one tells of the failure: %v; of the unit that was set aside: %v", len(page.Checkpoints), failed, aside)
	}
}
