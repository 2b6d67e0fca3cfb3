package check_test

import (
	"testing"

	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/fault"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
)

// A check whose reads fail at times, and are made again, finds what it finds without that.
func TestACheckWhoseReadsFail(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	j := w.Nodes[0]
	w.Run(j, w.Submit(j, jobstest.Spec(), jobstest.Texts(3)))
	for range 2 {
		gone := w.Submit(j, jobstest.Spec(), jobstest.Texts(1))
		w.Run(j, gone)
		w.Must(j.Lifecycle.Delete(w.Ctx, gone)) // which the log of its tenant tells
	}
	w.Healthy()
	w.Write(func(tx store.Tx) { tx.Clear(w.Space.Tenant(jobstest.Spec().Tenant).LogEntry(1)) })
	want := len(w.Findings())
	if want == 0 {
		t.Fatal("nothing is wrong with a log whose first entry is gone: the test shows nothing")
	}
	failed := 0
	for seed := range uint64(50) {
		f := fault.New(w.Store, fault.Config{Seed: seed, Rates: fault.Rates{fault.ReadTooOld: 0.05, fault.ReadBehind: 0.05}})
		if got := len(jobstest.NewWorld(t, f, 1).Findings()); got != want {
			t.Errorf("seed %d: %d findings, want %d", seed, got, want)
		}
		failed += f.Count(fault.ReadTooOld) + f.Count(fault.ReadBehind)
	}
	if failed < 50 {
		t.Errorf("only %d reads failed", failed)
	}
}
