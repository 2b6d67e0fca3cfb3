package rig_test

import (
	"testing"
	"time"

	"github.com/coditect/mapreduce/internal/dev/bench/rig"
)

func TestQuantile(t *testing.T) {
	s := new(rig.Sample)
	if got := s.Quantile(.5); got != 0 {
		t.Errorf("median of nothing: %v", got)
	}
	for i := range 100 {
		s.Add(time.Duration(100 - i))
	}
	for q, want := range map[float64]time.Duration{0: 1, .01: 1, .5: 50, .99: 99, .991: 100, 1: 100} {
		if got := s.Quantile(q); got != want {
			t.Errorf("quantile %v of 1 to 100: %d, want %d", q, got, want)
		}
	}
}
