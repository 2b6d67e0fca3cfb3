package jobs_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// TestJobsByState lists the jobs of each state in pages, as they would be found one by one,
// also where an earlier version wrote entries of the lists without states. A job whose entry
// says another state is not read.
func TestJobsByState(t *testing.T) {
	s := open(t)
	w := newWorld(t, s, 1)
	j := w.nodes[0]
	var all []mapreduce.JobID
	for i := range 12 {
		id := w.submit(j, &mapreduce.JobSpec{Tenant: mapreduce.TenantID([]string{"a", "b"}[i%2]), Parallelism: 1}, texts(1))
		all = append(all, id)
		switch i % 4 {
		case 1:
			w.must(j.Lifecycle.Pause(w.ctx, id, records.AnyEpoch, "a pause"))
		case 2:
			w.must(j.Lifecycle.Cancel(w.ctx, id))
		case 3:
			w.must(j.Lifecycle.Pause(w.ctx, id, records.AnyEpoch, "a pause"))
			w.must(j.Lifecycle.Resume(w.ctx, id, mapreduce.Resume{}))
		}
	}
	slices.Reverse(all)
	checkLists(t, w, all)

	old := func(id mapreduce.JobID) { // as an earlier version lists it
		job, err := j.View.Job(w.ctx, id)
		w.must(err)
		w.write(func(tx store.Tx) {
			tx.Set(w.space.Recent(job.Created.UnixMicro(), id), nil)
			tx.Set(w.space.Tenant(job.Spec.Tenant).Job(job.Created.UnixMicro(), id), nil)
		})
	}
	for _, id := range all[:6] {
		old(id)
	}
	checkLists(t, w, all)
	w.must(j.Lifecycle.Cancel(w.ctx, all[0])) // its entry has a state from now on
	checkLists(t, w, all)

	job, err := j.View.Job(w.ctx, all[11])
	w.must(err)
	w.write(func(tx store.Tx) {
		tx.Set(w.space.Recent(job.Created.UnixMicro(), all[11]), []byte{byte(mapreduce.JobFailed)})
	})
	page, err := j.View.List(w.ctx, mapreduce.ListJobsQuery{States: []mapreduce.JobState{job.State}, PageSize: 100})
	w.must(err)
	if slices.ContainsFunc(page.Jobs, func(found *mapreduce.Job) bool { return found.ID == job.ID }) {
		t.Error("a job is read whose entry has another state")
	}
	if found := w.sound(); len(found) == 0 {
		t.Error("doctor does not find that a list has another state of a job")
	}
}

// checkLists compares lists by states with the jobs, newest first, one by one.
func checkLists(t *testing.T, w *world, all []mapreduce.JobID) {
	t.Helper()
	states := [][]mapreduce.JobState{
		{mapreduce.Mapping}, {mapreduce.JobPaused}, {mapreduce.JobCancelled}, {mapreduce.JobComplete}, {mapreduce.Mapping, mapreduce.JobPaused}, nil,
	}
	for _, some := range states {
		for _, tenant := range []mapreduce.TenantID{"", "a", "b"} {
			var want, got []mapreduce.JobID
			for _, id := range all {
				job, err := w.look.View.Job(w.ctx, id)
				w.must(err)
				if (len(some) == 0 || slices.Contains(some, job.State)) && (tenant == "" || tenant == job.Spec.Tenant) {
					want = append(want, id)
				}
			}
			q := mapreduce.ListJobsQuery{Tenant: tenant, States: some, PageSize: 2}
			for range 20 {
				page, err := w.look.View.List(w.ctx, q)
				w.must(err)
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
