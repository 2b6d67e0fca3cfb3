package result_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

func partial(n *enginetest.Node, id mapreduce.JobID) *enginetest.Collected {
	n.T.Helper()
	return n.Collect(id, true)
}

// A partial result is the one that the job would have if it ended now: that of a
// job over the documents which are mapped.
func TestPartialResults(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	const all, mapped = 120, 70
	docs, order := enginetest.Keyed(all)
	for _, tt := range []struct {
		name   string
		keys   string
		tokens int
		ask    enginetest.Ask
	}{
		{"a record a document", "", 0, nil},
		{"records by key", "x-coditect: {key: [order]}\n", 0, nil},
		{"one record for all", "x-coditect: {key: []}\n", 0, nil},
		{"documents in chunks, by key", "x-coditect: {key: [order]}\n", 60, enginetest.Ask{enginetest.Static(3)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := enginetest.NewCluster(t)
			n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
			g := &enginetest.Sluice{Agent: enginetest.ByRules(), Open: make(chan struct{}), Pass: func(task *agent.Task) bool {
				return task.Kind != mapreduce.KindMap || string(task.Text.Document) < order[mapped]
			}}
			c.WorkerFor("rules", g, worker.Config{Slots: 1000}, n) // those that are held keep nobody waiting
			spec := enginetest.Extracting(t, enginetest.Orders+tt.keys)
			spec.Parallelism = 1000
			spec.MaxTokensPerUnit, spec.ChunkOverlap = tt.tokens, 8
			for _, a := range tt.ask {
				a(&spec)
			}
			job, err := n.SubmitJob(t.Context(), spec, enginetest.Texts(docs, order...))
			if err != nil {
				t.Fatal(err)
			}
			n.Until(job.ID, func(j *mapreduce.Job) bool { return j.Coverage.Documents.Mapped == mapped })
			err = n.GetResult(t.Context(), job.ID, false, func(*mapreduce.ResultPart) error { return nil })
			if !errors.Is(err, errs.Precondition) {
				t.Errorf("the whole result of a job that is mapping gave %v", err)
			}
			got := partial(n, job.ID)
			close(g.Open)
			n.WantEnd(job.ID, mapreduce.JobComplete)

			_, want := n.Run(spec, enginetest.Texts(docs, order[:mapped]...))
			sameResult(t, want, got)
			sameResult(t, n.Result(job.ID), partial(n, job.ID)) // it is whole by now
		})
	}
}

func sameResult(t *testing.T, want, got *enginetest.Collected) {
	t.Helper()
	if diff := cmp.Diff(want.Records, got.Records); diff != "" {
		t.Errorf("records of the whole (-), of the part (+):\n%s", diff)
	}
	if diff := cmp.Diff(want.Citations, got.Citations); diff != "" {
		t.Errorf("citations of the whole (-), of the part (+):\n%s", diff)
	}
	if diff := cmp.Diff(want.Sources, got.Sources); diff != "" {
		t.Errorf("sources of the whole (-), of the part (+):\n%s", diff)
	}
	if diff := cmp.Diff(want.Summary, got.Summary); diff != "" {
		t.Errorf("summaries of the whole (-), of the part (+):\n%s", diff)
	}
}

// Partial results that are read while units end are each sound, and grow.
func TestPartialResultsGrow(t *testing.T) {
	testenv.Raced(t)

	n := enginetest.Ruled(t)
	docs, order := enginetest.Keyed(150)
	job, err := n.SubmitJob(t.Context(), enginetest.Extracting(t, enginetest.Orders+"x-coditect: {key: [order]}\n"), enginetest.Texts(docs, order...))
	if err != nil {
		t.Fatal(err)
	}
	sources := 0
	for running := true; running; {
		j, err := n.GetJob(t.Context(), job.ID)
		if err != nil {
			t.Fatal(err)
		}
		running = j.State.Running()
		got := partial(n, job.ID)
		got.Cited(t, docs)
		if len(got.Sources) < sources || len(got.Records) > 7 || len(got.Records) == 0 && len(got.Sources) > 0 {
			t.Errorf("%d sources after %d, and %d records", len(got.Sources), sources, len(got.Records))
		}
		sources = len(got.Sources)
	}
	if sources != len(order) {
		t.Errorf("%d sources in the end, want %d", sources, len(order))
	}
}

// A6: of (done, total) neither goes back, whether units fail or levels are added,
// and they end equal.
func TestProgressIsMonotone(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{Adopt: true}))
	c.Worker(&scripted.Agent{}, worker.Config{Slots: 8, Prefetch: 4}, n)
	for _, tt := range []struct {
		name string
		ask  enginetest.Ask
	}{
		{"static", enginetest.Ask{enginetest.Static(3)}},
		{"adaptive", enginetest.Ask{enginetest.Budget(60)}},
		{"batches", enginetest.Ask{enginetest.Batches(1, 4)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := enginetest.Script(map[string]string{
				"script.poison.doc-0000003": "permanent", "script.poison.doc-0000040": "permanent", "script.fail_rate": "0.03", "script.output_bytes": "100",
			})
			for _, a := range tt.ask {
				a(&spec)
			}
			id := n.Submit(spec, 60)
			var last *mapreduce.Job
			err := n.WatchJob(t.Context(), id, func(j *mapreduce.Job) error {
				if last != nil && (done(j) < done(last) || j.TotalUnits < last.TotalUnits || j.Level < last.Level) {
					t.Errorf("%s after %s", progressOf(j), progressOf(last))
				}
				if done(j) > j.TotalUnits {
					t.Errorf("%s", progressOf(j))
				}
				last = j
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if last.State != mapreduce.JobComplete || done(last) != last.TotalUnits || last.FailedUnits != 2 {
				t.Errorf("it ended %v with %s: %s", last.State, progressOf(last), last.Error)
			}
		})
	}
}

func done(j *mapreduce.Job) int64 { return j.CompletedUnits + j.FailedUnits }

func progressOf(j *mapreduce.Job) string {
	return fmt.Sprintf("%d of %d at level %d", done(j), j.TotalUnits, j.Level)
}
