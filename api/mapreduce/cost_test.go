package mapreduce_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/parameters"
)

func TestCostDimensions(t *testing.T) {
	got, err := mapreduce.ParseCostDimensions([]string{"day", "label:team", "tier"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]mapreduce.CostDimension{mapreduce.ByDay, "label:team", mapreduce.ByTier}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	for _, tc := range []struct{ texts, want string }{
		{"year", `"year" is not one of day, month, tenant, model, tier and label:KEY`},
		{"label:", "the key"},
		{"label:a b", "the key"},
		{"day tier day", "day is given twice"},
		{"day month tenant model tier label:a label:b label:c label:d", "at most 8 may be given, and these are 9"},
	} {
		texts := strings.Fields(tc.texts)
		if strings.HasPrefix(tc.texts, "label:a b") {
			texts = []string{tc.texts}
		}
		if _, err := mapreduce.ParseCostDimensions(texts); errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v, want %q", tc.texts, err, tc.want)
		}
	}
}

// A report has room for so many models and tiers; sums of one are never cut.
func TestChargesAreBounded(t *testing.T) {
	var all []mapreduce.Charge
	for i := range 2 * mapreduce.MaxCharges {
		c := mapreduce.Charge{Model: strings.Repeat("m", 1+i%(mapreduce.MaxCharges+4)), Tier: "flex", CostMicros: 1}
		all = mapreduce.AddCharge(all, c)
	}
	all = mapreduce.AddCharge(all, mapreduce.Charge{Model: "nothing was taken"})
	if len(all) != mapreduce.MaxCharges {
		t.Fatalf("%d charges, want %d", len(all), mapreduce.MaxCharges)
	}
	sum := int64(0)
	for _, c := range all {
		sum += c.CostMicros
	}
	if want := int64(2*mapreduce.MaxCharges - 4); sum != want { // the four models beyond came once each
		t.Errorf("charges come to %d, want %d", sum, want)
	}
}

// The tier of batches is the same word here, which imports no parameters.
func TestBatchTier(t *testing.T) {
	if mapreduce.BatchTier != parameters.Batch {
		t.Errorf("the tier of batches is %q and %q", mapreduce.BatchTier, parameters.Batch)
	}
}
