package tenants_test

import (
	"slices"
	"testing"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/store"
	"github.com/coditect/mapreduce/store/jobs/jobstest"
	"github.com/coditect/mapreduce/store/keys"
)

// Counters that are wrong are found, and corrected by as much.
func TestCountersAreCorrected(t *testing.T) {
	w := jobstest.NewWorld(t, jobstest.Open(t), 1)
	s := jobstest.Spec()
	s.Tenant = "a"
	w.Submit(w.Nodes[0], s, jobstest.Texts(2))
	w.Healthy()
	w.Write(func(tx store.Tx) {
		tx.Add(w.Space.Tenant("a").Use(keys.UsedUnits, 0), 5)
		tx.Add(w.Space.Tenant("c").Use(keys.UsedCalls, 0), 1)
	})
	if found := w.Findings(); len(found) != 2 {
		t.Errorf("%v, want two findings", found)
	}
	var corrected []string
	w.Must(w.Look.Tenants.Repair(w.Ctx, func(f mapreduce.Finding) error {
		corrected = append(corrected, f.Message)
		return nil
	}))
	want := []string{`corrected by -5: what tenant "a" uses: units`, `corrected by -1: what tenant "c" uses: units that run`}
	if !slices.Equal(corrected, want) {
		t.Errorf("corrected: %q, want %q", corrected, want)
	}
	w.Healthy()
}
