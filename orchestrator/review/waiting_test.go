package review_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/step"
	steps "github.com/coditect/mapreduce/worker/step/review"
	"github.com/coditect/mapreduce/worker/step/rules"
)

// Records are named by the units that made them, whose numbers have room between them for what documents
// are cut into: those of the first three documents are 0, 1048576 and 2097152.

// keyed is a schema of orders, whose records are merged by their number: of several totals the one that
// most say counts.
const keyed = `
title: order
type: object
x-coditect: {key: [order]}
properties:
  order: {type: string, x-coditect: {labels: [ORDER]}}
  city: {type: string, x-coditect: {labels: [CITY]}}
  total: {type: number, x-coditect: {labels: [TOTAL]}}
`

// A paid runner finds values by rules, for a price, and counts how often it is asked about a unit.
type paid struct {
	rules step.Runner

	mu    sync.Mutex // guards asked
	asked map[mapreduce.UnitID]int
}

// Run implements step.Runner.
func (p *paid) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	_, err := calls.Do(ctx, "answer", func(ctx context.Context) ([]byte, error) {
		if err := calls.Reserve(ctx, 110, 2_000); err != nil {
			return nil, err
		}
		p.mu.Lock()
		p.asked[task.Unit]++
		p.mu.Unlock()
		calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: 100, Out: 10}, CostMicros: 2_000})
		return []byte("asked"), nil
	})
	if err != nil {
		return nil, err
	}
	return p.rules.Run(ctx, task, calls)
}

// once fails the test if a unit was paid for more than once.
func (p *paid) once(t *testing.T, units int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for unit, times := range p.asked {
		if times != 1 {
			t.Errorf("%s was paid %d times", unit, times)
		}
	}
	if len(p.asked) != units {
		t.Errorf("%d units were paid, want %d", len(p.asked), units)
	}
}

// reviewFleet is orchestrators, and a worker whose units wait for people where their stage says so.
func reviewFleet(t *testing.T, nodes int) (*enginetest.Fleet, *paid, *enginetest.Member) {
	t.Helper()
	f := enginetest.NewFleet(t, 1, nodes, fault.Rates{}, enginetest.Steady())
	byRules := rules.New()
	p := &paid{rules: byRules[step.Extract], asked: make(map[mapreduce.UnitID]int)}
	f.Works, f.Counter.Agent = "strong", step.Table{step.Extract: steps.New(p), step.Merge: byRules[step.Merge]}
	return f, p, f.Join(worker.Config{Slots: 1, Prefetch: 1})
}

// waitingJob returns a job whose values wait.
func waitingJob(t *testing.T, schema, when string) mapreduce.JobSpec {
	t.Helper()
	spec := enginetest.Extracting(t, schema)
	spec.Provider, spec.Model, spec.Vars = "strong", "m", map[string]string{"review": when}
	return spec
}

// submitted returns a job once so many of its units wait.
func submitted(t *testing.T, n *enginetest.Node, spec mapreduce.JobSpec, parked int64, order ...string) mapreduce.JobID {
	t.Helper()
	job, err := n.SubmitJob(t.Context(), spec, enginetest.Texts(documents, order...))
	if err != nil {
		t.Fatal(err)
	}
	n.Until(job.ID, func(j *mapreduce.Job) bool { return j.ParkedUnits == parked })
	return job.ID
}

