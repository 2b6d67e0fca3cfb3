package scaler_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/coditect/mapreduce/orchestrator/scaler"
)

func TestDivide(t *testing.T) {
	const a, b = "openai/a", "openai/b"
	for name, tt := range map[string]struct {
		claims []scaler.Claim
		limits scaler.Limits
		want   []int64
	}{
		"nothing": {limits: scaler.Limits{Calls: 50}},
		"a model without a limit": {
			claims: []scaler.Claim{{Model: a, Wanted: 20}}, limits: scaler.Limits{Calls: 50}, want: []int64{20},
		},
		"steps without a model need no calls": {
			claims: []scaler.Claim{{Wanted: 1000}, {Model: a, Wanted: 20}}, limits: scaler.Limits{Calls: 5}, want: []int64{1000, 5},
		},
		"the limit of a model binds its jobs together": {
			claims: []scaler.Claim{{Model: a, Wanted: 30}, {Model: a, Wanted: 10}, {Model: b, Wanted: 7}},
			limits: scaler.Limits{Calls: 50, Models: map[string]int64{a: 8}}, want: []int64{6, 2, 7},
		},
		"what runs is counted first": {
			claims: []scaler.Claim{{Model: a, Wanted: 100}, {Model: a, Wanted: 8, Running: 8}},
			limits: scaler.Limits{Calls: 50, Models: map[string]int64{a: 10}}, want: []int64{2, 8},
		},
		"more runs than the limit": {
			claims: []scaler.Claim{{Model: a, Wanted: 9, Running: 9}, {Model: a, Wanted: 9, Running: 9}},
			limits: scaler.Limits{Calls: 50, Models: map[string]int64{a: 4}}, want: []int64{2, 2},
		},
		"the calls of the fleet bind all models": {
			claims: []scaler.Claim{{Model: a, Wanted: 30}, {Model: b, Wanted: 30}}, limits: scaler.Limits{Calls: 10}, want: []int64{5, 5},
		},
		"a job that fails fast does not wait for its model": {
			claims: []scaler.Claim{{Model: a, Wanted: 30, Exempt: true}, {Model: a, Wanted: 30}},
			limits: scaler.Limits{Calls: 50, Models: map[string]int64{a: 1}}, want: []int64{30, 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := scaler.Divide(tt.claims, tt.limits); !slices.Equal(got, tt.want) {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// Whatever is wanted, no limit is exceeded, none is left unused that could be used, and
// nobody gets more than it wants.
func TestDivideKeepsLimits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		claims := make([]scaler.Claim, random.IntN(6))
		for i := range claims {
			claims[i] = scaler.Claim{Model: []string{"", "a", "b"}[random.IntN(3)], Running: random.Int64N(20), Wanted: random.Int64N(40)}
		}
		limits := scaler.Limits{Calls: random.Int64N(60), Models: map[string]int64{"a": random.Int64N(30)}}
		got := scaler.Divide(claims, limits)
		var sums, wants [2]int64 // of model a, of all models
		for i, c := range claims {
			if got[i] < 0 || got[i] > c.Wanted {
				t.Fatalf("%+v within %+v gave %d: one got more than it wants, or less than nothing", claims, limits, got)
			}
			if c.Model == "a" {
				sums[0], wants[0] = sums[0]+got[i], wants[0]+c.Wanted
			}
			if c.Model != "" {
				sums[1], wants[1] = sums[1]+got[i], wants[1]+c.Wanted
			}
		}
		most := min(limits.Calls, wants[1]-wants[0]+min(limits.Models["a"], wants[0]))
		if sums[0] > limits.Models["a"] || sums[1] != most {
			t.Fatalf("%+v within %+v gave %d: %d of model a, %d of all, want %d of all", claims, limits, got, sums[0], sums[1], most)
		}
	}
}

func TestCallsAtOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		rates scaler.Rates
		call  scaler.Call
		want  int64
	}{
		"no limit":                   {call: scaler.Call{Seconds: 2}},
		"requests":                   {scaler.Rates{Requests: 60}, scaler.Call{Seconds: 10}, 10},
		"rounded up":                 {scaler.Rates{Requests: 61}, scaler.Call{Seconds: 10}, 11},
		"at least one":               {scaler.Rates{Requests: 1}, scaler.Call{Seconds: 0.1}, 1},
		"tokens read":                {scaler.Rates{Requests: 600, Input: 6000}, scaler.Call{Seconds: 10, In: 1000}, 1},
		"tokens written":             {scaler.Rates{Output: 60_000}, scaler.Call{Seconds: 30, Out: 500}, 60},
		"tokens of which none count": {scaler.Rates{Output: 60_000}, scaler.Call{Seconds: 30}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := scaler.CallsAtOnce(tt.rates, tt.call); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}
