package orchestrator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/fakellm/batches"
)

// dueIn is batchedSpec of a job whose tiers are chosen by a deadline.
func dueIn(of seller, d time.Duration) mapreduce.JobSpec {
	spec := specOf(of)
	delete(spec.Vars, "tier")
	spec.Deadline = time.Now().Add(d)
	return spec
}

// fewSellers are all sellers, and the first of them in a short pass: hours of virtual time cost seconds.
func fewSellers() []seller {
	if testing.Short() {
		return sellers[:1]
	}
	return sellers
}

// A batch that returns in time is waited for: all of the job is half the price.
func TestDeadlineWaitsForABatch(t *testing.T) {
	testenv.Unraced(t, testenv.Alike)

	enginetest.Virtually(t, func(t *testing.T) {
		f := newVendorFleet(t, 1, 1, 1000, nil, batches.Config{Takes: func(int) time.Duration { return 40 * time.Minute }})
		f.join()
		const documents = 30
		id := f.Any().Submit(dueIn(sellers[0], time.Hour), documents)
		f.Any().Until(id, func(j *mapreduce.Job) bool { return j.ParkedUnits == documents })
		<-time.After(5 * time.Minute)
		for _, u := range f.Any().Units(id) {
			if u.Parking != nil && !strings.Contains(u.Parking.Note, "; what has not come by 2000-01-01 00:4") {
				t.Errorf("unit %s waits, and says: %s", u.ID, u.Parking.Note)
			}
		}
		job := f.Any().EndWithin(id, time.Hour)
		if job.State != mapreduce.JobComplete || job.FailedUnits > 0 {
			t.Fatalf("the job is %v with %d failed units: %s", job.State, job.FailedUnits, job.Error)
		}
		if _, calls := f.paid(); calls > 0 {
			t.Errorf("%d calls were made in real time", calls)
		}
		f.verifyMoney(id, documents)
	})
}

// A batch that does not return in time is cancelled, what it had done by then is used, the rest is made in real
// time, and the job ends by its deadline. No call is paid for twice.
func TestDeadlineBuysWhatABatchLeaves(t *testing.T) {
	testenv.Unraced(t, testenv.Alike)

	for _, of := range fewSellers() {
		t.Run(of.name, func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) {
				f := newFleetOf(t, of, 1, 1, 1000, nil, batches.Config{
					Takes: func(int) time.Duration { return 2 * time.Hour }, Cancels: 10 * time.Minute,
				})
				f.join()
				const documents = 40
				spec := dueIn(of, time.Hour)
				id := f.Any().Submit(spec, documents)
				job := f.Any().EndWithin(id, 3*time.Hour)
				if job.State != mapreduce.JobComplete || job.FailedUnits > 0 {
					t.Fatalf("the job is %v with %d failed units: %s", job.State, job.FailedUnits, job.Error)
				}
				if job.Ended.After(spec.Deadline) || job.Ended.Before(spec.Deadline.Add(-15*time.Minute)) {
					t.Errorf("the job ended %v before its deadline", spec.Deadline.Sub(job.Ended))
				}
				_, lines := f.bill()
				_, calls := f.paid()
				if lines == 0 || calls == 0 {
					t.Errorf("%d lines and %d calls were paid for", lines, calls)
				}
				f.verifyMoney(id, documents)
			})
		})
	}
}

// slowly has calls in real time take a while.
func (f *vendorFleet) slowly(takes time.Duration) {
	f.live = fakellm.New(fakellm.Config{
		Key: batchKey, Latency: func(fakellm.Call) time.Duration { return takes },
		Model: func(fakellm.Call) fakellm.Reply {
			return fakellm.Reply{Text: `{"fields":{"company":[],"total":[]},"not_found":["company","total"]}`}
		},
	})
}

