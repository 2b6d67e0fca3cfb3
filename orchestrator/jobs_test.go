package orchestrator_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// one returns a cluster of one orchestrator and one worker.
func one(t *testing.T, a *scripted.Agent) (*testCluster, *node) {
	t.Helper()
	c := newCluster(t)
	n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
	c.worker(a, worker.Config{Slots: 8, Prefetch: 4}, n)
	return c, n
}

// units returns all units of a job, by id.
func (n *node) units(id mapreduce.JobID) map[mapreduce.UnitID]*mapreduce.Unit {
	n.t.Helper()
	all := make(map[mapreduce.UnitID]*mapreduce.Unit)
	q := mapreduce.ListUnitsQuery{Job: id, PageSize: 7, Inputs: true}
	var begun *mapreduce.Unit // goes on with the next page
	for {
		page, err := n.ListUnits(n.t.Context(), q)
		if err != nil {
			n.t.Fatal(err)
		}
		for _, u := range page.Units {
			if begun != nil && begun.ID == u.ID {
				u.DependsOn = append(begun.DependsOn, u.DependsOn...)
			} else if all[u.ID] != nil {
				n.t.Errorf("unit %s is listed twice", u.ID)
			}
			all[u.ID], begun = u, nil
			if u.Continues {
				begun = u
			}
		}
		if q.PageToken = page.NextPageToken; q.PageToken == "" {
			return all
		}
	}
}

