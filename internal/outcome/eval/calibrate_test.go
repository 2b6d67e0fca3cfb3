package eval_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/internal/outcome/eval"
)

func TestCalibrate(t *testing.T) {
	var all []eval.Judged
	for i := range 10 {
		all = append(all, eval.Judged{Field: "a", Confidence: 0.85, Right: i < 8}, eval.Judged{Field: "b", Confidence: 1, Right: i < 5})
	}
	want := eval.Calibration{
		Values: 20, Error: (0.05 + 0.5) / 2, Fields: map[string]float64{"a": 0.05, "b": 0.5},
		Bins: []eval.Bin{
			{From: 0.8, To: 0.9, Values: 10, Confidence: 0.85, Accuracy: 0.8},
			{From: 0.9, To: 1, Values: 10, Confidence: 1, Accuracy: 0.5},
		},
	}
	if diff := cmp.Diff(want, eval.Calibrate(all), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("calibration (-want +got):\n%s", diff)
	}
}

func TestCalibrateProperties(t *testing.T) {
	judged := rapid.Custom(func(t *rapid.T) eval.Judged {
		return eval.Judged{Confidence: rapid.Float64Range(-0.5, 1.5).Draw(t, "confidence"), Right: rapid.Bool().Draw(t, "right")}
	})
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOf(judged).Draw(t, "values")
		c := eval.Calibrate(all)
		n := 0
		for _, b := range c.Bins {
			n += b.Values
		}
		if n != len(all) || c.Values != len(all) || math.IsNaN(c.Error) || c.Error < 0 {
			t.Fatalf("%d values gave %+v", len(all), c)
		}
	})
}

func TestConfidenceOfAResult(t *testing.T) {
	results, err := eval.ReadResult("result.json", strings.NewReader(`{"aggregated_data": [
		{"a": "x", "l": ["p", "q"], "n": null, "_sources": ["d"], "_confidence": {"a": 0.9, "l": 0.5}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	truth := []eval.Truth{{Document: "d", Values: map[string]any{"a": "y", "l": []any{"p", "r"}, "n": "z"}}}
	want := []eval.Bin{{From: 0.5, To: 0.6, Values: 2, Confidence: 0.5, Accuracy: 0.5}, {From: 0.9, To: 1, Values: 1, Confidence: 0.9}}
	got := eval.Compare(nil, results, truth).Calibration
	if got == nil {
		t.Fatal("no calibration")
	}
	if diff := cmp.Diff(want, got.Bins); diff != "" {
		t.Errorf("bins (-want +got):\n%s", diff)
	}
	results[0].Confidence = nil
	if c := eval.Compare(nil, results, truth).Calibration; c != nil {
		t.Errorf("a result without confidences gave %+v", c)
	}
}
