package results

import (
	"math"
	"time"
)

// USD returns millionths of a US dollar in dollars.
func USD(micros int64) float64 { return float64(micros) / 1e6 }

// formatTime formats a time for the files. It returns nil for the zero time.
func formatTime(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.UTC().Format("2006-01-02T15:04:05.000000Z")
	return &s
}

// roundedRatio returns a/b rounded to four digits, or nil if b is 0.
func roundedRatio(a, b float64) *float64 {
	if b == 0 {
		return nil
	}
	r := math.Round(a/b*1e4) / 1e4
	return &r
}