// TestUnitsWithManyInputs lists a reduce over units whose names together are
// larger than a page should be.
func TestUnitsWithManyInputs(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	const documents = 2500
	_, n := one(t, &scripted.Agent{})
	spec := script(map[string]string{"script.output_bytes": "0"})
	spec.ReduceContextLimit = 1 << 30
	name := func(i int) mapreduce.DocumentID {
		return mapreduce.DocumentID(fmt.Sprintf("%0*d", mapreduce.MaxDocumentID, i))
	}
	job, err := n.SubmitJob(t.Context(), spec, func(yield func(*mapreduce.Document, error) bool) {
		for i := range documents {
			if !yield(&mapreduce.Document{ID: name(i), Content: []byte("text")}, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	n.wantEnd(job.ID, mapreduce.JobComplete)
	q := mapreduce.ListUnitsQuery{Job: job.ID, PageSize: 1000, Inputs: true}
	var got []mapreduce.UnitID
	parts := 0
	for more := true; more; more = q.PageToken != "" {
		page, err := n.ListUnits(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range page.Units {
			if u.ID == mapreduce.FinalUnit {
				got = append(got, u.DependsOn...)
				parts++
			}
		}
		q.PageToken = page.NextPageToken
	}
	want := make([]mapreduce.UnitID, documents)
	for i := range want {
		want[i] = mapreduce.MapUnit(name(i))
	}
	if diff := cmp.Diff(want, got); diff != "" || parts < 2 {
		t.Errorf("listed in %d parts, want several; inputs (-want +got):\n%.2000s", parts, diff)
	}
}

// TestLevelsFollowTheSizeRule runs the shapes of A10.
func TestLevelsFollowTheSizeRule(t *testing.T) {
	_, n := one(t, &scripted.Agent{})
	for _, tt := range []struct {
		documents   int
		total       int64
		levels      string
		outputBytes int
	}{
		{1, 2, "1 final", 2000},
		{10, 11, "10 final", 2000},
		{11, 14, "11 2 final", 2000},
		{100, 111, "100 10 final", 2000},
		{101, 115, "101 11 2 final", 2000},
		{101, 102, "101 final", 0},
	} {
		t.Run(fmt.Sprintf("%d documents of %d bytes", tt.documents, tt.outputBytes), func(t *testing.T) {
			spec := script(map[string]string{"script.output_bytes": fmt.Sprint(tt.outputBytes)})
			spec.ReduceContextLimit = 100 + 20*tt.documents + min(tt.outputBytes, 1)*-20*tt.documents
			if tt.outputBytes == 0 {
				spec.ReduceContextLimit = 1 << 30
			}
			id := n.submit(spec, tt.documents)
			job := n.wantEnd(id, mapreduce.JobComplete)
			if job.TotalUnits != tt.total {
				t.Errorf("job has %d units, want %d", job.TotalUnits, tt.total)
			}
			units := n.units(id)
			if int64(len(units)) != tt.total {
				t.Errorf("%d units are listed, want %d", len(units), tt.total)
			}
			if got := strings.Replace(shapeOf(t, units), "F", "final", 1); got != tt.levels {
				t.Errorf("levels are %s, want %s", got, tt.levels)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	_, n := one(t, &scripted.Agent{})
	t.Run("one unit fails, the rest is reduced", func(t *testing.T) {
		id := n.submit(script(map[string]string{"script.poison.doc-0000003": "permanent"}), 10)
		job := n.wantEnd(id, mapreduce.JobComplete)
		if job.FailedUnits != 1 || job.CompletedUnits != 10 {
			t.Errorf("%d units failed, %d completed; want 1 and 10", job.FailedUnits, job.CompletedUnits)
		}
		u := n.units(id)["doc-0000003"]
		if u.State != mapreduce.UnitFailed || len(u.Errors) == 0 || u.Attempts != 1 {
			t.Errorf("poisoned unit: %+v", u)
		}
		if l := job.Coverage.Documents; l.Mapped != 9 || l.Failed != 1 {
			t.Errorf("ledger: %+v", l)
		}
	})
	t.Run("fail-fast", func(t *testing.T) {
		spec := script(map[string]string{"script.poison.doc-0000003": "permanent"})
		spec.OnError = mapreduce.FailFast
		job := n.wantEnd(n.submit(spec, 10), mapreduce.JobFailed)
		if !strings.Contains(job.Error, "doc-0000003") {
			t.Errorf("error is %q, want it to name the unit", job.Error)
		}
	})
	t.Run("A17: all units fail, no reducer runs", func(t *testing.T) {
		id := n.submit(script(map[string]string{"script.permanent_rate": "1"}), 5)
		job := n.wantEnd(id, mapreduce.JobFailed)
		if job.TotalUnits != 5 || job.FailedUnits != 5 {
			t.Errorf("%d units, %d failed; want 5 and 5", job.TotalUnits, job.FailedUnits)
		}
	})
	t.Run("a unit that always fails uses up its attempts", func(t *testing.T) {
		spec := script(map[string]string{"script.poison.doc-0000000": "fail", "script.tokens_in": "7"})
		spec.MaxAttempts, spec.BreakerThreshold = 2, 100
		id := n.submit(spec, 3)
		job := n.wantEnd(id, mapreduce.JobComplete)
		if u := n.units(id)["doc-0000000"]; u.Attempts != 2 || u.State != mapreduce.UnitFailed {
			t.Errorf("unit: %+v", u)
		}
		if want := int64(7 * (2 + 1)); job.TotalTokens.In != want {
			t.Errorf("tokens in: %d, want %d", job.TotalTokens.In, want)
		}
	})
}

func TestResumeTriesFailedUnitsAgain(t *testing.T) {
	c := newCluster(t)
	n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
	drain := c.worker(&scripted.Agent{}, worker.Config{Slots: 8}, n)
	spec := script(map[string]string{
		"script.poison.doc-0000003": "permanent", "script.poison.doc-0000017": "permanent", "script.output_bytes": "500",
	})
	spec.ReduceContextLimit = 10
	id := n.submit(spec, 30)
	before := n.wantEnd(id, mapreduce.JobComplete)
	if before.FailedUnits == 0 {
		t.Fatal("no unit failed: the test shows nothing")
	}
	drain()
	c.worker(heal{&scripted.Agent{}}, worker.Config{Slots: 8}, n)
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
		t.Fatal(err)
	}
	after := n.wantEnd(id, mapreduce.JobComplete)
	if after.FailedUnits != 0 || after.CompletedUnits != 30+3+1 || after.Coverage.Documents.Mapped != 30 {
		t.Errorf("after resume: %+v", after)
	}
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); errs.KindOf(err) != errs.Precondition {
		t.Errorf("resume of a complete job: %v, want a failed precondition", err)
	}
}

func TestPauseResumeCancelDelete(t *testing.T) {
	c := newCluster(t)
	n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
	id := n.submit(script(nil), 20)
	if job, err := n.PauseJob(t.Context(), id); err != nil || job.State != mapreduce.JobPaused {
		t.Fatalf("pause: %+v, %v", job, err)
	}
	if err := n.DeleteJob(t.Context(), "mr_20000101_aaaaaa"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("delete of no job: %v", err)
	}
	if job, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil || job.State != mapreduce.Mapping {
		t.Fatalf("resume: %+v, %v", job, err)
	}
	c.worker(&scripted.Agent{}, worker.Config{Slots: 2}, n) // only now, or all might be mapped before ResumeJob looks
	n.wantEnd(id, mapreduce.JobComplete)
	if _, err := n.CancelJob(t.Context(), id); errs.KindOf(err) != errs.Precondition {
		t.Errorf("cancel of a complete job: %v", err)
	}
	if err := n.DeleteJob(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := n.GetJob(t.Context(), id); errs.KindOf(err) != errs.NotFound {
		t.Errorf("after delete: %v", err)
	}
}

func TestCancelStopsWhatRuns(t *testing.T) {
	_, n := one(t, &scripted.Agent{})
	id := n.submit(script(map[string]string{"script.latency": "1h"}), 20)
	n.until(id, func(j *mapreduce.Job) bool { return j.RunningUnits >= 8 })
	if _, err := n.CancelJob(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	n.wantEnd(id, mapreduce.JobCancelled)
	next := n.submit(script(nil), 5) // the slots are free again
	n.wantEnd(next, mapreduce.JobComplete)
	for _, u := range n.units(id) {
		if u.State != mapreduce.UnitCancelled {
			t.Errorf("unit %s is %v", u.ID, u.State)
		}
	}
}

var errEnough = errors.New("seen enough")

// until watches a job until seen is true of it.
func (n *node) until(id mapreduce.JobID, seen func(*mapreduce.Job) bool) {
	n.t.Helper()
	err := n.WatchJob(n.t.Context(), id, func(j *mapreduce.Job) error {
		if seen(j) {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		n.t.Fatalf("watch ended with %v", err)
	}
}

func TestBudgetPausesAndIsNeverOverspent(t *testing.T) {
	_, n := one(t, &scripted.Agent{})
	spec := script(map[string]string{"script.tokens_in": "800", "script.tokens_out": "200"})
	spec.Budget = 100_000
	spec.ReduceShare = 0.1
	id := n.submit(spec, 200)
	job := n.wantEnd(id, mapreduce.JobPaused)
	if spent := job.TotalTokens.Total(); spent > 90_000 || spent < 50_000 {
		t.Errorf("paused after %d tokens; the map may spend 90000 of %d", spent, spec.Budget)
	}
	if !strings.Contains(job.Error, "budget") {
		t.Errorf("error %q does not name the budget", job.Error)
	}
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{Budget: 400_000}); err != nil {
		t.Fatal(err)
	}
	job = n.wantEnd(id, mapreduce.JobComplete)
	if spent := job.TotalTokens.Total(); spent != 201_000 {
		t.Errorf("spent %d tokens, want 201000: none twice", spent)
	}
}

func TestWorkerThatLeavesHandsBack(t *testing.T) {
	c := newCluster(t)
	n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
	hanging := c.worker(&scripted.Agent{}, worker.Config{Slots: 4, DrainTimeout: 10 * time.Millisecond}, n)
	id := n.submit(script(map[string]string{"script.latency": "1h"}), 4)
	n.until(id, func(j *mapreduce.Job) bool { return j.RunningUnits == 4 })
	hanging()
	c.worker(heal{&scripted.Agent{}}, worker.Config{Slots: 4}, n)
	job := n.wantEnd(id, mapreduce.JobComplete)
	if job.FailedUnits != 0 {
		t.Errorf("%d units failed", job.FailedUnits)
	}
	for _, u := range n.units(id) {
		if u.Failures != 0 {
			t.Errorf("unit %s has %d failures; being handed back is none", u.ID, u.Failures)
		}
	}
}

func TestRequestIDMakesSubmissionIdempotent(t *testing.T) {
	_, n := one(t, &scripted.Agent{})
	spec := script(nil)
	spec.RequestID = "same"
	var ids [8]mapreduce.JobID
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() { ids[i] = n.submit(spec, 700) })
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("submissions made %s and %s", ids[0], id)
		}
	}
	// A client that was interrupted before it had the answer asks for its job so.
	if job, err := n.SubmitJob(t.Context(), spec, documents(0)); err != nil || job.ID != ids[0] {
		t.Errorf("without documents: %+v, %v; want %s", job, err, ids[0])
	}
	n.wantEnd(ids[0], mapreduce.JobComplete)
	page, err := n.ListJobs(t.Context(), mapreduce.ListJobsQuery{})
	if err != nil || len(page.Jobs) != 1 {
		t.Errorf("list: %+v, %v; want one job", page, err)
	}
}

// Workers whose orchestrator leaves take what they run to another. Nothing that
// was begun is begun again; what was on its way to a worker just then may come a
// second time.
func TestAnyNodeCarriesOn(t *testing.T) {
	c := newCluster(t)
	config := quick(orchestrator.Config{Adopt: true})
	config.Grace = 10 * time.Second
	a, b := c.orchestrator(config), c.orchestrator(config)
	made := newCounter()
	c.worker(made, worker.Config{Slots: 4}, a, b)
	c.worker(made, worker.Config{Slots: 4}, b, a)
	spec := script(map[string]string{"script.latency": "5ms", "script.output_bytes": "500"})
	spec.ReduceContextLimit = 10
	id := a.submit(spec, 300)
	b.until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits > 50 })
	a.stop()
	job := b.wantEnd(id, mapreduce.JobComplete)
	if job.CompletedUnits != 300+30+3+1 || job.FailedUnits != 0 {
		t.Errorf("job: %+v", job)
	}
	made.mu.Lock()
	defer made.mu.Unlock()
	begun := make(map[mapreduce.UnitID]int)
	for attempt, times := range made.begun {
		begun[attempt.Unit] += times
	}
	for unit, times := range begun {
		if times != 1 {
			t.Errorf("unit %s was begun %d times: its worker never stopped", unit, times)
		}
	}
	if len(begun) != 334 {
		t.Errorf("%d units were begun, want 334", len(begun))
	}
}
