package worker_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent"
	"github.com/coditect/mapreduce/worker/step"
)

const twoStages = `{"name":"two","stages":[
	{"name":"read","each":"chunk","output":"records"},
	{"name":"tell","from":"read","each":"all","output":"report","agent":{"role":"Teller"},"task":{"description":"Tell"}}]}`

// stageInfo introduces a job for a stage, as it is run by a provider.
func stageInfo(stage, provider string) protocol.JobInfo {
	return protocol.JobInfo{Job: jobID, Stage: stage, Spec: mapreduce.JobSpec{
		Pipeline: "two", Definition: []byte(twoStages), Schema: []byte(`{"type":"object"}`), Provider: provider, Model: provider + "-model",
	}}
}

func unitOfStage(id mapreduce.UnitID, stage string) protocol.Assignment {
	a := unitOf(id)
	a.Stage = stage
	return a
}

// TestStages: units are run by the provider of their stage, and those that began,
// or wait, while another was told of keep theirs.
func TestStages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		by := func(name string) step.Runner {
			return runFunc(func(ctx context.Context, task *agent.Task, calls agent.Calls) (*agent.Result, error) {
				if name == "first extract" {
					<-release
				}
				err := calls.Call(ctx, "", func(context.Context) error { return nil })
				return &agent.Result{Output: []byte(name + " " + task.Spec.Model + " " + task.StageSpec.Name), Size: 1}, err
			})
		}
		steps := step.NewRegistry()
		steps.Register(step.Step{Kind: step.Parse}, runFunc(okay))
		steps.Provide(mapreduce.Provider{Name: "first"}, step.Table{step.Extract: by("first extract"), step.Write: by("first write")})
		steps.Provide(mapreduce.Provider{Name: "second"}, step.Table{step.Write: by("second write")})
		p := newPeer(t)
		r := launchOf(t, p, steps, worker.Config{Slots: 1, Prefetch: 3})
		if got := p.accept(protocol.Welcome{}).Hello.Offer.Providers; strings.Join(got, " ") != "first second" {
			t.Errorf("offers the providers %v", got)
		}
		p.send(&protocol.ToWorker{Jobs: []protocol.JobInfo{stageInfo("read", "first")}, Assignments: []protocol.Assignment{unitOfStage("runs", "read"), unitOfStage("waits", "read")}})
		parse := unitOf("parse_d")
		parse.Kind = mapreduce.KindParse
		p.send(&protocol.ToWorker{Jobs: []protocol.JobInfo{stageInfo("tell", "second")}, Assignments: []protocol.Assignment{unitOfStage("told", "tell"), parse}})
		synctest.Wait()
		close(release)
		got := make(map[mapreduce.UnitID]string)
		reports := p.take().Reports
		for _, rep := range reports {
			got[rep.Unit] = string(rep.Output)
		}
		for unit, want := range map[mapreduce.UnitID]string{
			"runs": "first extract first-model read", "waits": "first extract first-model read", "told": "second write second-model tell", "parse_d": "ok",
		} {
			if got[unit] != want {
				t.Errorf("unit %s came to %q, want %q", unit, got[unit], want)
			}
		}
		p.verdicts(protocol.Accepted, reports...)
		r.finish()
	})
}

// TestStagesThatDoNotFit: units that no step here can run fail their job with the
// reason. A unit may be of another stage than the one that its job has come to.
func TestStagesThatDoNotFit(t *testing.T) {
	for name, tc := range map[string]struct {
		info    protocol.JobInfo
		unit    protocol.Assignment
		outcome protocol.Outcome
		want    string
	}{
		"no such step":     {stageInfo("tell", "plain"), unitOfStage("u", "tell"), protocol.Errored, "the provider plain has no write step (has: [extract])"},
		"no such provider": {stageInfo("tell", "other"), unitOfStage("u", "tell"), protocol.Errored, `no provider named "other"`},
		"no such stage":    {stageInfo("gone", "plain"), unitOfStage("u", "gone"), protocol.Errored, `the pipeline two has no stage "gone"`},
		"another stage":    {stageInfo("tell", "plain"), unitOfStage("u", "read"), protocol.Done, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				steps := step.NewRegistry()
				steps.Provide(mapreduce.Provider{Name: "plain"}, step.Table{step.Extract: runFunc(okay)})
				p := newPeer(t)
				r := launchOf(t, p, steps, worker.Config{})
				p.accept(protocol.Welcome{})
				p.send(&protocol.ToWorker{Jobs: []protocol.JobInfo{tc.info}, Assignments: []protocol.Assignment{tc.unit}})
				rep := p.report()
				if rep.Outcome != tc.outcome || !strings.Contains(strings.Join(rep.Errors, "; "), tc.want) {
					t.Errorf("report %+v, want outcome %v with %q", rep, tc.outcome, tc.want)
				}
				if tc.outcome == protocol.Errored && rep.Class != protocol.PermanentJob {
					t.Errorf("class %v, want one for the job", rep.Class)
				}
				p.verdicts(protocol.Accepted, rep)
				r.finish()
			})
		})
	}
}