// queue returns the units that wait, by their documents' numbers, and the records as they were found.
func queue(t *testing.T, n *enginetest.Node, id mapreduce.JobID) (units []*mapreduce.WaitingUnit, found map[mapreduce.RecordID]map[string]any) {
	t.Helper()
	found = make(map[mapreduce.RecordID]map[string]any)
	err := mapreduce.EachWaiting(t.Context(), n.Client, id, func(u *mapreduce.WaitingUnit) error {
		units = append(units, u)
		for _, p := range u.Parts {
			if p.Record == nil {
				continue
			}
			var r map[string]any
			if err := json.Unmarshal(p.Record, &r); err != nil {
				return err
			}
			found[p.RecordID] = r
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return units, found
}

// valuesOf returns the values that wait, and why.
func valuesOf(units []*mapreduce.WaitingUnit) (all []string) {
	for _, u := range units {
		for _, v := range u.Values {
			all = append(all, fmt.Sprint(v.Record, " ", v.Field, " ", v.Why))
		}
	}
	return all
}

// A unit with values that wait is not reported before each is decided about. What comes after it has the
// values as they were decided, and says what was found.
func TestUnitsWaitForPeople(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		f, p, _ := reviewFleet(t, 1)
		n := f.Any()
		id := submitted(t, n, waitingJob(t, keyed, "all"), 3, "a.txt", "b.txt", "c.txt")
		units, found := queue(t, n, id)
		want := []string{
			"0.0 order all", "0.0 city all", "0.0 total all", "1048576.0 order all", "1048576.0 city all", "1048576.0 total all", "2097152.0 order all", "2097152.0 city all", "2097152.0 total all",
		}
		if diff := cmp.Diff(want, valuesOf(units)); diff != "" {
			t.Fatalf("values that wait (-want +got):\n%s", diff)
		}
		if found["1048576.0"]["total"] != 7.0 || units[0].Role != mapreduce.Reviewer {
			t.Errorf("found %v, for %s", found["1048576.0"], units[0].Role)
		}
		for _, u := range n.Units(id) {
			if u.Parking == nil || u.Parking.Note != "3 values to be decided by a person (reviewer): order, city, total" {
				t.Errorf("%s waits for %+v", u.ID, u.Parking)
			}
			_, err := n.WakeUnit(t.Context(), id, u.ID, u.Parking.Handle, []byte(`{"decided":[]}`))
			if errs.KindOf(err) != errs.Precondition {
				t.Errorf("woken by a call: %v", err)
			}
		}
		for _, token := range []string{strings.Repeat("x", 1<<20), strings.Repeat("\x00", 1500)} {
			_, err := n.Orch.ListWaiting(t.Context(), ann, mapreduce.ListWaitingQuery{Job: id, PageToken: token})
			if errs.KindOf(err) != errs.Invalid {
				t.Errorf("a page after a name of %d bytes: %v", len(token), err)
			}
		}
		if got := n.Collect(id, true); len(got.Records) > 0 {
			t.Errorf("reported before they were decided about: %v", got.Records)
		}

		// The person says that the second document is of the first order, with another total.
		decide(t, n, mapreduce.NewDecision{Job: id, Record: "1048576.0", Field: "order", Verdict: mapreduce.ReviewCorrect, Value: []byte(`"A-1"`)})
		decide(t, n, mapreduce.NewDecision{Job: id, Record: "1048576.0", Field: "total", Verdict: mapreduce.ReviewCorrect, Value: []byte(`7.2`), Passage: marked("b.txt", "7.20"), Note: "paid", Model: []byte("7")})
		for _, d := range []struct {
			record, field string
			verdict       mapreduce.ReviewVerdict
		}{
			{"1048576.0", "city", mapreduce.ReviewAbsent},
			{"0.0", "order", mapreduce.ReviewAccept},
			{"0.0", "city", mapreduce.ReviewAccept},
			{"0.0", "total", mapreduce.ReviewReject},
			{"2097152.0", "order", mapreduce.ReviewAccept},
			{"2097152.0", "city", mapreduce.ReviewAbsent},
			{"2097152.0", "total", mapreduce.ReviewReject},
			{"2097152.0", "total", mapreduce.ReviewWithdraw},
		} {
			decide(t, n, mapreduce.NewDecision{Job: id, Record: mapreduce.RecordID(d.record), Field: d.field, Verdict: d.verdict})
			if d.field == "total" && d.record == "2097152.0" {
				break
			}
		}

		if job := n.EndWithin(id, time.Hour); job.State != mapreduce.JobComplete || job.ParkedUnits != 0 {
			t.Fatalf("the job is %v: %s", job.State, job.Error)
		}
		p.once(t, 3)
		got := n.Result(id)
		wantRows(t, got, "A-1 Köln 7.2", "C-3 <nil> <nil>")
		if want := (mapreduce.ReviewCount{Accepted: 3, Corrected: 1, Rejected: 1, Absent: 1}); *got.Summary.Reviewed != want {
			t.Errorf("counted %+v, want %+v", *got.Summary.Reviewed, want)
		}
		entry := got.Records[0]["_reviewed"].(map[string]any)["total"].(map[string]any)
		if entry["verdict"] != "correct" || entry["by"] != "ann" || entry["model"] != 7.0 || entry["note"] != "paid" || entry["confidence"] == nil {
			t.Errorf("what stood there: %v", entry)
		}
		if cites := entry["citations"].([]any); got.Citations[cites[0].(string)].Quote != "7" {
			t.Errorf("the passage of what stood there: %v", cites)
		}
		ref := got.Records[0]["_citations"].(map[string]any)["total"].([]any)[0].(string)
		if c := got.Citations[ref]; c == nil || c.Quote != "7.20" || c.Unit == "" {
			t.Errorf("the passage of the correction: %+v", c)
		}

		// Decided again, the value is as the last one says, and what was found at first is what was found.
		if _, err := n.Orch.DecideValue(t.Context(), ann, mapreduce.NewDecision{Job: id, Record: "0.0", Field: "total", Verdict: mapreduce.ReviewAccept}); err != nil {
			t.Fatal(err)
		}
		decide(t, n, mapreduce.NewDecision{Job: id, Record: "0.0", Field: "total", Verdict: mapreduce.ReviewCorrect, Value: []byte("8")})
		again := n.Result(id)
		wantRows(t, again, "A-1 Köln 8", "C-3 <nil> <nil>")
		if entry := again.Records[0]["_reviewed"].(map[string]any)["total"].(map[string]any); entry["model"] != 7.0 || *again.Summary.Reviewed != *got.Summary.Reviewed {
			t.Errorf("decided again: %v, counted %+v", entry, *again.Summary.Reviewed)
		}
		decide(t, n, mapreduce.NewDecision{Job: id, Record: "0.0", Field: "total", Verdict: mapreduce.ReviewWithdraw})
		if diff := cmp.Diff(got.Records, n.Result(id).Records); diff != "" {
			t.Errorf("withdrawn (-before +after):\n%s", diff)
		}
		_, err := n.Orch.DecideValue(t.Context(), ann, mapreduce.NewDecision{Job: id, Record: "2097152.0", Field: "order", Verdict: mapreduce.ReviewWithdraw})
		if errs.KindOf(err) != errs.Precondition || !strings.Contains(err.Error(), "all that followed has it") {
			t.Errorf("withdrawing what the output has: %v", err)
		}
		n.Sound()
	})
}

// What does not fit is refused and keeps the unit waiting, and so is whoever has not the role.
func TestWaitingRefuses(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		f, _, _ := reviewFleet(t, 1)
		n := f.Any()
		spec := waitingJob(t, keyed, "all")
		spec.Vars["review_by"] = "admin"
		id := submitted(t, n, spec, 2, "b.txt", "c.txt")

		for name, tt := range map[string]struct {
			by     mapreduce.Role
			change func(*mapreduce.NewDecision)
			kind   errs.Kind
			want   string
		}{
			"an operator":           {mapreduce.Operator, func(*mapreduce.NewDecision) {}, errs.Denied, "the role admin"},
			"no such record":        {mapreduce.Admin, func(d *mapreduce.NewDecision) { d.Record = "0.9" }, errs.NotFound, "no record"},
			"no such unit":          {mapreduce.Admin, func(d *mapreduce.NewDecision) { d.Record = "9.0" }, errs.Precondition, "its unit waits for nobody"},
			"no such field":         {mapreduce.Admin, func(d *mapreduce.NewDecision) { d.Field = "totl" }, errs.Invalid, "no field of the schema"},
			"no number":             {mapreduce.Admin, func(d *mapreduce.NewDecision) { d.Value = []byte(`"much"`) }, errs.Invalid, "value"},
			"another value by now":  {mapreduce.Admin, func(d *mapreduce.NewDecision) { d.Model = []byte("8") }, errs.Precondition, "another value by now"},
			"a document of another": {mapreduce.Admin, func(d *mapreduce.NewDecision) { d.Passage = marked("c.txt", "3") }, errs.Invalid, "passage"},
			"nothing to accept": {mapreduce.Admin, func(d *mapreduce.NewDecision) {
				*d = mapreduce.NewDecision{Job: id, Record: "0.0", Field: "city", Verdict: mapreduce.ReviewAccept}
			}, errs.Invalid, "no value to accept"},
			"a passage behind the text": {mapreduce.Admin, func(d *mapreduce.NewDecision) { d.Passage.ByteEnd = 2000 }, errs.Invalid, "has 54 bytes"},
		} {
			d := mapreduce.NewDecision{Job: id, Record: "0.0", Field: "total", Verdict: mapreduce.ReviewCorrect, Value: []byte("7.2"), Passage: marked("b.txt", "7.20")}
			tt.change(&d)
			_, err := n.Orch.DecideValue(t.Context(), mapreduce.Principal{Name: "bob", Roles: []mapreduce.Role{tt.by}}, d)
			if errs.KindOf(err) != tt.kind || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %q", name, err, tt.want)
			}
		}
		if page, err := n.ListDecisions(t.Context(), mapreduce.ListDecisionsQuery{Job: id}); err != nil || len(page.Decisions) > 0 {
			t.Errorf("decisions that were refused: %+v, %v", page, err)
		}
		if units, _ := queue(t, n, id); len(units) != 2 {
			t.Errorf("%d units wait", len(units))
		}

		// A job that was paused takes decisions, and one that has ended none.
		if _, err := n.PauseJob(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		decide(t, n, mapreduce.NewDecision{Job: id, Record: "0.0", Field: "total", Verdict: mapreduce.ReviewAccept})
		if _, err := n.CancelJob(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		_, err := n.Orch.DecideValue(t.Context(), ann, mapreduce.NewDecision{Job: id, Record: "0.0", Field: "order", Verdict: mapreduce.ReviewAccept})
		if errs.KindOf(err) != errs.Precondition || !strings.Contains(err.Error(), "cancelled") {
			t.Errorf("about a job that was cancelled: %v", err)
		}
		if units, _ := queue(t, n, id); len(units) > 0 {
			t.Errorf("%d units of a job that was cancelled wait", len(units))
		}
		n.Sound()
	})
}