// Jobs that have to be bought by the same time share the slots of the fleet, and are ended so much sooner that each is
// in time.
func TestDeadlinesOfSeveralJobs(t *testing.T) {
	testenv.Unraced(t, testenv.Alike)

	enginetest.Virtually(t, func(t *testing.T) {
		f := newVendorFleet(t, 1, 1, 1000, nil, batches.Config{Takes: func(int) time.Duration { return 20 * time.Hour }, Cancels: 10 * time.Minute})
		f.slowly(time.Minute)
		f.join()

		// How long a call takes is known by those of another job.
		before := specOf(sellers[0])
		delete(before.Vars, "tier")
		f.Any().EndWithin(f.Any().Submit(before, 2*stormSlots), time.Hour)

		const documents = 10 * stormSlots // ten minutes of the fleet
		spec := dueIn(sellers[0], 90*time.Minute)
		var ids []mapreduce.JobID
		for range 3 {
			ids = append(ids, f.Any().Submit(spec, documents))
		}
		for _, id := range ids {
			job := f.Any().EndWithin(id, 3*time.Hour)
			if job.State != mapreduce.JobComplete || job.FailedUnits > 0 {
				t.Fatalf("the job is %v with %d failed units: %s", job.State, job.FailedUnits, job.Error)
			}
			if job.Ended.After(spec.Deadline) || job.Ended.Before(spec.Deadline.Add(-45*time.Minute)) {
				t.Errorf("job %s ended %v before its deadline", id, spec.Deadline.Sub(job.Ended))
			}
		}
	})
}

// A resume gives a job that runs another deadline, and its batches are waited for by that. One that is past is refused,
// and so is one of a job that has none.
func TestDeadlineIsMoved(t *testing.T) {
	testenv.Unraced(t, testenv.Alike)

	enginetest.Virtually(t, func(t *testing.T) {
		f := newVendorFleet(t, 1, 1, 1000, nil, batches.Config{Takes: func(int) time.Duration { return 2 * time.Hour }})
		f.join()
		const documents = 20
		id := f.Any().Submit(dueIn(sellers[0], time.Hour), documents)
		f.Any().Until(id, func(j *mapreduce.Job) bool { return j.ParkedUnits == documents })

		later := time.Now().Add(4 * time.Hour).UTC()
		job, err := f.Any().ResumeJob(t.Context(), id, mapreduce.Resume{Deadline: later})
		if err != nil || !job.Spec.Deadline.Equal(later) {
			t.Fatalf("the deadline is %v (%v), want %v", job.Spec.Deadline, err, later)
		}
		if _, err := f.Any().ResumeJob(t.Context(), id, mapreduce.Resume{Deadline: time.Now().Add(-time.Hour)}); errs.KindOf(err) != errs.Invalid {
			t.Errorf("a deadline that is past: %v", err)
		}
		if job = f.Any().EndWithin(id, 4*time.Hour); job.State != mapreduce.JobComplete {
			t.Fatalf("the job is %v: %s", job.State, job.Error)
		}
		if _, calls := f.paid(); calls > 0 {
			t.Errorf("%d calls were made in real time", calls)
		}

		other := f.Any().Submit(specOf(sellers[0]), 2)
		if _, err := f.Any().ResumeJob(t.Context(), other, mapreduce.Resume{Deadline: later}); errs.KindOf(err) != errs.Precondition {
			t.Errorf("a deadline of a job that has none: %v", err)
		}
	})
}

// A job without the time for a batch is asked at once.
func TestDeadlineIsTooNearForABatch(t *testing.T) {
	testenv.Unraced(t, testenv.Alike)

	enginetest.Virtually(t, func(t *testing.T) {
		f := newVendorFleet(t, 1, 1, 1000, nil, batches.Config{})
		f.join()
		const documents = 10
		id := f.Any().Submit(dueIn(sellers[0], 15*time.Minute), documents)
		job := f.Any().EndWithin(id, 15*time.Minute)
		if job.State != mapreduce.JobComplete || f.server.Made() > 0 {
			t.Errorf("the job is %v, and %d batches were made", job.State, f.server.Made())
		}
		f.verifyMoney(id, documents)
	})
}

