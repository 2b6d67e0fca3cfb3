package jobs_test

import (
	"testing"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fault"
)

// A check whose reads fail at times, and are made again, finds what it finds without that.
func TestACheckWhoseReadsFail(t *testing.T) {
	w := newWorld(t, open(t), 1)
	j := w.nodes[0]
	w.run(j, w.submit(j, spec(), texts(3)))
	for range 2 {
		gone := w.submit(j, spec(), texts(1))
		w.run(j, gone)
		w.must(j.Lifecycle.Delete(w.ctx, gone)) // which the log of its tenant tells
	}
	w.healthy()
	w.write(func(tx store.Tx) { tx.Clear(w.space.Tenant(spec().Tenant).LogEntry(1)) })
	want := len(w.findings())
	if want == 0 {
		t.Fatal("nothing is wrong with a log whose first entry is gone: the test shows nothing")
	}
	failed := 0
	for seed := range uint64(50) {
		f := fault.New(w.store, fault.Config{Seed: seed, Rates: fault.Rates{fault.ReadTooOld: 0.05, fault.ReadBehind: 0.05}})
		if got := len(newWorld(t, f, 1).findings()); got != want {
			t.Errorf("seed %d: %d findings, want %d", seed, got, want)
		}
		failed += f.Count(fault.ReadTooOld) + f.Count(fault.ReadBehind)
	}
	if failed < 50 {
		t.Errorf("only %d reads failed", failed)
	}
}
