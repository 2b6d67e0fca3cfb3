package main

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// pointsOf returns a point a minute.
func pointsOf(n int, value func(i int) float64) (all []point) {
	for i := range n {
		all = append(all, point{time.Duration(i) * time.Minute, value(i)})
	}
	return all
}

// The first half of the time, in which caches fill, says nothing.
func TestTrendIsThatOfTheSecondHalf(t *testing.T) {
	got, ok := trendOf(pointsOf(121, func(i int) float64 { return 10*float64(min(i, 60)) + 2*float64(max(i-60, 0)) }))
	if !ok {
		t.Fatal("there is no trend")
	}
	if math.Abs(got.hourly-120) > 1e-9 || math.Abs(got.growth-120) > 1e-9 || got.mean != 660 || got.least != 600 || got.most != 720 || got.noise > 1e-6 {
		t.Errorf("got %+v, want 120 an hour around 660", got)
	}
	if _, ok := trendOf(pointsOf(2*enough-2, func(i int) float64 { return 1 })); ok {
		t.Error("so few points have a trend")
	}
	if _, ok := trendOf(nil); ok {
		t.Error("no points have a trend")
	}
}

// What grows is found, and what only goes up and down is not.
func TestBounds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	tests := map[string]struct {
		figure string
		value  func(i int) float64
		grows  bool
	}{
		"memory that grows":                {"server: memory", func(i int) float64 { return 100*mebi + mebi*float64(i)/2 }, true},
		"memory that grows by a little":    {"server: memory", func(i int) float64 { return 100*mebi + mebi*float64(i)/10 }, false},
		"memory that falls":                {"server: memory", func(i int) float64 { return 300*mebi - mebi*float64(i) }, false},
		"a saw":                            {"bytes of its folder", func(i int) float64 { return mebi * float64(50+40*(i%17)) }, false},
		"a key for each job":               {"keys of kind seal", func(i int) float64 { return 100 + 12*float64(i) }, true},
		"a line for each job that is gone": {"keys of kind log", func(i int) float64 { return 100 + 12*float64(i) }, false},
		"descriptors that are not freed":   {"worker that lives: descriptors", func(i int) float64 { return 20 + float64(i)/4 }, true},
		"goroutines at random":             {"server: goroutines", func(int) float64 { return 50 + 200*random.Float64() }, false},
		"a sum":                            {"server: " + cpuSeconds, func(i int) float64 { return float64(i) }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			all := pointsOf(200, tt.value)
			got, _ := trendOf(all)
			if boundOf(tt.figure).breaks(got) != tt.grows {
				t.Errorf("grows: %v, want %v: %+v", !tt.grows, tt.grows, got)
			}

			var table strings.Builder
			grows, judged := printTable(&table, map[string][]point{tt.figure: all})
			if judged != 1 || (len(grows) == 1) != tt.grows || strings.Contains(table.String(), "GROWS") != tt.grows {
				t.Errorf("%d judged, %v\n%s", judged, grows, &table)
			}
		})
	}
}

func TestSamplesAreRead(t *testing.T) {
	got, err := readMetrics(strings.NewReader("# HELP a Of a.\na 1.5e+06\nb{x=\"y\"} 7\nc 3\n"))
	if err != nil || len(got) != 2 || got["a"] != 1_500_000 || got["c"] != 3 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := readMetrics(strings.NewReader("a one\n")); err == nil {
		t.Error("a metric that is no number is taken")
	}

	s := make(sample)
	for _, line := range []string{`kind "units": 7 keys of 1200 bytes`, "nothing is wrong", "all kinds: 1 key of 30 bytes"} {
		s.noteKeys(line)
	}
	if len(s) != 3 || s["keys of kind units"] != 7 || s[allKeys] != 1 || s[allBytes] != 30 {
		t.Errorf("got %v", s)
	}
}
