package run //nolint:testpackage // what is printed of a plan is made here

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/cmd/coditect/internal/results/costs"
	"github.com/coditect/mapreduce/internal/placement"
)

// What a plan says of a deadline: until when batches are waited for, and of each tier what it costs and when it ends.
func TestDeadlineLines(t *testing.T) {
	now := time.Date(2026, 3, 30, 12, 0, 0, 0, time.UTC)
	w := placedWork(&mapreduce.PlanEstimate{Expected: mapreduce.PlanSpend{Calls: 600}, Parallelism: 20, Makespan: 5 * time.Minute})
	tiers := []costs.TierCost{{Tier: "batch", Micros: 500_000}, {Tier: "standard", Micros: 1_000_000}, {Tier: "priority", Micros: 2_000_000}}

	for _, tt := range []struct {
		in     time.Duration
		chosen string
	}{
		{time.Hour, "chosen: by batch, and what has not come by 2026-03-30 12:41 UTC is made in real time"},
		{20 * time.Minute, "chosen: 280 of 600 calls by batch, as no more could still be made in real time; what has not come by 2026-03-30 12:05 UTC and later is made then"},
		{15 * time.Minute, "chosen: all calls at once, tier standard, as no time is left in which a batch could be waited for"},
	} {
		want := []string{
			"deadline: " + now.Add(tt.in).Format(moment) + ", in " + tt.in.String(), tt.chosen,
			"in the tier batch: $0.50 expected, and $1.00 if nothing comes in time; ends when the batch does, and by the deadline",
			"in the tier standard: $1.00 expected; ends at about 2026-03-30 12:05 UTC",
			"in the tier priority: $2.00 expected; ends at about 2026-03-30 12:05 UTC, or sooner",
		}
		got := deadlineLines(now.Add(tt.in), w, placement.Offer{Batch: true, Priority: true}, tiers, now)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v before a deadline (-want +got):\n%s", tt.in, diff)
		}
	}
}