// Only values for which there is a reason wait, and units without such a value end at once.
func TestReasonsToWait(t *testing.T) {
	for _, tt := range []struct {
		when string
		want []string
	}{
		{"missing", nil}, // the schema requires none
		{"confidence < 0.01", nil},
		{"unverified, conflict, fuzzy", nil},
		{"confidence < 1", []string{"0.0 order doubtful", "0.0 city doubtful", "0.0 total doubtful", "1048576.0 order doubtful", "1048576.0 total doubtful"}},
		{"sample 100%", []string{"0.0 order sample", "0.0 city sample", "0.0 total sample", "1048576.0 order sample", "1048576.0 city sample", "1048576.0 total sample"}},
	} {
		t.Run(tt.when, func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) {
				f, p, _ := reviewFleet(t, 1)
				n := f.Any()
				if tt.want == nil {
					_, got := n.Run(waitingJob(t, keyed, tt.when), enginetest.Texts(documents, "a.txt", "b.txt"))
					if len(got.Records) != 2 || got.Summary.Reviewed != nil {
						t.Errorf("the result has %d records, %+v", len(got.Records), got.Summary.Reviewed)
					}
				} else {
					id := submitted(t, n, waitingJob(t, keyed, tt.when), 2, "a.txt", "b.txt")
					units, _ := queue(t, n, id)
					if diff := cmp.Diff(tt.want, valuesOf(units)); diff != "" {
						t.Errorf("values that wait (-want +got):\n%s", diff)
					}
				}
				p.once(t, 2)
			})
		})
	}
}

