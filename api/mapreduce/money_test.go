package mapreduce_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/coditect/mapreduce/api/mapreduce"
)

func TestParseDollars(t *testing.T) {
	for text, want := range map[string]int64{
		"5": 5_000_000, "$5": 5_000_000, "0.25": 250_000, " 12.5 ": 12_500_000, "0.000001": 1, "0": 0, "999999999.999999": 999_999_999_999_999,
	} {
		if got, err := mapreduce.ParseDollars(text); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "$", "-1", "1e3", "1,50", "0.0000001", "1234567890", "five", "5€", "NaN", ".5", "5."} {
		if got, err := mapreduce.ParseDollars(text); err == nil {
			t.Errorf("%q is taken for %d", text, got)
		}
	}
}

func TestDollarText(t *testing.T) {
	for micros, want := range map[int64]string{
		0: "$0.00", 1: "$0.000001", 250_000: "$0.25", 5_000_000: "$5.00", 1_234_500: "$1.2345", -30_000: "-$0.03",
		math.MaxInt64: "$9223372036854.775807", math.MinInt64: "-$9223372036854.775808",
	} {
		if got := mapreduce.DollarText(micros); got != want {
			t.Errorf("%d is %s, want %s", micros, got, want)
		}
	}

	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(0, 999_999_999_999_999).Draw(t, "micros")
		if back, err := mapreduce.ParseDollars(mapreduce.DollarText(micros)); err != nil || back != micros {
			t.Fatalf("%s is read as %d, %v; want %d", mapreduce.DollarText(micros), back, err, micros)
		}
	})
}
