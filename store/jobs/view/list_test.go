package view_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// TestJobsByState lists the jobs of each state in pages, as they would be found one by one,
// also where an earlier version wrote entries of the lists without states. A job whose entry
// says another state is not read.
func TestJobsByState(t *testing.T) {
	s := jobstest.Open(t)
	w := jobstest.NewWorld(t, s, 1)
	j := w.Nodes[0]
	var all []mapreduce.JobID
	for i := range 12 {
		id := w.Submit(j, &mapreduce.JobSpec{Tenant: mapreduce.TenantID([]string{"a", "b"}[i%2]), Parallelism: 1}, jobstest.Texts(1))
		all = append(all, id)
		switch i % 4 {
		case 1:
			w.Must(j.Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "a pause"))
		case 2:
			w.Must(j.Lifecycle.Cancel(w.Ctx, id))
		case 3:
			w.Must(j.Lifecycle.Pause(w.Ctx, id, records.AnyEpoch, "a pause"))
			w.Must(j.Lifecycle.Resume(w.Ctx, id, mapreduce.Resume{}))
		}
	}
	slices.Reverse(all)
	checkLists(t, w, all)

	old := func(id mapreduce.JobID) { // as an earlier version lists it
		job, err := j.View.Job(w.Ctx, id)
		w.Must(err)
		w.Write(func(tx store.Tx) {
			tx.Set(w.Space.Recent(job.Created.UnixMicro(), id), nil)
			tx.Set(w.Space.Tenant(job.Spec.Tenant).Job(job.Created.UnixMicro(), id), nil)
		})
	}
	for _, id := range all[:6] {
		old(id)
	}
	checkLists(t, w, all)
	w.Must(j.Lifecycle.Cancel(w.Ctx, all[0])) // its entry has a state from now on
	checkLists(t, w, all)

	job, err := j.View.Job(w.Ctx, all[11])
	w.Must(err)
	w.Write(func(tx store.Tx) {
		tx.Set(w.Space.Recent(job.Created.UnixMicro(), all[11]), []byte{byte(mapreduce.JobFailed)})
	})
	page, err := j.View.List(w.Ctx, mapreduce.ListJobsQuery{States: []mapreduce.JobState{job.State}, PageSize: 100})
	w.Must(err)
	if slices.ContainsFunc(page.Jobs, func(found *mapreduce.Job) bool { return found.ID == job.ID }) {
		t.Error("a job is read whose entry has another state")
	}
	if found := w.Sound(); len(found) == 0 {
		t.Error("doctor does not find that a list has another state of a job")
	}
}

// checkLists compares lists by states with the jobs, newest first, one by one.
func checkLists(t *testing.T, w *jobstest.World, all []mapreduce.JobID) {
	t.Helper()
	states := [][]mapreduce.JobState{
		{mapreduce.Mapping}, {mapreduce.JobPaused}, {mapreduce.JobCancelled}, {mapreduce.JobComplete}, {mapreduce.Mapping, mapreduce.JobPaused}, nil,
	}
	for _, some := range states {
		for _, tenant := range []mapreduce.TenantID{"", "a", "b"} {
			var want, got []mapreduce.JobID
			for _, id := range all {
				job, err := w.Look.View.Job(w.Ctx, id)
				w.Must(err)
				if (len(some) == 0 || slices.Contains(some, job.State)) && (tenant == "" || tenant == job.Spec.Tenant) {
					want = append(want, id)
				}
			}
			q := mapreduce.ListJobsQuery{Tenant: tenant, States: some, PageSize: 2}
			for range 20 {
				page, err := w.Look.View.List(w.Ctx, q)
				w.Must(err)
				for _, job := range page.Jobs {
					got = append(got, job.ID)
				}
				if q.PageToken = page.NextPageToken; q.PageToken == "" {
					break
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("jobs of tenant %q in %v (-want +got):\n%s", tenant, some, diff)
			}
		}
	}
}