// Whoever dies, and wherever: each decision is there, no value is paid twice, and the result is as if nobody
// had died.
func TestWaitingOutlivesKills(t *testing.T) {
	testenv.Raced(t)

	for _, point := range []failpoint.Point{
		failpoint.Decide.Before(), failpoint.Decide.After(), failpoint.Turn.Before(), failpoint.Turn.After(),
	} {
		t.Run(string(point), func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) {
				f, p, first := reviewFleet(t, 1)
				id := submitted(t, f.Any(), waitingJob(t, keyed, "sample 100%"), 2, "a.txt", "b.txt")
				f.Kill(first) // which holds nothing: what was found is in the store
				f.Join(worker.Config{Slots: 2, Prefetch: 1})

				for i, d := range []mapreduce.NewDecision{
					{Record: "0.0", Field: "order", Verdict: mapreduce.ReviewAccept},
					{Record: "0.0", Field: "city", Verdict: mapreduce.ReviewAccept},
					{Record: "0.0", Field: "total", Verdict: mapreduce.ReviewCorrect, Value: []byte("12.25")},
					{Record: "1048576.0", Field: "order", Verdict: mapreduce.ReviewAccept},
					{Record: "1048576.0", Field: "city", Verdict: mapreduce.ReviewAbsent},
					{Record: "1048576.0", Field: "total", Verdict: mapreduce.ReviewReject},
				} {
					d.Job, d.Request = id, mapreduce.RequestID(fmt.Sprint("r", i))
					if i == 2 || i == 5 {
						f.KillAt(point) // with the last decision of a unit, or with what follows from it
					}
					insist(t, f, d)
				}
				if f.KillAt(""); f.Node(0).Gate.Dead.Load() {
					f.Stop(0, true)
					f.Start(0)
				}

				n := f.Any()
				if job := n.EndWithin(id, time.Hour); job.State != mapreduce.JobComplete || job.CostMicros != 4_000 {
					t.Fatalf("the job is %v, and has cost %d: %s", job.State, job.CostMicros, job.Error)
				}
				if f.HasPassed(point) == 0 {
					t.Errorf("nobody has passed %s", point)
				}
				p.once(t, 2)
				wantRows(t, n.Result(id), "A-1 Köln 12.25", "B-2 <nil> <nil>")
				page, err := n.ListDecisions(t.Context(), mapreduce.ListDecisionsQuery{Job: id})
				if err != nil || len(page.Decisions) != 6 {
					t.Errorf("%d decisions are kept: %v", len(page.Decisions), err)
				}
				n.Sound()
			})
		})
	}
}

