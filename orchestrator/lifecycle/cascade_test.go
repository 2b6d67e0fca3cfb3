package lifecycle_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/store/failpoint"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/step"
	steps "github.com/coditect/mapreduce/worker/step/cascade"
	"github.com/coditect/mapreduce/worker/step/rules"
)

// bill is the schema of documents about which rules, which read the total, are right where the
// document says the same twice. Some have no date, so that rules are less sure of them.
const bill = `
title: bill
type: object
properties:
  total: {type: integer, x-coditect: {labels: [total]}}
  day: {type: string, format: date, x-coditect: {labels: [day]}}
`

// bills returns documents, and of each the total that is true.
func bills(n int, wrong func(i int) bool) (docs map[string]string, order []string) {
	docs = make(map[string]string, n)
	for i := range n {
		id := fmt.Sprintf("bill-%04d", i)
		total := 100 + i
		if wrong(i) {
			total += 7
		}
		docs[id] = fmt.Sprintf("A bill.\ntotal: %d\nday: 2026-01-%02d\ntruth: %d\n", total, 1+i%28, 100+i)
		order = append(order, id)
	}
	return docs, order
}

// An expensive runner knows the truth, and counts how often it is asked about a unit.
type expensive struct {
	rules step.Runner

	mu    sync.Mutex // guards asked
	asked map[mapreduce.UnitID]int
}

// Run implements step.Runner. It is rules that look at the right line.
func (e *expensive) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	_, err := calls.Do(ctx, "answer", func(ctx context.Context) ([]byte, error) {
		if err := calls.Reserve(ctx, 110, 2_000); err != nil {
			return nil, err
		}
		e.mu.Lock()
		e.asked[task.Unit]++
		e.mu.Unlock()
		calls.Spent(mapreduce.Charge{Tokens: mapreduce.Tokens{In: 100, Out: 10}, CostMicros: 2_000})
		return []byte("asked"), nil
	})
	if err != nil {
		return nil, err
	}

	own, spec := *task, *task.Spec
	spec.Schema = bytes.ReplaceAll(spec.Schema, []byte(`"labels":["total"]`), []byte(`"labels":["truth"]`))
	own.Spec = &spec
	return e.rules.Run(ctx, &own, calls)
}

// ascending are runners of the provider strong, whose extractor is the last member of cascades
// that begin with rules.
func ascending() (step.Table, *expensive) {
	all, byRules := step.NewRegistry(), rules.New()
	last := &expensive{rules: byRules[step.Extract], asked: make(map[mapreduce.UnitID]int)}

	all.Provide(rules.Provider, byRules)
	all.Provide(mapreduce.Provider{Name: "strong", Models: true}, step.Table{step.Extract: last, step.Merge: byRules[step.Merge]})
	steps.Add(all)

	t := step.Table{step.Merge: byRules[step.Merge]}
	t[step.Extract], _ = all.Lookup(step.Extract, "strong")
	return t, last
}

// cascading returns a job with a cascade.
func cascading(t *testing.T, vars map[string]string) mapreduce.JobSpec {
	t.Helper()
	spec := enginetest.Extracting(t, bill)
	spec.Provider, spec.Model, spec.Vars = "strong", "m", map[string]string{"cascade": "rules,strong/m", "cascade_seed": "7"}
	maps.Copy(spec.Vars, vars)
	return spec
}

// cascadeFleet is orchestrators, and workers of the provider strong.
func cascadeFleet(t *testing.T, nodes int) (*enginetest.Fleet, *expensive) {
	t.Helper()
	f := enginetest.NewFleet(t, 1, nodes, fault.Rates{}, enginetest.Steady())
	runners, last := ascending()
	f.Works, f.Counter.Agent = "strong", runners
	f.Join(worker.Config{Slots: 4, Prefetch: 4})
	return f, last
}

// An outcome is what came of a cascade: its decision, and which units were accepted.
type outcome struct {
	drawn, accepted int64
	units           []int64 // accepted
	asked           []mapreduce.UnitID
}

func outcomeOf(t *testing.T, n *enginetest.Node, id mapreduce.JobID, last *expensive) outcome {
	t.Helper()
	trial, err := n.Jobs.Cascade.Trial(t.Context(), id, 0)
	if err != nil || trial == nil || !trial.Decided {
		t.Fatalf("trial %v, %v", trial, err)
	}
	units, err := n.Jobs.Cascade.TrialUnits(t.Context(), id, 0, trial)
	if err != nil {
		t.Fatal(err)
	}

	o := outcome{drawn: trial.Drawn, accepted: trial.Accepted}
	for _, u := range units {
		if u.Accepted {
			o.units = append(o.units, u.Index)
		}
	}
	last.mu.Lock()
	defer last.mu.Unlock()
	o.asked = slices.Sorted(maps.Keys(last.asked))
	return o
}