// A budget holds what a call costs in real time, for each line that waits: what is bought in the end is within it.
func TestDeadlineKeepsTheBudget(t *testing.T) {
	testenv.Unraced(t, testenv.Alike)

	enginetest.Virtually(t, func(t *testing.T) {
		f := newVendorFleet(t, 1, 1, 1000, nil, batches.Config{Takes: func(int) time.Duration { return 20 * time.Hour }})
		f.join()
		const documents = 12
		spec := dueIn(sellers[0], time.Hour)
		spec.Budget, spec.BudgetIn = 60_000, mapreduce.InDollars // a call may cost some 13,200 in real time, and half of it by batch
		id := f.Any().Submit(spec, documents)
		f.Any().Until(id, func(j *mapreduce.Job) bool { return j.ParkedUnits > 0 })
		<-time.After(10 * time.Minute)
		job, err := f.Any().GetJob(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if job.ParkedUnits > 4 {
			t.Errorf("%d calls wait for a batch, and the budget holds four in real time", job.ParkedUnits)
		}
		if job = f.Any().EndWithin(id, 3*time.Hour); job.State != mapreduce.JobComplete || job.FailedUnits > 0 {
			t.Fatalf("the job is %v with %d failed units: %s", job.State, job.FailedUnits, job.Error)
		}
		if job.Ended.After(spec.Deadline) {
			t.Errorf("the job ended %v after its deadline", job.Ended.Sub(spec.Deadline))
		}
		f.verifyMoney(id, documents)
	})
}

// An orchestrator that dies before or after it has batches ended, and whoever dies after that, change nothing: each
// document is answered once, and what is paid agrees with the vendor's account.
func TestSoakDeadlineStorms(t *testing.T) {
	for _, of := range fewSellers() {
		for _, point := range []failpoint.Point{failpoint.Rescue.Before(), failpoint.Rescue.After()} {
			if !testenv.VariantRuns(point == failpoint.Rescue.After()) {
				continue
			}
			for seed := range testenv.Storms(t, 1) {
				t.Run(fmt.Sprintf("%s/%s/%d", of.name, point, seed), func(t *testing.T) {
					enginetest.Virtually(t, func(t *testing.T) { deadlineStorm(t, of, point, uint64(seed)) })
				})
			}
		}
	}
}

// deadlineStorm runs a job whose batches do not all return through a storm that begins with the death of an
// orchestrator at a point.
func deadlineStorm(t *testing.T, of seller, point failpoint.Point, seed uint64) {
	random := newDie(seed)
	f := newFleetOf(t, of, seed, 2, 7, fault.Retryable(0.01), batches.Config{
		Takes:   func(n int) time.Duration { return time.Duration(1+n%4) * 15 * time.Minute },
		Cancels: 5 * time.Minute,
	})
	members := []*enginetest.Member{f.join(), f.join(), f.join()}
	const documents = 60
	spec := dueIn(of, 40*time.Minute)
	spec.Budget, spec.BudgetIn = 100_000*documents, mapreduce.InDollars
	id := f.Any().Submit(spec, documents)
	f.Any().Until(id, func(j *mapreduce.Job) bool { return j.ParkedUnits == documents })

	// The batches are ended twelve minutes before the deadline.
	f.KillAt(point)
	for died := false; !died; died = f.revive() {
		if time.Until(spec.Deadline) < 10*time.Minute {
			t.Fatalf("nobody has ended a batch %v before the deadline", time.Until(spec.Deadline))
		}
		<-time.After(time.Second)
	}
	f.KillAt("")
	for hits := 0; hits < 10 && f.runs(id); hits++ {
		f.hit(random, members)
	}

	job := f.Any().EndWithin(id, 3*time.Hour)
	f.Faults.Heal()
	f.Faults.Settle()
	if job.State != mapreduce.JobComplete || job.FailedUnits > 0 {
		t.Fatalf("the job is %v with %d failed units: %s", job.State, job.FailedUnits, job.Error)
	}
	f.verifyMoney(id, documents)
	_, lines := f.bill()
	if lines == 0 || lines == documents {
		t.Errorf("%d of %d calls went by batch", lines, documents)
	}
	t.Logf("%s: %d of %d calls by batch, ended %v before the deadline", of.name, lines, documents, spec.Deadline.Sub(job.Ended))
}

// revive starts the orchestrators that have died, and reports whether there are any.
func (f *vendorFleet) revive() (died bool) {
	for node, n := range f.Nodes {
		if n != nil && n.Gate.Dead.Load() {
			f.Stop(node, true)
			f.Start(node)
			died = true
		}
	}
	return died
}

// runs reports whether a job has not ended.
func (f *vendorFleet) runs(id mapreduce.JobID) bool {
	job, err := f.Any().GetJob(f.T.Context(), id)
	return err != nil || job.State.Running()
}
