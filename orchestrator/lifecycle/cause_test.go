package lifecycle_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// Units that failed for one cause are tried again, at whatever level they are, and those that failed for
// others stay as they are, until the whole job is resumed.
func TestResumeOfOneCause(t *testing.T) {
	for name, tt := range map[string]struct {
		ask    func(*mapreduce.JobSpec)
		failed int64
	}{
		"adaptive":               {func(*mapreduce.JobSpec) {}, 5},
		"a tree planned at once": {enginetest.Static(2), 6}, // with the reduce of two of them
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) { resumeOneCause(t, tt.ask, tt.failed) })
		})
	}
}

func resumeOneCause(t *testing.T, ask func(*mapreduce.JobSpec), first int64) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(orchestrator.Config{Adopt: true})
	var healed atomic.Bool
	away, broken := []mapreduce.UnitID{"doc-0000001", "doc-0000004", "doc-0000007"}, []mapreduce.UnitID{"doc-0000002", "doc-0000005"}
	c.Worker(enginetest.Collector{Size: func(*agent.Task, []string) int64 { return 50 }, Fail: func(task *agent.Task) error {
		switch {
		case healed.Load():
		case slices.Contains(away, task.Unit):
			return agent.Permanent(fmt.Errorf("host %d of %q is away", len(task.Unit)+int(task.Unit[10]), task.Unit))
		case slices.Contains(broken, task.Unit):
			return agent.Permanent(errors.New("the page is broken"))
		}
		return nil
	}}, worker.Config{Slots: 4}, n)

	id := n.Submit(enginetest.Asking(ask), 9)
	if job := n.WantEnd(id, mapreduce.JobComplete); job.FailedUnits != first {
		t.Fatalf("%d units failed, want %d", job.FailedUnits, first)
	}
	failed := n.Units(id)
	cause := mapreduce.CauseOfAll(failed[away[0]].Errors)
	if cause == "" || cause != mapreduce.CauseOfAll(failed[away[2]].Errors) || cause == mapreduce.CauseOfAll(failed[broken[0]].Errors) {
		t.Fatalf("the causes are %q", cause)
	}

	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{Cause: "nobody's"}); errs.KindOf(err) != errs.Precondition {
		t.Errorf("a cause that no unit has: %v", err)
	}
	healed.Store(true)
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{Cause: cause}); err != nil {
		t.Fatal(err)
	}
	if job := n.WantEnd(id, mapreduce.JobComplete); job.FailedUnits != 2 {
		t.Errorf("%d units are failed, want the 2 that failed for another cause", job.FailedUnits)
	}
	now := n.Units(id)
	for _, u := range away {
		if now[u].State != mapreduce.UnitComplete {
			t.Errorf("%s is %s", u, now[u].State)
		}
	}
	for _, u := range broken {
		if now[u].State != mapreduce.UnitFailed || now[u].Attempts != failed[u].Attempts {
			t.Errorf("%s is %s after %d attempts", u, now[u].State, now[u].Attempts)
		}
	}
	n.Healthy()

	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{Cause: cause}); errs.KindOf(err) != errs.Precondition {
		t.Errorf("a cause that no unit has any more: %v", err)
	}
	if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
		t.Fatal(err)
	}
	if job := n.WantEnd(id, mapreduce.JobComplete); job.FailedUnits != 0 || job.CompletedUnits != job.TotalUnits {
		t.Errorf("after a resume of all, %d units are failed", job.FailedUnits)
	}
	n.Healthy()
}

