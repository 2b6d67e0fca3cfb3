package review_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/jobs"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// complete returns a world of some nodes over a store, with a job that is complete.
func complete(t *testing.T, db store.Store, nodes int) (*jobstest.World, mapreduce.JobID) {
	w := jobstest.NewWorld(t, db, nodes)
	id := w.Submit(w.Nodes[0], jobstest.Spec(), jobstest.Texts(3))
	w.Run(w.Nodes[0], id)
	return w, id
}

// listed returns all decisions of a job, read in pages of two.
func listed(w *jobstest.World, id mapreduce.JobID, record mapreduce.RecordID) (all []string) {
	w.Helper()
	q := mapreduce.ListDecisionsQuery{Job: id, Record: record, PageSize: 2}
	for {
		page, next, err := w.Nodes[0].Review.List(w.Ctx, q)
		w.Must(err)
		for _, d := range page {
			all = append(all, fmt.Sprintf("%s %s %d %s", d.Record, d.Field, d.Number, mapreduce.ReviewVerdict(d.Verdict)))
		}
		if q.PageToken = next; next == "" {
			return all
		}
	}
}

// Decisions are added and kept, in the order of the records; a request makes one of them.
func TestDecide(t *testing.T) {
	w, id := complete(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	far := mapreduce.NewRecordID(1<<20, 10)
	for _, d := range []struct {
		record  mapreduce.RecordID
		field   string
		verdict mapreduce.ReviewVerdict
		request string
		number  int64
	}{
		{far, "total", mapreduce.ReviewAccept, "r1", 1},
		{"0.2", "total", mapreduce.ReviewCorrect, "r2", 1},
		{"0.2", "total", mapreduce.ReviewCorrect, "r2", 1}, // sent again
		{"0.2", "date", mapreduce.ReviewAbsent, "r2", 1},
		{"0.2", "total", mapreduce.ReviewWithdraw, "", 2},
		{"0.2", "total", mapreduce.ReviewWithdraw, "", 3}, // it has no request, so it is another
		{"0.10", "total", mapreduce.ReviewReject, "r3", 1},
	} {
		kept := w.Decide(j, id, jobstest.NewDecision(d.record, d.field, d.verdict, d.request))
		if kept.Number != d.number || kept.TimeMicros == 0 {
			t.Errorf("%s of %s, %s: decision %d at %d, want %d", d.field, d.record, d.verdict, kept.Number, kept.TimeMicros, d.number)
		}
	}

	want := []string{
		"0.2 date 1 absent", "0.2 total 1 correct", "0.2 total 2 withdraw", "0.2 total 3 withdraw", "0.10 total 1 reject", "1048576.10 total 1 accept",
	}
	if diff := cmp.Diff(want, listed(w, id, "")); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[:4], listed(w, id, "0.2")); diff != "" {
		t.Errorf("of one record (-want +got):\n%s", diff)
	}
	w.Healthy()

	// A deletion removes them, and nothing is added behind it.
	w.Must(j.Lifecycle.Delete(w.Ctx, id))
	for _, kv := range w.All() {
		if name, _, err := w.Space.Last(kv.Key); err != nil || name == "decision" {
			t.Errorf("%x is left of the job: %v", kv.Key, err)
		}
	}
	_, err := j.Review.Decide(w.Ctx, id, records.AnyEpoch, jobstest.NewDecision("0.2", "total", mapreduce.ReviewAccept, ""))
	if errs.KindOf(err) != errs.NotFound {
		t.Errorf("a decision about a job that is gone: %v", err)
	}
	w.Healthy()
}

// A job that runs, or did meanwhile, takes no decision.
func TestDecideRefused(t *testing.T) {
	w, id := complete(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	d := jobstest.NewDecision("0.0", "total", mapreduce.ReviewAccept, "r")
	if _, err := j.Review.Decide(w.Ctx, id, 1<<40, d); errs.KindOf(err) != errs.Aborted {
		t.Errorf("at another epoch: %v", err)
	}
	running := w.Submit(j, jobstest.Spec(), jobstest.Texts(3))
	if _, err := j.Review.Decide(w.Ctx, running, 1, d); errs.KindOf(err) != errs.Precondition {
		t.Errorf("while it runs: %v", err)
	}
	for _, token := range []string{"x", "zz", "é"} {
		if _, _, err := j.Review.List(w.Ctx, mapreduce.ListDecisionsQuery{Job: id, PageToken: token}); errs.KindOf(err) != errs.Invalid {
			t.Errorf("token %q: %v", token, err)
		}
	}
	if _, _, err := j.Review.List(w.Ctx, mapreduce.ListDecisionsQuery{Job: "mr_20200101_aaaaaa"}); errs.KindOf(err) != errs.NotFound {
		t.Errorf("of no job: %v", err)
	}
	if got := listed(w, id, ""); got != nil {
		t.Errorf("decisions that were refused: %v", got)
	}
}

// A decision whose commit is in doubt is stored once, as its request tells.
func TestDecideInDoubt(t *testing.T) {
	f := fault.New(jobstest.Open(t), fault.Config{})
	w, id := complete(t, f, 1)
	f.FailNext(fault.UnknownCommitted)
	if kept := w.Decide(w.Nodes[0], id, jobstest.NewDecision("0.0", "total", mapreduce.ReviewAccept, "r")); kept.Number != 1 {
		t.Errorf("decision %d", kept.Number)
	}
	if diff := cmp.Diff([]string{"0.0 total 1 accept"}, listed(w, id, "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.Healthy()
}

// Decisions that two orchestrators take at once are all kept, and numbered without gaps.
func TestDecideAtOnce(t *testing.T) {
	w, id := complete(t, jobstest.Open(t), 2)
	ctl, err := w.Nodes[0].View.Control(w.Ctx, id)
	w.Must(err)

	const each = 20
	var all sync.WaitGroup
	for n, j := range w.Nodes {
		all.Go(func() { decideMany(t, w, j, id, ctl.Epoch, n, each) })
	}
	all.Wait()

	if got := listed(w, id, ""); len(got) != 2*each || got[2*each-1] != fmt.Sprintf("0.0 total %d accept", 2*each) {
		t.Errorf("%d decisions, want %d: %v", len(got), 2*each, got)
	}
	w.Healthy()
}

func decideMany(t *testing.T, w *jobstest.World, j *jobs.Jobs, id mapreduce.JobID, epoch int64, node, n int) {
	for i := range n {
		d := jobstest.NewDecision("0.0", "total", mapreduce.ReviewAccept, fmt.Sprintf("%d-%d", node, i))
		if _, err := j.Review.Decide(w.Ctx, id, epoch, d); err != nil {
			t.Error(err)
		}
	}
}
