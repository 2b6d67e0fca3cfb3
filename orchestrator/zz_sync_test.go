package orchestrator_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
)

func TestZZSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		n := c.orchestrator(orchestrator.Config{Adopt: true})
		c.worker(&scripted.Agent{}, worker.Config{Slots: 10}, n)
		spec := script(map[string]string{"script.latency": "200ms"})
		spec.Parallelism = 10
		start := time.Now()
		n.wantEnd(n.submit(spec, 400), mapreduce.JobComplete)
		t.Log(time.Since(start))
	})
}
