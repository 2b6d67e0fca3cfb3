package confidence_test

import (
	"testing"

	"github.com/coditect/mapreduce/internal/text/confidence"
)

// TestOfRecognition: what was surer is never less confident, text that was not recognised keeps its
// confidence, and nothing gains any.
func TestOfRecognition(t *testing.T) {
	before := 0.0
	for i := 1; i <= 1000; i++ {
		sure := float64(i) / 1000
		got := confidence.OfRecognition(sure)
		if got < before || got <= 0 || got > 1 {
			t.Errorf("sure by %v: %v, and %v before", sure, got, before)
		}
		before = got
	}
	for sure, want := range map[float64]float64{0: 1, 0.45: 0.22, 0.75: 0.73, 0.9: 0.945, 1: 1} {
		if got := confidence.OfRecognition(sure); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("sure by %v: %v, want %v", sure, got, want)
		}
	}
}
