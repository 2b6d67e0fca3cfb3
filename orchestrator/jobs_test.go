package orchestrator_test

import (
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
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// TestUnitsWithManyInputs lists a reduce over units whose names together are
// larger than a page should be.
func TestUnitsWithManyInputs(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	const documents = 2500
	_, n := enginetest.One(t, &scripted.Agent{})
	spec := enginetest.Script(map[string]string{"script.output_bytes": "0"})
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
	n.WantEnd(job.ID, mapreduce.JobComplete)
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

// TestFailedUnits lists those units of a job that have failed, in pages of each size as the list of all its units has them.
func TestFailedUnits(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	vars := map[string]string{}
	for _, i := range []int{1, 4, 5, 9, 17} {
		vars[fmt.Sprintf("script.poison.doc-%07d", i)] = "permanent"
	}
	id := n.Submit(enginetest.Script(vars), 20)
	n.WantEnd(id, mapreduce.JobComplete)

	all, err := n.ListUnits(t.Context(), mapreduce.ListUnitsQuery{Job: id, PageSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var want []mapreduce.UnitID
	for _, u := range all.Units {
		if u.State == mapreduce.UnitFailed {
			want = append(want, u.ID)
		}
	}
	if len(want) != 5 {
		t.Errorf("%d units have failed, want 5", len(want))
	}

	for size := 1; size <= 6; size++ {
		var got []mapreduce.UnitID
		q := mapreduce.ListUnitsQuery{Job: id, States: []mapreduce.UnitState{mapreduce.UnitFailed}, PageSize: size}
		for more := true; more; more = q.PageToken != "" {
			page, err := n.ListUnits(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Units) > size {
				t.Errorf("a page of %d units, want at most %d", len(page.Units), size)
			}
			for _, u := range page.Units {
				got = append(got, u.ID)
			}
			q.PageToken = page.NextPageToken
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in pages of %d (-all +failed):\n%s", size, diff)
		}
	}
}

// TestLevelsFollowTheSizeRule runs the shapes of A10.
func TestLevelsFollowTheSizeRule(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
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
			spec := enginetest.Script(map[string]string{"script.output_bytes": fmt.Sprint(tt.outputBytes)})
			spec.ReduceContextLimit = 100 + 20*tt.documents + min(tt.outputBytes, 1)*-20*tt.documents
			if tt.outputBytes == 0 {
				spec.ReduceContextLimit = 1 << 30
			}
			id := n.Submit(spec, tt.documents)
			job := n.WantEnd(id, mapreduce.JobComplete)
			if job.TotalUnits != tt.total {
				t.Errorf("job has %d units, want %d", job.TotalUnits, tt.total)
			}
			units := n.Units(id)
			if int64(len(units)) != tt.total {
				t.Errorf("%d units are listed, want %d", len(units), tt.total)
			}
			if got := strings.Replace(enginetest.ShapeOf(t, units), "F", "final", 1); got != tt.levels {
				t.Errorf("levels are %s, want %s", got, tt.levels)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	t.Run("one unit fails, the rest is reduced", func(t *testing.T) {
		id := n.Submit(enginetest.Script(map[string]string{"script.poison.doc-0000003": "permanent"}), 10)
		job := n.WantEnd(id, mapreduce.JobComplete)
		if job.FailedUnits != 1 || job.CompletedUnits != 10 {
			t.Errorf("%d units failed, %d completed; want 1 and 10", job.FailedUnits, job.CompletedUnits)
		}
		u := n.Units(id)["doc-0000003"]
		if u.State != mapreduce.UnitFailed || len(u.Errors) == 0 || u.Attempts != 1 {
			t.Errorf("poisoned unit: %+v", u)
		}
		if l := job.Coverage.Documents; l.Mapped != 9 || l.Failed != 1 {
			t.Errorf("ledger: %+v", l)
		}
	})
	t.Run("fail-fast", func(t *testing.T) {
		spec := enginetest.Script(map[string]string{"script.poison.doc-0000003": "permanent"})
		spec.OnError = mapreduce.FailFast
		job := n.WantEnd(n.Submit(spec, 10), mapreduce.JobFailed)
		if !strings.Contains(job.Error, "doc-0000003") {
			t.Errorf("error is %q, want it to name the unit", job.Error)
		}
	})
	t.Run("A17: all units fail, no reducer runs", func(t *testing.T) {
		id := n.Submit(enginetest.Script(map[string]string{"script.permanent_rate": "1"}), 5)
		job := n.WantEnd(id, mapreduce.JobFailed)
		if job.TotalUnits != 5 || job.FailedUnits != 5 {
			t.Errorf("%d units, %d failed; want 5 and 5", job.TotalUnits, job.FailedUnits)
		}
	})
	t.Run("a unit that always fails uses up its attempts", func(t *testing.T) {
		spec := enginetest.Script(map[string]string{"script.poison.doc-0000000": "fail", "script.tokens_in": "7"})
		spec.MaxAttempts, spec.BreakerThreshold = 2, 100
		id := n.Submit(spec, 3)
		job := n.WantEnd(id, mapreduce.JobComplete)
		if u := n.Units(id)["doc-0000000"]; u.Attempts != 2 || u.State != mapreduce.UnitFailed {
			t.Errorf("unit: %+v", u)
		}
		if want := int64(7 * (2 + 1)); job.TotalTokens.In != want {
			t.Errorf("tokens in: %d, want %d", job.TotalTokens.In, want)
		}
	})
}

func TestResumeTriesFailedUnitsAgain(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	drain := c.Worker(&scripted.Agent{}, worker.Config{Slots: 8}, n)
	spec := enginetest.Script(map[string]string{
		"script.poison.doc-0000003": "permanent", "script.poison.doc-0000017": "permanent", "script.output_bytes": "500",
	})
	spec.ReduceContextLimit = 10
	id := n.Submit(spec, 30)
	before := n.WantEnd(id, mapreduce.JobComplete)
	if before.FailedUnits == 0 {
		t.Fatal("no unit failed: the test shows nothing")
	}
	drain()
	c.Worker(enginetest.Heal{Agent: &scripted.Agent{}}, worker.Config{Slots: 8}, n)
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
		t.Fatal(err)
	}
	after := n.WantEnd(id, mapreduce.JobComplete)
	if after.FailedUnits != 0 || after.CompletedUnits != 30+3+1 || after.Coverage.Documents.Mapped != 30 {
		t.Errorf("after resume: %+v", after)
	}
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); errs.KindOf(err) != errs.Precondition {
		t.Errorf("resume of a complete job: %v, want a failed precondition", err)
	}
}

func TestPauseResumeCancelDelete(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	id := n.Submit(enginetest.Script(nil), 20)
	if job, err := n.PauseJob(t.Context(), id); err != nil || job.State != mapreduce.JobPaused {
		t.Fatalf("pause: %+v, %v", job, err)
	}
	if err := n.DeleteJob(t.Context(), "mr_20000101_aaaaaa"); errs.KindOf(err) != errs.NotFound {
		t.Errorf("delete of no job: %v", err)
	}
	if job, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil || job.State != mapreduce.Mapping {
		t.Fatalf("resume: %+v, %v", job, err)
	}
	c.Worker(&scripted.Agent{}, worker.Config{Slots: 2}, n) // only now, or all might be mapped before ResumeJob looks
	n.WantEnd(id, mapreduce.JobComplete)
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
	_, n := enginetest.One(t, &scripted.Agent{})
	id := n.Submit(enginetest.Script(map[string]string{"script.latency": "1h"}), 20)
	n.Until(id, func(j *mapreduce.Job) bool { return j.RunningUnits >= 8 })
	if _, err := n.CancelJob(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	n.WantEnd(id, mapreduce.JobCancelled)
	next := n.Submit(enginetest.Script(nil), 5) // the slots are free again
	n.WantEnd(next, mapreduce.JobComplete)
	for _, u := range n.Units(id) {
		if u.State != mapreduce.UnitCancelled {
			t.Errorf("unit %s is %v", u.ID, u.State)
		}
	}
}

func TestBudgetPausesAndIsNeverOverspent(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	spec := enginetest.Script(map[string]string{"script.tokens_in": "800", "script.tokens_out": "200"})
	spec.Budget = 100_000
	spec.ReduceShare = 0.1
	id := n.Submit(spec, 200)
	job := n.WantEnd(id, mapreduce.JobPaused)
	if spent := job.TotalTokens.Total(); spent > 90_000 || spent < 50_000 {
		t.Errorf("paused after %d tokens; the map may spend 90000 of %d", spent, spec.Budget)
	}
	if !strings.Contains(job.Error, "budget") {
		t.Errorf("error %q does not name the budget", job.Error)
	}
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{Budget: 400_000}); err != nil {
		t.Fatal(err)
	}
	job = n.WantEnd(id, mapreduce.JobComplete)
	if spent := job.TotalTokens.Total(); spent != 201_000 {
		t.Errorf("spent %d tokens, want 201000: none twice", spent)
	}
}

// A budget in dollars is that of tokens, by what calls cost; and it stays in dollars.
func TestBudgetInDollarsPausesAndIsNeverOverspent(t *testing.T) {
	_, n := enginetest.One(t, &scripted.Agent{})
	spec := enginetest.Script(map[string]string{"script.tokens_in": "800", "script.tokens_out": "200", "script.cost": "700"})
	spec.Budget, spec.BudgetIn, spec.ReduceShare = 70_000, mapreduce.InDollars, 0.1
	id := n.Submit(spec, 200)

	job := n.WantEnd(id, mapreduce.JobPaused)
	if job.CostMicros > 63_000 || job.CostMicros < 50_000 {
		t.Errorf("paused after %s; the map may spend $0.063", mapreduce.DollarText(job.CostMicros))
	}
	if !strings.Contains(job.Error, "of the budget of $0.07 ") || !strings.Contains(job.Error, "--max-cost N") {
		t.Errorf("error %q does not say what is left of the budget, and how to raise it", job.Error)
	}

	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{Budget: 1_000_000}); errs.KindOf(err) != errs.Precondition {
		t.Errorf("a budget in tokens: %v, want it refused", err)
	}
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{Budget: 1_000_000, BudgetIn: mapreduce.InDollars}); err != nil {
		t.Fatal(err)
	}
	if job = n.WantEnd(id, mapreduce.JobComplete); job.CostMicros != 201*700 {
		t.Errorf("%s are paid, want $0.1407: nothing twice", mapreduce.DollarText(job.CostMicros))
	}
}

func TestWorkerThatLeavesHandsBack(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	hanging := c.Worker(&scripted.Agent{}, worker.Config{Slots: 4, DrainTimeout: 10 * time.Millisecond}, n)
	id := n.Submit(enginetest.Script(map[string]string{"script.latency": "1h"}), 4)
	n.Until(id, func(j *mapreduce.Job) bool { return j.RunningUnits == 4 })
	hanging()
	c.Worker(enginetest.Heal{Agent: &scripted.Agent{}}, worker.Config{Slots: 4}, n)
	job := n.WantEnd(id, mapreduce.JobComplete)
	if job.FailedUnits != 0 {
		t.Errorf("%d units failed", job.FailedUnits)
	}
	for _, u := range n.Units(id) {
		if u.Failures != 0 {
			t.Errorf("unit %s has %d failures; being handed back is none", u.ID, u.Failures)
		}
	}
}

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

// Workers whose orchestrator leaves take what they run to another. Nothing that
// was begun is begun again; what was on its way to a worker just then may come a
// second time.
func TestAnyNodeCarriesOn(t *testing.T) {
	c := enginetest.NewCluster(t)
	config := enginetest.Quick(orchestrator.Config{Adopt: true})
	config.Grace = 10 * time.Second
	a, b := c.Orchestrator(config), c.Orchestrator(config)
	made := enginetest.NewCounter()
	c.Worker(made, worker.Config{Slots: 4}, a, b)
	c.Worker(made, worker.Config{Slots: 4}, b, a)
	spec := enginetest.Script(map[string]string{"script.latency": "5ms", "script.output_bytes": "500"})
	spec.ReduceContextLimit = 10
	id := a.Submit(spec, 300)
	b.Until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits > 50 })
	a.Stop()
	job := b.WantEnd(id, mapreduce.JobComplete)
	if job.CompletedUnits != 300+30+3+1 || job.FailedUnits != 0 {
		t.Errorf("job: %+v", job)
	}
	made.Mu.Lock()
	defer made.Mu.Unlock()
	begun := make(map[mapreduce.UnitID]int)
	for attempt, times := range made.Begun {
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
