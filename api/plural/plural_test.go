package plural_test

import (
	"testing"

	"github.com/coditect/mapreduce/api/plural"
)

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"0 units":        plural.Count(0, "unit"),
		"1 unit":         plural.Count(1, "unit"),
		"2 units":        plural.Count(int64(2), "unit"),
		"1 entry":        plural.Count(1, "entry"),
		"3 entries":      plural.Count(3, "entry"),
		"2 keys":         plural.Count(2, "key"),
		"1 of 1 unit":    plural.Of(1, 1, "unit"),
		"1 of 2 units":   plural.Of(1, 2, "unit"),
		"11 failed jobs": plural.Count(11, "failed job"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