// insist decides about a value until somebody has taken it, whoever dies of it.
func insist(t *testing.T, f *enginetest.Fleet, d mapreduce.NewDecision) {
	t.Helper()
	for range 20 {
		n := f.Node(0)
		ctx, cancel := context.WithCancel(t.Context())
		stop := time.AfterFunc(10*time.Second, cancel) // of virtual time: a dead one says nothing
		_, err := n.Orch.DecideValue(ctx, ann, d)
		stop.Stop()
		cancel()
		if err == nil && !n.Gate.Dead.Load() {
			return
		}
		if n.Gate.Dead.Load() {
			f.Stop(0, true)
			f.Start(0)
		} else if err != nil {
			t.Fatalf("%s of %s: %v", d.Field, d.Record, err)
		}
	}
	t.Fatal("nobody has taken the decision")
}

// timedJob returns a job whose values wait for six minutes.
func timedJob(t *testing.T, then string) mapreduce.JobSpec {
	t.Helper()
	spec := waitingJob(t, keyed, "all")
	spec.Vars["review_within"], spec.Vars["review_then"] = "6m", then
	return spec
}

// When the time to wait is over, values stay as they were found; what was decided before counts. A restart does not
// begin the time anew.
func TestTimeToWaitIsOver(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		f, p, _ := reviewFleet(t, 1)
		began := time.Now()
		id := submitted(t, f.Any(), timedJob(t, "accept"), 2, "a.txt", "c.txt")
		decide(t, f.Any(), mapreduce.NewDecision{Job: id, Record: "0.0", Field: "total", Verdict: mapreduce.ReviewCorrect, Value: []byte("99")})

		time.Sleep(3 * time.Minute) //nolint:forbidigo // of virtual time
		f.Stop(0, true)
		f.Start(0)
		n := f.Any()
		if job := n.EndWithin(id, time.Hour); job.State != mapreduce.JobComplete {
			t.Fatalf("the job is %v: %s", job.State, job.Error)
		}
		if took := time.Since(began); took < 6*time.Minute || took > 8*time.Minute {
			t.Errorf("the units have waited for %v", took)
		}

		p.once(t, 2)
		got := n.Result(id)
		wantRows(t, got, "A-1 Köln 99", "C-3 <nil> 3")
		if want := (mapreduce.ReviewCount{Corrected: 1}); *got.Summary.Reviewed != want {
			t.Errorf("counted %+v, want %+v", *got.Summary.Reviewed, want)
		}
		n.Sound()
	})
}

