package observe_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/orchestrator/observe"
)

// What calls took is counted by the tenant, the model that was asked and the tier that the answer named; what says no model is
// of the job's.
func TestChargesAreMeasured(t *testing.T) {
	reader := sdk.NewManualReader()
	m, err := observe.NewMetrics(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test"))
	if err != nil {
		t.Fatal(err)
	}

	m.Charges(t.Context(), "shop", "openai/own", []mapreduce.Charge{
		{Model: "openai/m", Tier: "flex", Tokens: mapreduce.Tokens{In: 10, Out: 2}, CostMicros: 3_000_000},
		{Model: "openai/m", Tier: "standard", Tokens: mapreduce.Tokens{In: 1}, CostMicros: 1_000_000},
		{Tokens: mapreduce.Tokens{In: 5}, CostMicros: 500_000},
		{Model: "openai/m", Tier: "priority"}, // which took nothing
	})
	m.Charges(t.Context(), "bank", "", []mapreduce.Charge{{Model: "openai/m", Tier: "batch", Tokens: mapreduce.Tokens{Out: 7}, CostMicros: 250_000}})
	m.BatchEnded(t.Context(), "openai/m", 7*time.Minute)
	for i := range 100 { // tenants who spend nothing have no label
		m.Charges(t.Context(), mapreduce.TenantID(fmt.Sprint("t", i)), "", []mapreduce.Charge{{Model: "openai/m", Tier: "standard", Tokens: mapreduce.Tokens{In: 1}}})
	}
	m.Charges(t.Context(), "late", "", []mapreduce.Charge{{Model: "openai/m", Tier: "standard", CostMicros: 2_000_000}})

	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	labels := func(s attribute.Set) string {
		text := ""
		for _, kv := range s.ToSlice() {
			text += string(kv.Key) + "=" + kv.Value.AsString() + " "
		}
		return text
	}

	costs, batches := make(map[string]float64), make(map[string]float64)
	for _, one := range all.ScopeMetrics[0].Metrics {
		switch data := one.Data.(type) {
		case metricdata.Sum[float64]:
			for _, p := range data.DataPoints {
				costs[labels(p.Attributes)] += p.Value
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				batches[one.Name+" "+labels(p.Attributes)] += p.Sum
			}
		}
	}
	want := map[string]float64{
		"model=openai/m tier=flex ": 3, "model=openai/m tier=standard ": 3, "model=openai/own tier=unknown ": 0.5, "model=openai/m tier=batch ": 0.25,
		"tenant=shop ": 4.5, "tenant=bank ": 0.25, "tenant=late ": 2,
	}
	if !maps.Equal(costs, want) {
		t.Errorf("costs are %v, want %v", costs, want)
	}
	if want := map[string]float64{"coditect.batch.duration model=openai/m ": 420}; !maps.Equal(batches, want) {
		t.Errorf("batches took %v, want %v", batches, want)
	}
}