// Units whose cause is ignored stay as they are when all failed units are tried again, and nobody is asked to look at them;
// a resolved cause comes back if units fail for it again.
func TestIgnoredAndResolvedCauses(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		n := c.Orchestrator(orchestrator.Config{Adopt: true})
		away, broken := []mapreduce.UnitID{"doc-0000001", "doc-0000004", "doc-0000007"}, []mapreduce.UnitID{"doc-0000002", "doc-0000005"}
		var isAway atomic.Bool
		isAway.Store(true)
		c.Worker(enginetest.Collector{Size: func(*agent.Task, []string) int64 { return 50 }, Fail: func(task *agent.Task) error {
			switch {
			case isAway.Load() && slices.Contains(away, task.Unit):
				return agent.Permanent(fmt.Errorf("host %d is away", int(task.Unit[10])))
			case slices.Contains(broken, task.Unit):
				return agent.Permanent(errors.New("the page is broken"))
			}
			return nil
		}}, worker.Config{Slots: 4}, n)

		id := n.Submit(enginetest.Asking(func(*mapreduce.JobSpec) {}), 9)
		if job := n.WantEnd(id, mapreduce.JobComplete); job.FailedUnits != 5 || job.OpenFailures() != 5 {
			t.Fatalf("%d units failed, of which %d are open; want 5", job.FailedUnits, job.OpenFailures())
		}
		all := n.Units(id)
		awayCause, brokenCause := mapreduce.CauseOfAll(all[away[0]].Errors), mapreduce.CauseOfAll(all[broken[0]].Errors)

		for _, m := range []struct {
			cause string
			state mapreduce.CauseState
			open  int64 // failures afterwards
		}{{brokenCause, mapreduce.CauseIgnored, 3}, {brokenCause, mapreduce.CauseIgnored, 3}, {awayCause, mapreduce.CauseResolved, 0}} {
			job, err := n.MarkCause(t.Context(), id, m.cause, m.state)
			if err != nil || job.OpenFailures() != m.open {
				t.Fatalf("%s is %s: %d open failures, want %d: %v", m.cause, m.state, job.OpenFailures(), m.open, err)
			}
		}

		// The hosts are still away.
		wantCauses(t, n, id, map[string]string{awayCause: "resolved", brokenCause: "ignored"})
		if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
			t.Fatal(err)
		}
		if job := n.WantEnd(id, mapreduce.JobComplete); job.FailedUnits != 5 || job.OpenFailures() != 3 {
			t.Errorf("%d units failed, of which %d are open; want 5 and 3", job.FailedUnits, job.OpenFailures())
		}
		wantCauses(t, n, id, map[string]string{awayCause: "resolved, returned", brokenCause: "ignored"})
		if before, now := all[broken[0]].Attempts, n.Units(id)[broken[0]].Attempts; now != before {
			t.Errorf("the ignored unit had %d attempts, and has %d", before, now)
		}

		isAway.Store(false)
		if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
			t.Fatal(err)
		}
		if job := n.WantEnd(id, mapreduce.JobComplete); job.FailedUnits != 2 || job.OpenFailures() != 0 {
			t.Errorf("%d units failed, of which %d are open; want 2 and 0", job.FailedUnits, job.OpenFailures())
		}
		if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); errs.ReasonOf(err) != errs.JobComplete {
			t.Errorf("a resume with nothing but ignored units: %v", err)
		}

		// Whoever tries an ignored cause again ignores it no more.
		if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{Cause: brokenCause}); err != nil {
			t.Fatal(err)
		}
		if job := n.WantEnd(id, mapreduce.JobComplete); job.FailedUnits != 2 || job.OpenFailures() != 2 {
			t.Errorf("%d units failed, of which %d are open; want 2", job.FailedUnits, job.OpenFailures())
		}
		wantCauses(t, n, id, map[string]string{brokenCause: "open"})
		n.Healthy()
	})
}

