package ingest_test

import (
	"sync"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

func TestRequestIDMakesSubmissionIdempotent(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	spec := enginetest.Script(nil)
	spec.RequestID = "same"
	var ids [8]mapreduce.JobID
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() { ids[i] = n.Submit(spec, 700) })
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("submissions made %s and %s", ids[0], id)
		}
	}
	// A client that was interrupted before it had the answer asks for its job so.
	if job, err := n.SubmitJob(t.Context(), spec, enginetest.Documents(0)); err != nil || job.ID != ids[0] {
		t.Errorf("without documents: %+v, %v; want %s", job, err, ids[0])
	}
	n.WantEnd(ids[0], mapreduce.JobComplete)
	page, err := n.ListJobs(t.Context(), mapreduce.ListJobsQuery{})
	if err != nil || len(page.Jobs) != 1 {
		t.Errorf("list: %+v, %v; want one job", page, err)
	}
}
