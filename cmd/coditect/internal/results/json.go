package results

import "math"

// roundedRatio returns a/b rounded to four digits, or nil if b is 0.
func roundedRatio(a, b float64) *float64 {
	if b == 0 {
		return nil
	}
	r := math.Round(a/b*1e4) / 1e4
	return &r
}
