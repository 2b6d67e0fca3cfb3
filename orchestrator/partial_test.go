package orchestrator_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/internal/dev/testenv"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// A sluice lets some units pass, and holds all others until it is opened.
type sluice struct {
	agent.Agent
	pass func(*agent.Task) bool
	open chan struct{}
}

func (g *sluice) Run(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
	if g.pass(task) {
		return g.Agent.Run(ctx, task, calls)
	}
	select {
	case <-g.open:
		return g.Agent.Run(ctx, task, calls)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (n *node) partial(id mapreduce.JobID) *collected {
	n.t.Helper()
	return n.collect(id, true)
}

// A partial result is the one that the job would have if it ended now: that of a
// job over the documents which are mapped.
func TestPartialResults(t *testing.T) {
	testenv.Unraced(t, testenv.Sizes)

	const all, mapped = 120, 70
	docs, order := keyed(all)
	for _, tt := range []struct {
		name   string
		keys   string
		tokens int
		ask    ask
	}{
		{"a record a document", "", 0, nil},
		{"records by key", "x-coditect: {key: [order]}\n", 0, nil},
		{"one record for all", "x-coditect: {key: []}\n", 0, nil},
		{"documents in chunks, by key", "x-coditect: {key: [order]}\n", 60, ask{static(3)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t)
			n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
			g := &sluice{Agent: byRules(), open: make(chan struct{}), pass: func(task *agent.Task) bool {
				return task.Kind != mapreduce.KindMap || string(task.Text.Document) < order[mapped]
			}}
			c.workerFor("rules", g, worker.Config{Slots: 1000}, n) // those that are held keep nobody waiting
			spec := extracting(t, orders+tt.keys)
			spec.Parallelism = 1000
			spec.MaxTokensPerUnit, spec.ChunkOverlap = tt.tokens, 8
			for _, a := range tt.ask {
				a(&spec)
			}
			job, err := n.SubmitJob(t.Context(), spec, texts(docs, order...))
			if err != nil {
				t.Fatal(err)
			}
			n.until(job.ID, func(j *mapreduce.Job) bool { return j.Coverage.Documents.Mapped == mapped })
			err = n.GetResult(t.Context(), job.ID, false, func(*mapreduce.ResultPart) error { return nil })
			if !errors.Is(err, errs.Precondition) {
				t.Errorf("the whole result of a job that is mapping gave %v", err)
			}
			got := n.partial(job.ID)
			close(g.open)
			n.wantEnd(job.ID, mapreduce.JobComplete)

			_, want := n.run(spec, texts(docs, order[:mapped]...))
			sameResult(t, want, got)
			sameResult(t, n.result(job.ID), n.partial(job.ID)) // it is whole by now
		})
	}
}

func sameResult(t *testing.T, want, got *collected) {
	t.Helper()
	if diff := cmp.Diff(want.records, got.records); diff != "" {
		t.Errorf("records of the whole (-), of the part (+):\n%s", diff)
	}
	if diff := cmp.Diff(want.citations, got.citations); diff != "" {
		t.Errorf("citations of the whole (-), of the part (+):\n%s", diff)
	}
	if diff := cmp.Diff(want.sources, got.sources); diff != "" {
		t.Errorf("sources of the whole (-), of the part (+):\n%s", diff)
	}
	if diff := cmp.Diff(want.summary, got.summary); diff != "" {
		t.Errorf("summaries of the whole (-), of the part (+):\n%s", diff)
	}
}

// Partial results that are read while units end are each sound, and grow.
func TestPartialResultsGrow(t *testing.T) {
	n := ruled(t)
	docs, order := keyed(150)
	job, err := n.SubmitJob(t.Context(), extracting(t, orders+"x-coditect: {key: [order]}\n"), texts(docs, order...))
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
		got := n.partial(job.ID)
		got.cited(t, docs)
		if len(got.sources) < sources || len(got.records) > 7 || len(got.records) == 0 && len(got.sources) > 0 {
			t.Errorf("%d sources after %d, and %d records", len(got.sources), sources, len(got.records))
		}
		sources = len(got.sources)
	}
	if sources != len(order) {
		t.Errorf("%d sources in the end, want %d", sources, len(order))
	}
}

// A6: of (done, total) neither goes back, whether units fail or levels are added,
// and they end equal.
func TestProgressIsMonotone(t *testing.T) {
	c := newCluster(t)
	n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
	c.worker(&scripted.Agent{}, worker.Config{Slots: 8, Prefetch: 4}, n)
	for _, tt := range []struct {
		name string
		ask  ask
	}{
		{"static", ask{static(3)}},
		{"adaptive", ask{budget(60)}},
		{"batches", ask{batches(1, 4)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := script(map[string]string{
				"script.poison.doc-0000003": "permanent", "script.poison.doc-0000040": "permanent", "script.fail_rate": "0.03", "script.output_bytes": "100",
			})
			for _, a := range tt.ask {
				a(&spec)
			}
			id := n.submit(spec, 60)
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