// A job that fails fast goes on once the cause is ignored for which it has failed, also where further units fail for it
// then; a unit that fails for another cause fails it again.
func TestIgnoredCausesFailNoJob(t *testing.T) {
	why := map[mapreduce.UnitID]string{"doc-0000002": "the page is broken", "doc-0000005": "the page is broken", "doc-0000007": "the host is away"}
	collector := enginetest.Collector{Size: func(*agent.Task, []string) int64 { return 50 }, Fail: func(task *agent.Task) error {
		if text := why[task.Unit]; text != "" {
			return agent.Permanent(errors.New(text))
		}
		return nil
	}}
	p, err := pipeline.Parse("survey.yaml", []byte(strings.Replace(fiveStages, "    each: plan.topics\n", "    each: plan.topics\n    on_error: fail-fast\n", 1)))
	if err != nil {
		t.Fatal(err)
	}
	ofStage := surveyed(t, map[string]string{"script.poison.item_2": "permanent", "script.poison.item_5": "permanent"})
	ofStage.Definition = p.Canonical()

	for name, tt := range map[string]struct {
		agent  agent.Agent
		spec   mapreduce.JobSpec
		first  []mapreduce.UnitID // for which it fails
		failed int64
	}{
		"the job":   {collector, enginetest.Asking(failFast), []mapreduce.UnitID{"doc-0000002", "doc-0000007"}, 3},
		"its stage": {&scripted.Agent{}, ofStage, []mapreduce.UnitID{"item_2"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Virtually(t, func(t *testing.T) {
				c := enginetest.NewCluster(t)
				n := c.Orchestrator(orchestrator.Config{Adopt: true})
				c.Worker(tt.agent, worker.Config{Slots: 1}, n)
				id := n.Submit(tt.spec, 9)

				for _, first := range tt.first {
					if job := n.WantEnd(id, mapreduce.JobFailed); !strings.Contains(job.Error, string(first)) {
						t.Fatalf("the job has failed with %q, want unit %s", job.Error, first)
					}
					if _, err := n.MarkCause(t.Context(), id, mapreduce.CauseOfAll(n.Units(id)[first].Errors), mapreduce.CauseIgnored); err != nil {
						t.Fatal(err)
					}
					if _, err := n.ResumeJob(t.Context(), id, mapreduce.Resume{}); err != nil {
						t.Fatal(err)
					}
				}
				if job := n.WantEnd(id, mapreduce.JobComplete); job.FailedUnits != tt.failed {
					t.Errorf("%d units are failed, want %d", job.FailedUnits, tt.failed)
				}
				n.Healthy()
			})
		})
	}
}

// wantCauses wants what was said of the causes of a job's failed units.
func wantCauses(t *testing.T, n *enginetest.Node, id mapreduce.JobID, want map[string]string) {
	t.Helper()
	job, err := n.GetJob(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	groups, _, err := mapreduce.GroupFailures(t.Context(), n.Client, job, 1000)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, g := range groups {
		got[g.Cause] = g.Mark.State.String()
		if g.Returned() {
			got[g.Cause] += ", returned"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the causes (-want +got):\n%s", diff)
	}
}

// What cannot be said of a cause is refused, with what is wrong.
func TestMarkRefused(t *testing.T) {
	enginetest.Virtually(t, func(t *testing.T) {
		c := enginetest.NewCluster(t)
		n := c.Orchestrator(orchestrator.Config{Adopt: true})
		c.Worker(enginetest.Collector{}, worker.Config{Slots: 1}, n)
		id := n.Submit(enginetest.Asking(func(*mapreduce.JobSpec) {}), 1)
		n.WantEnd(id, mapreduce.JobComplete)
		for name, tt := range map[string]struct {
			job   mapreduce.JobID
			cause string
			state mapreduce.CauseState
			want  errs.Kind
		}{
			"no cause":                 {id, "", mapreduce.CauseIgnored, errs.Invalid},
			"an error of one unit":     {id, "host 7 is away", mapreduce.CauseIgnored, errs.Invalid},
			"no state":                 {id, "a cause", 7, errs.Invalid},
			"a cause that no unit has": {id, "a cause", mapreduce.CauseIgnored, errs.Precondition},
			"no job":                   {"mr_20200101_aaaaaa", "a cause", mapreduce.CauseIgnored, errs.NotFound},
		} {
			if _, err := n.MarkCause(t.Context(), tt.job, tt.cause, tt.state); errs.KindOf(err) != tt.want {
				t.Errorf("%s: %v, want an error of the kind %s", name, err, tt.want)
			}
		}
		if _, err := n.MarkCause(t.Context(), id, "a cause", mapreduce.CauseOpen); err != nil {
			t.Errorf("to reopen what is open: %v", err)
		}
	})
}
