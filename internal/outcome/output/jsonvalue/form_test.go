package jsonvalue_test

import (
	"testing"

	"github.com/coditect/mapreduce/internal/outcome/output/jsonvalue"
)

// The validator of schemas panics on numbers whose exponents are beyond its arithmetic.
func TestNumbersOutOfRangeAreRefused(t *testing.T) {
	for number, ok := range map[string]bool{
		"1": true, "-0.5e-300": true, "1e308": true, "1e-400": true,
		"1e309": false, "1e2000000": false, "1e-2000000": false, "1E-99999999999999999999": false,
	} {
		if _, err := jsonvalue.Decode([]byte(`{"n": [` + number + `]}`)); (err == nil) != ok {
			t.Errorf("%s: %v; in range is %t", number, err, ok)
		}
	}
}
