package orchestrator_test

import (
	"bytes"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/failpoint"
	modelsteps "github.com/coditect/mapreduce/worker/agent/model/steps"
	"github.com/coditect/mapreduce/worker/llm/fakellm"
	"github.com/coditect/mapreduce/worker/llm/fakellm/batches"
	"github.com/coditect/mapreduce/worker/step"
	steps "github.com/coditect/mapreduce/worker/step/cascade"
	"github.com/coditect/mapreduce/worker/step/rules"
)

// invoice is the schema of documents whose total rules read, and of some of them wrongly.
const invoice = `
title: invoice
type: object
properties:
  total: {type: integer, x-coditect: {labels: [total]}}
`

// truth is what the model reads of an invoice.
var truth = regexp.MustCompile(`truth: (\d+)`)

// readTruth answers as the model does that knows an invoice.
func readTruth(c fakellm.Call) fakellm.Reply {
	found := truth.FindStringSubmatch(c.Prompt())
	if found == nil {
		return fakellm.Reply{Text: `{"fields":{"total":[]},"not_found":[{"field":"total","reason":"it is not there"}]}`}
	}
	return fakellm.Reply{Text: fmt.Sprintf(`{"fields":{"total":[{"value":%s,"quotes":["%s"],"confidence":1}]},"not_found":[]}`, found[1], found[1])}
}

// invoices returns documents, one in so many with a total that is not true.
func invoices(n, wrong int) (docs map[string]string, order []string) {
	docs = make(map[string]string, n)
	for i := range n {
		id, total := fmt.Sprintf("invoice-%04d", i), 1000+i
		if i%wrong == 3 {
			total += 7000
		}
		docs[id] = fmt.Sprintf("An invoice.\ntotal: %d\ntruth: %d\n", total, 1000+i)
		order = append(order, id)
	}
	return docs, order
}

// ascends has the workers of a fleet run cascades that begin with rules and end with its vendor's model.
func (f *vendorFleet) ascends() {
	all, byRules := step.NewRegistry(), rules.New()
	all.Provide(rules.Provider, byRules)
	all.Provide(mapreduce.Provider{Name: f.seller.name, Models: true}, step.Table{step.Extract: modelsteps.Of(f.agent), step.Merge: byRules[step.Merge]})
	steps.Add(all)

	table := step.Table{step.Merge: byRules[step.Merge]}
	table[step.Extract], _ = all.Lookup(step.Extract, f.seller.name)
	f.Counter.Agent = table
}

// A cascade whose last member answers by batch asks it of no document twice, and comes to the same decision,
// wherever orchestrators and workers die; what it saves is told by what batches cost.
func TestCascadeByBatch(t *testing.T) {
	testenv.Unraced(t, testenv.Alike)
	cascadeByBatch(t, "", failpoint.Tell.After())
}

// The same holds at each point of the path.
func TestCascadeByBatchAtEachPoint(t *testing.T) {
	testenv.Lengthy(t)
	cascadeByBatch(t, "", failpoint.Judge.Before(), failpoint.Judge.After(), failpoint.Certify.After(), failpoint.Ask.After(),
		failpoint.Group.After(), failpoint.Tell.Before())
}

// cascadeByBatch runs the job once for each point at which an orchestrator dies.
func cascadeByBatch(t *testing.T, points ...failpoint.Point) {
	t.Helper()
	docs, order := invoices(120, 50)
	var decided string
	for _, point := range points {
		t.Run("killed at "+string(point), func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) {
				f := newVendorFleet(t, 1, 2, 1000, nil, batches.Config{Takes: func(int) time.Duration { return time.Minute }, Model: readTruth})
				f.ascends()
				member := f.join()
				spec := batchedSpec()
				spec.Schema = enginetest.Extracting(t, invoice).Schema
				spec.Vars["cascade"], spec.Vars["cascade_target"], spec.Vars["cascade_seed"] = "rules,"+f.seller.name+"/"+f.seller.model, "0.8", "7"
				f.KillAt(point)
				job, err := f.Any().SubmitJob(t.Context(), spec, enginetest.Texts(docs, order...))
				if err != nil {
					t.Fatal(err)
				}
				f.mourn(job.ID, member, point)

				job = f.Any().EndWithin(job.ID, 12*time.Hour)
				if job.State != mapreduce.JobComplete || job.FailedUnits > 0 {
					t.Fatalf("the job is %v with %d failed units: %s", job.State, job.FailedUnits, job.Error)
				}
				trial, err := f.Any().Jobs.Cascade.Trial(t.Context(), job.ID, 0)
				if err != nil || trial == nil || !trial.Decided || trial.Accepted == 0 {
					t.Fatalf("the trial is %+v, %v", trial, err)
				}
				f.verifyMoney(job.ID, len(docs)-int(trial.Accepted))
				if trial.Priced != trial.Drawn || trial.OracleCostMicros == 0 {
					t.Errorf("of %d units that were compared the cost is known of %d: %d", trial.Drawn, trial.Priced, trial.OracleCostMicros)
				}

				result := f.Any().Result(job.ID)
				if !bytes.Contains(result.Summary.Cascades, []byte(`"saved_usd":`)) {
					t.Errorf("the result does not say what was saved: %s", result.Summary.Cascades)
				}
				if came := fmt.Sprint(trial.Drawn, trial.Accepted, trial.Verdicts); decided == "" {
					decided = came
				} else if came != decided {
					t.Errorf("it was decided %s, and undisturbed %s", came, decided)
				}
			})
		})
	}
}

// mourn waits until an orchestrator has died at a point, if that is one, and has it and the worker replaced.
func (f *vendorFleet) mourn(id mapreduce.JobID, member *enginetest.Member, point failpoint.Point) {
	if point == "" {
		return
	}
	for range 10_000 {
		for i := range f.Nodes {
			if n := f.Node(i); n != nil && n.Gate.Dead.Load() {
				f.Stop(i, true)
				f.Start(i)
				f.Kill(member)
				f.join()
				return
			}
		}
		<-time.After(50 * time.Millisecond)
	}
	f.T.Errorf("nobody came by %s of job %s", point, id)
}
