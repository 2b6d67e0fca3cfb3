package steps_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/worker/agent/checked"
	"github.com/coditect/mapreduce/worker/agent/model"
	"github.com/coditect/mapreduce/worker/agent/model/steps"
	"github.com/coditect/mapreduce/worker/llm/fakellm/totals"
	"github.com/coditect/mapreduce/worker/llm/vendors"
)

// TestAddedVendor runs a unit by the model of a vendor that the program does not have.
// The vendor is a package and a row of the table.
func TestAddedVendor(t *testing.T) {
	a, err := model.New(model.Config{
		Provider: "totals", Random: func() float64 { return 0 },
		Vendors: append(vendors.All(), vendors.Vendor{Name: "totals", New: totals.New}),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{
		agent: journaled{checked.New(steps.Of(a))}, bare: a, purse: new(purse),
		spec: mapreduce.JobSpec{Provider: "totals", Model: "m", Schema: canonical(t, receipt), Vars: map[string]string{}},
	}
	if err := a.Check(&r.spec); err != nil {
		t.Fatal(err)
	}
	out, _, err := r.run(t, document)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(json.Number("60.3"), r.resolved(t, out).Values["total"]); diff != "" {
		t.Errorf("total (-want +got):\n%s", diff)
	}
	if want := (mapreduce.Tokens{In: 530, Out: 31}); len(out.Citations) != 1 || r.purse.calls != 1 || r.purse.spent != want {
		t.Errorf("%d citations, %d calls, %+v spent, want 1, 1 and %+v", len(out.Citations), r.purse.calls, r.purse.spent, want)
	}
}