// A unit whose time is over fails if its stage says so. A resume has it wait as long again, and it ends with what is
// decided then; nothing is paid for twice.
func TestTimeToWaitFails(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		f, p, _ := reviewFleet(t, 1)
		n := f.Any()
		id := submitted(t, n, timedJob(t, "fail"), 2, "a.txt", "c.txt")
		for _, field := range []string{"order", "city", "total"} {
			decide(t, n, mapreduce.NewDecision{Job: id, Record: "0.0", Field: field, Verdict: mapreduce.ReviewAccept})
		}
		n.Until(id, func(j *mapreduce.Job) bool { return j.FailedUnits == 1 })
		failed := n.Units(id)[mapreduce.MapUnit("c.txt")]
		if len(failed.Errors) != 1 || !strings.Contains(failed.Errors[0], "nobody has decided about 3 values") {
			t.Errorf("the unit says %q", failed.Errors)
		}

		n.EndWithin(id, time.Hour)
		resumed := time.Now()
		if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
			t.Fatal(err)
		}
		n.Until(id, func(j *mapreduce.Job) bool { return j.ParkedUnits == 1 })
		if took := time.Since(resumed); took > time.Minute {
			t.Errorf("it waits again after %v", took)
		}
		for field, verdict := range map[string]mapreduce.ReviewVerdict{"order": mapreduce.ReviewAccept, "city": mapreduce.ReviewAbsent, "total": mapreduce.ReviewReject} {
			decide(t, n, mapreduce.NewDecision{Job: id, Record: "1048576.0", Field: field, Verdict: verdict})
		}
		if job := n.EndWithin(id, time.Hour); job.State != mapreduce.JobComplete || job.FailedUnits != 0 {
			t.Fatalf("the job is %v: %s", job.State, job.Error)
		}
		p.once(t, 2)
		wantRows(t, n.Result(id), "A-1 Köln 12.5", "C-3 <nil> <nil>")
		n.Sound()
	})
}
