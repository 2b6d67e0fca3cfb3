package orchestrator_test

import (
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/keys"
	"github.com/coditect/mapreduce/worker"
	"github.com/coditect/mapreduce/worker/agent/scripted"
	"github.com/coditect/mapreduce/worker/output"
)

// A unit whose input is damaged must end its job with the reason: were it only
// given back, it would be claimed again for ever.
func TestADamagedInputFailsItsUnit(t *testing.T) {
	c := newCluster(t)
	n := c.orchestrator(quick(orchestrator.Config{Adopt: true}))
	spec := script(nil)
	spec.MaxAttempts = 1
	id := n.submit(spec, 2)
	w := greet(t, n, "w", 1)
	large := w.assigned()
	data, err := (&output.Output{Reason: strings.Repeat("x", mapreduce.MaxInline)}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	w.put("w", large, data)
	w.report(large, func(r *mapreduce.Report) {
		r.Output, r.Length, r.SHA256 = nil, int64(len(data)), sum[:]
	})
	err = store.NewDB(c.store, store.Config{}).Update(t.Context(), func(tx store.Tx) error {
		tx.ClearRange(keys.New().Results(id, large.Unit))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.report(w.assigned(), asIs)
	w.cut()
	c.worker(&scripted.Agent{}, worker.Config{Slots: 1}, n)
	job := n.wantEnd(id, mapreduce.JobFailed)
	if !strings.Contains(job.Error, "input of the unit") || !strings.Contains(job.Error, "0 of its 4099 bytes are there") {
		t.Errorf("error %q does not say what is damaged", job.Error)
	}
}

// What is damaged of one job keeps no orchestrator from starting, and no other job
// from being run.
func TestADamagedRunStopsNobody(t *testing.T) {
	c := newCluster(t)
	err := store.NewDB(c.store, store.Config{}).Update(t.Context(), func(tx store.Tx) error {
		tx.Set(keys.New().Run("default", "mr_20250101_aaaaaa"), []byte("damaged"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	n := c.orchestrator(quick(orchestrator.Config{Adopt: true, Beat: 50 * time.Millisecond}))
	lost := greet(t, n, "lost", 1)
	id := n.submit(script(nil), 4)
	lost.assigned()
	lost.cut() // for good: its unit is another's after the grace period
	c.worker(&scripted.Agent{}, worker.Config{Slots: 1}, n)
	n.wantEnd(id, mapreduce.JobComplete)
}
