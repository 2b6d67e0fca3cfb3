package orchestrator_test

import (
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

// An orchestrator that has stopped in order leaves its job's slots to the next,
// which need not wait for the lease.
func TestARetiredOrchestratorIsNotWaitedFor(t *testing.T) {
	c := newCluster(t)
	patient := func() *node {
		return c.orchestrator(orchestrator.Config{Adopt: true, Lease: time.Hour, Heartbeat: time.Minute, Poll: 50 * time.Millisecond})
	}
	first := patient()
	drain := c.worker(&scripted.Agent{}, worker.Config{Slots: 4, Prefetch: 1, Embedded: true}, first)
	id := first.submit(script(map[string]string{"script.latency": "20ms"}), 200)
	first.until(id, func(j *mapreduce.Job) bool { return j.CompletedUnits > 5 })
	drain()
	first.stop()
	if err := first.orch.Retire(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := patient()
	c.worker(&scripted.Agent{}, worker.Config{Slots: 4, Prefetch: 1, Embedded: true}, second)
	second.wantEnd(id, mapreduce.JobComplete)
	beats, err := second.jobs.Nodes.Beats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, left := beats[first.jobs.Node()]; left {
		t.Error("the first still gives a sign of life")
	}
}

// One that leaves something says nothing, so that others take over.
func TestAnOrchestratorWithASubmissionDoesNotRetire(t *testing.T) {
	c := newCluster(t)
	n := c.orchestrator(quick(orchestrator.Config{}))
	n.stop()
	if err := n.jobs.Submit.Begin(t.Context(), "mr_20260101_abcdef", &mapreduce.JobSpec{}); err != nil {
		t.Fatal(err)
	}
	if err := n.orch.Retire(t.Context()); err != nil {
		t.Fatal(err)
	}
	beats, err := n.jobs.Nodes.Beats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(beats) != 1 {
		t.Errorf("signs of life of %v, want the one that has a submission under way", beats)
	}
}
