package view_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/jobs/records"
)

// TestUnitStandings: how units stand is what their records say, in each state, from anywhere and in pages of any size;
// also of a level whose units have all ended, which are not read for it.
func TestUnitStandings(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	id := w.Submit(j, &mapreduce.JobSpec{Parallelism: 20}, jobstest.Texts(12))
	s := w.Session(j)
	checkStandings(t, w, id, map[string]int{"pending": 12})

	for i, u := range w.Claim(j, id, s, 10) {
		switch i % 5 {
		case 0, 1:
			w.Report(j, jobstest.Done(id, u))
		case 2:
			w.Report(j, jobstest.Errored(id, u, protocol.PermanentUnit))
		case 3:
			w.Report(j, jobstest.Parked(id, u, "batch 7", time.Hour))
		}
	}
	checkStandings(t, w, id, map[string]int{"complete": 4, "failed": 2, "parked": 2, "processing": 2, "pending": 2})

	ended := w.Submit(j, &mapreduce.JobSpec{Parallelism: 20}, jobstest.Texts(9))
	for i, u := range w.Claim(j, ended, w.Session(j), 9) {
		if i%4 == 1 {
			w.Report(j, jobstest.Errored(ended, u, protocol.PermanentUnit))
		} else {
			w.Report(j, jobstest.Done(ended, u))
		}
	}
	checkStandings(t, w, ended, map[string]int{"complete": 7, "failed": 2})

	other := w.Submit(j, jobstest.Spec(), jobstest.Texts(5))
	w.Run(j, other)
	checkStandings(t, w, other, map[string]int{"complete": 5})
	if job := w.Job(other); job.State != mapreduce.JobComplete || job.CompletedUnits != job.TotalUnits {
		t.Fatalf("job %s is %s, with %d of %d units", other, job.State, job.CompletedUnits, job.TotalUnits)
	}
}

// checkStandings compares how the units of all levels of a job stand with their records, and how many of level 0 are in each
// state with what is wanted.
func checkStandings(t *testing.T, w *jobstest.World, id mapreduce.JobID, want map[string]int) {
	t.Helper()
	j := w.Nodes[0]
	ctl, err := j.View.Control(w.Ctx, id)
	w.Must(err)

	for level := int64(-1); level < int64(len(ctl.StageLevels())); level++ {
		units, err := j.View.UnitsFrom(w.Ctx, id, level, 0, 100)
		w.Must(err)
		said, all := make(map[string]int), []records.UnitStanding(nil)
		for _, u := range units {
			all = append(all, records.UnitStanding{ID: u.ID, Index: u.Index, UnitStanding: mapreduce.UnitStanding{State: u.State, Parked: u.Parked}})
			name := u.State.String()
			if u.Parked {
				name = "parked"
			}
			said[name]++
		}
		if diff := cmp.Diff(want, said); level == 0 && diff != "" {
			t.Errorf("states of level 0 (-want +got):\n%s", diff)
		}

		for from := range all {
			for _, limit := range []int{1, 3, 100} {
				got, err := j.View.UnitStandings(w.Ctx, id, level, all[from].Index, limit)
				w.Must(err)
				if diff := cmp.Diff(all[from:min(from+limit, len(all))], got); diff != "" {
					t.Errorf("level %d from unit %d, at most %d (-want +got):\n%s", level, from, limit, diff)
				}
			}
		}
		behind, err := j.View.UnitStandings(w.Ctx, id, level, 1<<40, 5)
		w.Must(err)
		if len(behind) > 0 {
			t.Errorf("behind the last unit of level %d: %s", level, fmt.Sprint(behind))
		}
	}
}