// TestCascade accepts the answers of rules where they are certified, asks for the rest, and
// pays for no answer that it does not use.
func TestCascade(t *testing.T) {
	for _, tt := range []struct {
		name     string
		docs     int
		wrong    func(i int) bool
		vars     map[string]string
		accepted bool
	}{
		{"rules are nearly always right", 300, func(i int) bool { return i%100 == 3 }, map[string]string{"cascade_target": "0.9"}, true},
		{"per record", 300, func(i int) bool { return i%100 == 3 }, map[string]string{"cascade_target": "0.9", "cascade_per": "record"}, true},
		{"rules are often wrong", 120, func(i int) bool { return i%2 == 0 }, map[string]string{"cascade_target": "0.9"}, false},
		{"one document", 1, func(int) bool { return true }, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) {
				f, last := cascadeFleet(t, 1)
				docs, order := bills(tt.docs, tt.wrong)
				id, result := f.Any().Run(cascading(t, tt.vars), enginetest.Texts(docs, order...))

				got := outcomeOf(t, f.Any(), id, last)
				if len(got.asked)+int(got.accepted) != tt.docs {
					t.Errorf("%d units are accepted, and %d were asked about, of %d", got.accepted, len(got.asked), tt.docs)
				}
				if tt.accepted != (int(got.accepted) > tt.docs/2) {
					t.Errorf("%d of %d units are accepted, after %d labels", got.accepted, tt.docs, got.drawn)
				}
				for unit, times := range last.asked {
					if times > 1 {
						t.Errorf("%s was paid %d times", unit, times)
					}
				}

				job, err := f.Any().GetJob(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				if want := int64(len(got.asked)) * 2_000; job.CostMicros != want || job.ParkedUnits != 0 || len(result.Records) != tt.docs {
					t.Errorf("the job has cost %d, want %d; %d units are parked; it has %d records", job.CostMicros, want, job.ParkedUnits, len(result.Records))
				}
				if want := fmt.Sprintf(`"labels":%d,"accepted":%d,`, got.drawn, got.accepted); !bytes.Contains(result.Summary.Cascades, []byte(want)) {
					t.Errorf("the result says %s, want %s", result.Summary.Cascades, want)
				}
				result.Cited(t, docs)
				f.Any().Sound()
			})
		})
	}
}

// TestCascadesGoOnWhereTheyWere kills an orchestrator at each point of a trial. Whoever goes
// on comes to the same draws and the same decision, and nobody is asked twice.
func TestCascadesGoOnWhereTheyWere(t *testing.T) {
	testenv.Raced(t)

	docs, order := bills(150, func(i int) bool { return i%50 == 3 })
	vars := map[string]string{"cascade_target": "0.8"}
	var want outcome
	enginetest.Virtually(t, func(t *testing.T) {
		f, last := cascadeFleet(t, 1)
		id, _ := f.Any().Run(cascading(t, vars), enginetest.Texts(docs, order...))
		want = outcomeOf(t, f.Any(), id, last)
	})
	if want.accepted == 0 || want.drawn == 0 {
		t.Fatalf("nothing is accepted or drawn: %+v", want)
	}

	for _, step := range []failpoint.Step{failpoint.Census, failpoint.Certify, failpoint.Judge} {
		for _, point := range []failpoint.Point{step.Before(), step.After()} {
			t.Run(string(point), func(t *testing.T) {
				enginetest.Virtually(t, func(t *testing.T) {
					f, last := cascadeFleet(t, 2)
					f.KillAt(point)
					job, err := f.Any().SubmitJob(t.Context(), cascading(t, vars), enginetest.Texts(docs, order...))
					if err != nil {
						t.Fatal(err)
					}

					killThrice(t, f, point, job.ID)
					got := outcomeOf(t, f.Any(), job.ID, last)
					if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
						t.Errorf("undisturbed and disturbed (-want +got):\n%s", diff)
					}
					for unit, times := range last.asked {
						if times > 1 {
							t.Errorf("%s was paid %d times", unit, times)
						}
					}
					f.Any().Sound()
				})
			})
		}
	}
}

// killThrice kills whoever passes a point, three times in all, and brings the job to its end.
func killThrice(t *testing.T, f *enginetest.Fleet, point failpoint.Point, id mapreduce.JobID) {
	t.Helper()
	for range 3 {
		for f.Node(0).Gate.Dead.Load() == f.Node(1).Gate.Dead.Load() {
			enginetest.Pass(t, 10*time.Millisecond)
			if got, err := f.Any().GetJob(t.Context(), id); err == nil && got.State.Ended() {
				break
			}
		}
		for i := range 2 {
			if f.Node(i).Gate.Dead.Load() {
				f.Stop(i, true)
				f.KillAt(point)
				f.Start(i)
			}
		}
	}

	f.KillAt("")
	for i := range 2 {
		if f.Node(i).Gate.Dead.Load() {
			f.Stop(i, true)
			f.Start(i)
		}
	}
	if ended := f.Any().EndWithin(id, time.Hour); ended.State != mapreduce.JobComplete {
		t.Fatalf("the job is %v: %s", ended.State, ended.Error)
	}
	if f.HasPassed(point) < 2 {
		t.Errorf("%s was passed %d times", point, f.HasPassed(point))
	}
}
