package review_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/step"
	"github.com/coditect/mapreduce/worker/step/cascade"
	steps "github.com/coditect/mapreduce/worker/step/review"
	"github.com/coditect/mapreduce/worker/step/rules"
)

// judgedFleet is an orchestrator, and a worker whose cascades begin with rules, and whose units wait for people.
func judgedFleet(t *testing.T) (*enginetest.Fleet, *paid) {
	t.Helper()
	f := enginetest.NewFleet(t, 1, 1, fault.Rates{}, enginetest.Steady())
	all, byRules := step.NewRegistry(), rules.New()
	p := &paid{rules: byRules[step.Extract], asked: make(map[mapreduce.UnitID]int)}
	all.Provide(rules.Provider, byRules)
	all.Provide(mapreduce.Provider{Name: "strong", Models: true}, step.Table{step.Extract: p, step.Merge: byRules[step.Merge]})
	cascade.Add(all)
	steps.Add(all)

	table := step.Table{step.Merge: byRules[step.Merge]}
	table[step.Extract], _ = all.Lookup(step.Extract, "strong")
	f.Works, f.Counter.Agent = "strong", table
	f.Join(worker.Config{Slots: 2, Prefetch: 2})
	return f, p
}

// TestPeopleJudgeCascades has a person answer for the units that a cascade draws: the last member is not asked about these, and what the
// person says is what is right.
func TestPeopleJudgeCascades(t *testing.T) {
	for _, tt := range []struct {
		name    string
		wrong   func(i int) bool // of the totals that rules find
		accepts bool
	}{
		{"nearly all is right", func(i int) bool { return i%25 == 20 }, true},
		{"half is wrong", func(i int) bool { return i%2 == 0 }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) {
				f, p := judgedFleet(t)
				n := f.Any()
				docs, order := make(map[string]string), []string(nil)
				for i := range 80 {
					name := fmt.Sprintf("%03d.txt", i)
					docs[name], order = fmt.Sprintf("ORDER: A-%d\nCITY: Bonn\nTOTAL: %d\n", i, 100+i), append(order, name)
				}
				spec := waitingJob(t, keyed, "compared")
				spec.Vars["cascade"], spec.Vars["cascade_target"], spec.Vars["cascade_seed"] = "rules,strong/m", "0.8", "7"
				job, err := n.SubmitJob(t.Context(), spec, enginetest.Texts(docs, order...))
				if err != nil {
					t.Fatal(err)
				}

				decided, corrected := judge(t, n, job.ID, tt.wrong)
				trial, err := n.Jobs.Cascade.Trial(t.Context(), job.ID, 0)
				if err != nil || trial == nil || !trial.Decided {
					t.Fatalf("trial %+v, %v", trial, err)
				}
				if trial.Drawn != int64(decided) || decided+len(p.asked)+int(trial.Accepted) != 80 {
					t.Errorf("a person has decided about %d units of %d that were drawn; %d were asked of the last member, and %d are accepted", decided, trial.Drawn, len(p.asked), trial.Accepted)
				}
				if accepts := trial.Accepted > 20; accepts != tt.accepts || corrected == 0 {
					t.Errorf("%d are accepted, after %d were decided about and %d corrected", trial.Accepted, decided, corrected)
				}

				result := n.Result(job.ID)
				if got := result.Summary.Reviewed; len(result.Records) != 80 || got.Corrected != int64(corrected) {
					t.Errorf("%d records, and %+v, want %d corrections", len(result.Records), got, corrected)
				}
				n.Sound()
			})
		})
	}
}

// judge has a person decide about units as they come to wait, until the job ends: of those that are wrong they type another total.
func judge(t *testing.T, n *enginetest.Node, id mapreduce.JobID, wrong func(i int) bool) (units, corrected int) {
	t.Helper()
	for {
		enginetest.Pass(t, 200*time.Millisecond)
		if job, err := n.GetJob(t.Context(), id); err != nil || job.State.Ended() {
			if err != nil || job.State != mapreduce.JobComplete {
				t.Fatalf("the job is %+v, %v", job, err)
			}
			return units, corrected
		}

		waiting, _ := queue(t, n, id)
		for _, u := range waiting {
			units++
			for _, v := range u.Values {
				d := mapreduce.NewDecision{Job: id, Record: v.Record, Field: v.Field, Verdict: mapreduce.ReviewAccept}
				unit, _, _ := v.Record.Parse()
				if i := int(unit >> 20); v.Field == "total" && wrong(i) {
					d.Verdict, d.Value = mapreduce.ReviewCorrect, fmt.Append(nil, 7+i)
					corrected++
				}
				if v.Why != "compared" {
					t.Errorf("%s of record %s waits as %s", v.Field, v.Record, v.Why)
				}
				decide(t, n, d)
			}
		}
	}
}
