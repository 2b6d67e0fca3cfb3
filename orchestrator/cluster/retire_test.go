package cluster_test

import (
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/orchestrator/enginetest"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// An orchestrator that has stopped in order leaves its job's slots to the next,
// which need not wait for the lease.
func TestARetiredOrchestratorIsNotWaitedFor(t *testing.T) {
	c := enginetest.NewCluster(t)
	patient := func() *enginetest.Node {
		return c.Orchestrator(orchestrator.Config{Adopt: true, Lease: time.Hour, Heartbeat: time.Minute, Poll: 50 * time.Millisecond})
	}
	first := patient()
	drain := c.Worker(&scripted.Agent{}, worker.Config{Slots: 4, Prefetch: 1, Embedded: true}, first)
	id := first.Submit(enginetest.Script(map[string]string{"script.latency": "20ms"}), 200)
	first.Until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits > 5 })
	drain()
	first.Stop()
	if err := first.Orch.Retire(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := patient()
	c.Worker(&scripted.Agent{}, worker.Config{Slots: 4, Prefetch: 1, Embedded: true}, second)
	second.WantEnd(id, mapreduce.JobComplete)
	beats, err := second.Jobs.Nodes.Beats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, left := beats[first.Jobs.Node()]; left {
		t.Error("the first still gives a sign of life")
	}
}

// One that leaves something says nothing, so that others take over.
func TestAnOrchestratorWithASubmissionDoesNotRetire(t *testing.T) {
	c := enginetest.NewCluster(t)
	n := c.Orchestrator(enginetest.Quick(orchestrator.Config{}))
	n.Stop()
	if err := n.Jobs.Submit.Begin(t.Context(), "mr_20260101_abcdef", &mapreduce.JobSpec{}); err != nil {
		t.Fatal(err)
	}
	if err := n.Orch.Retire(t.Context()); err != nil {
		t.Fatal(err)
	}
	beats, err := n.Jobs.Nodes.Beats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(beats) != 1 {
		t.Errorf("signs of life of %v, want the one that has a submission under way", beats)
	}
}
